"""docs/errors.md lists exactly the codes that errors can have."""

import functools
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import gatehouse
from gatehouse.foundation.errors import Refusal
from gatehouse.foundation.http import envelopes

PAGE = Path("docs/errors.md").read_text("utf-8")
#: Codes that an error form sets, whatever the error's own code is.
OF_FORMS = {
    *envelopes._OAUTH_CODES.values(), *envelopes._NAMED_CODES.values(), *envelopes._PORTAL_CODES.values(),
    "rate_limit_exceeded",
}  # fmt: skip
#: Codes that are set where the error is created.
IN_SOURCE = {
    code
    for path in Path("src/gatehouse").rglob("*.py")
    for code in re.findall(r'super\(\).__init__\(.*\bcode="([a-z_]+)"', path.read_text("utf-8"))
}
#: Codes of the sandbox's answers to the gateway, which are not passed on.
_INTERNAL_CODES = {"sandbox"}


def _classes(kind: type[Refusal]) -> Iterator[type[Refusal]]:
    yield kind
    for inner in kind.__subclasses__():
        yield from _classes(inner)


@functools.cache
def codes() -> dict[str, type[Refusal]]:
    """Return every code in the package, with a class that has it."""
    for module in pkgutil.walk_packages(gatehouse.__path__, "gatehouse."):
        if not module.name.endswith("__main__") and ".migrations" not in module.name:
            importlib.import_module(module.name)
    by_code: dict[str, type[Refusal]] = {}
    for kind in _classes(Refusal):
        if kind.code is not None and kind.__module__.startswith("gatehouse.") and kind.code not in _INTERNAL_CODES:
            by_code.setdefault(kind.code, kind)
    return by_code


def on_the_page() -> set[str]:
    """Return the words in the columns named `code`."""
    words: set[str] = set()
    column: int | None = None
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            column = None
        elif "`code`" in cells:
            column = cells.index("`code`")
        elif column is not None:
            words |= set(re.findall(r"`([a-z_]+)`", cells[column]))
    return words


def test_every_code_is_on_the_page() -> None:
    assert ({*codes()} | OF_FORMS | IN_SOURCE) - on_the_page() == set()


def test_every_code_on_the_page_exists() -> None:
    assert on_the_page() - ({*codes()} | OF_FORMS | IN_SOURCE) == set()


def test_the_statuses_on_the_page_are_those_of_the_codes() -> None:
    classes_by_code = codes()
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and re.fullmatch(r"[2-5]\d\d", cells[0]) and len(cells) == 3:
            # Administration's table; the gateway's has a column for the type.
            code = cells[1].strip("`")
            statuses = {kind.status for kind in _classes(Refusal) if kind.code == code}
            assert int(cells[0]) in statuses or code not in classes_by_code, line

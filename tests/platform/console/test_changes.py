"""The console's changes send the version that the user saw, so that they never overwrite another change unnoticed."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.platform.console.conftest import CONSOLE
from tests.support.operations import DOCUMENT

SOURCES: Final = CONSOLE / "src"
_CALL: Final = re.compile(r"\bapi\.(PUT|PATCH)\(")
_CONSTANT: Final = re.compile(r'^(?:export )?const ([A-Z]+) = (?:"([^"]+)"|`\$\{([A-Z]+)\}([^`]*)`)', re.MULTILINE)
#: The body of a switch: one field, which the user sees and sets. Another field is not overwritten.
_SWITCH: Final = re.compile(r"body: \{ (enabled|is_active: isActive|is_enabled: enabled) \}")
#: Changes that no second administrator makes, and single switches whose field is a parameter.
WITHOUT_VERSION: Final = {
    "/api/conversations/{conversation_id}": "a person's own conversation",
    "/api/v1/admin/org/allowed-domains/{domain}": "one of two switches",
}


class Call(NamedTuple):
    file: str
    method: str
    path: str
    text: str


def _calls() -> Iterator[Call]:
    for file in sorted(SOURCES.rglob("*.ts*")):
        text = file.read_text()
        if file.name == "schema.d.ts" or ".test." in file.name:
            continue
        constants: dict[str, str] = {}
        for name, value, base, rest in _CONSTANT.findall(text):
            constants[name] = value or constants.get(base, "") + rest
        for match in _CALL.finditer(text):
            call = text[match.end() : _end(text, match.end())]
            first = re.split(r",\s", call, maxsplit=1)[0]
            yield Call(str(file.relative_to(SOURCES)), match[1], constants.get(first, first.strip('"')), call)


def _end(text: str, start: int) -> int:
    """Return the place of the parenthesis that closes the one before `start`."""
    depth = 1
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise AssertionError("a call does not end")


def test_every_change_sends_the_version_that_the_user_saw() -> None:
    calls = list(_calls())
    assert len(calls) > 35
    for call in calls:
        operation = DOCUMENT["paths"][call.path][call.method.lower()]
        offered = any(parameter["name"] == "If-Match" for parameter in operation.get("parameters", []))
        assert offered, (call.file, call.path, "the operation does not check versions")
        sends = re.search(r"\bheader\b", call.text) is not None
        needs_none = _SWITCH.search(call.text) is not None or call.path in WITHOUT_VERSION
        assert sends is not needs_none, (call.file, call.path)

"""The page of the audits names tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/decisions/audits.md"


def named_tests() -> list[tuple[str, str]]:
    """Return pairs of a path and a test's name. The name is empty if the page names only the file."""
    named = []
    for line in PAGE.read_text().splitlines():
        path = ""
        for part in re.findall(r"tests/[\w/]+\.py(?:::\w+)?|::\w+", line):
            own_path, _, name = part.partition("::")
            path = own_path or path
            named.append((path, name))
    return sorted(set(named))


@pytest.mark.parametrize(("path", "name"), named_tests())
def test_a_named_test_exists(path: str, name: str) -> None:
    assert path, f"::{name} follows no file"
    text = (ROOT / path).read_text()
    assert not name or f"def {name}(" in text

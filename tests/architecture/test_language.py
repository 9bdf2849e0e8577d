"""Names say what a thing is: none of the words that name nothing, and no constant that lacks its subject."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

SOURCE: Final = Path(__file__).parents[2] / "src" / "gatehouse"
#: Participles and pronouns that do not say what a variable holds.
EMPTY_WORDS: Final = frozenset({"told", "said", "found", "each", "held", "given", "wanted"})
#: Constants that do not say of what, or in which unit.
EMPTY_CONSTANTS: Final = frozenset(
    {"MOST", "LEAST", "LONGEST", "SHORTEST", "PATIENCE", "PAUSE", "BEAT", "HURRY", "LAST", "LATER", "GONE", "AT_ONCE"}
)
#: Modules that are still to be renamed.
EXCEPTIONS: Final = (
    "detection/service",
    "detection/semantic",
    "detection/entities",
    "detection/documents",
    "detection/validators",
    "detection/normalise",
    "detection/catalog",
    "detection/scanning/texts.py",
    "detection/scanning/windows.py",
    "detection/search/candidates.py",
    "detection/units.py",
)
#: Names that files in use have, or a protocol.
ALLOWED: Final = {
    "outpost/money/leases.py": {"given"},  # a field of the stored leases
    "outpost/money/budget.py": {"wanted"},  # a method of the protocol of `leases`
}
MODULES: Final = [
    path for path in sorted(SOURCE.rglob("*.py")) if not str(path.relative_to(SOURCE)).startswith(EXCEPTIONS)
]


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The variables, parameters, functions and constants that a module defines, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name


def empty_names(source: str, allowed: frozenset[str] | set[str] = frozenset()) -> list[str]:
    return [
        f"line {line}: {name}"
        for line, name in names(ast.parse(source))
        if name.strip("_") in EMPTY_WORDS | EMPTY_CONSTANTS and name not in allowed
    ]


def test_names_say_what_a_thing_is() -> None:
    faults = {
        (name := str(path.relative_to(SOURCE))): empty_names(path.read_text("utf-8"), ALLOWED.get(name, set()))
        for path in MODULES
    }
    assert {path: lines for path, lines in faults.items() if lines} == {}


@pytest.mark.parametrize(
    "source", ["told = 1", "def f(held): ...", "for each in x: ...", "_MOST: int = 3", "def said(): ..."]
)
def test_an_empty_name_is_noticed(source: str) -> None:
    assert empty_names(source)

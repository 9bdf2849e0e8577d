"""Names say what a thing is: none of the words that name nothing, and no constant that lacks its subject."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "src" / "gatehouse"
#: Where tests and tools are.
FOLDERS: Final = ("tests", "bench", "training", "tools")
#: Participles and pronouns that do not say what a variable holds.
EMPTY_WORDS: Final = frozenset({"told", "said", "found", "each", "held", "given", "wanted"})
#: Constants that do not say of what, or in which unit.
EMPTY_CONSTANTS: Final = frozenset(
    {"MOST", "LEAST", "LONGEST", "SHORTEST", "PATIENCE", "PAUSE", "BEAT", "HURRY", "LAST", "LATER", "GONE", "AT_ONCE"}
)
#: Modules that are still to be renamed.
EXCEPTIONS: Final = (
    "detection/scanning/texts.py",
    "detection/scanning/windows.py",
    "detection/search/candidates.py",
)
#: Names that files in use have, or a protocol.
ALLOWED: Final = {
    "outpost/money/leases.py": {"given"},  # a field of the stored leases
    "outpost/money/budget.py": {"wanted"},  # a method of the protocol of `leases`
}
#: Names of fields that results of earlier measurements have.
ALLOWED_ELSEWHERE: Final = {
    "bench/dlp/entities.py": {"found"},
    "bench/dlp/ordinary/measure.py": {"found"},
    "bench/dlp/scoring.py": {"found"},
    "bench/rig/report.py": {"wanted"},
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


def faults(root: Path, modules: list[Path], allowed: dict[str, set[str]]) -> dict[str, list[str]]:
    lines = {
        (name := str(path.relative_to(root))): empty_names(path.read_text("utf-8"), allowed.get(name, set()))
        for path in modules
    }
    return {path: names for path, names in lines.items() if names}


def test_names_say_what_a_thing_is() -> None:
    assert faults(SOURCE, MODULES, ALLOWED) == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_in_tests_and_tools_say_what_a_thing_is(folder: str) -> None:
    assert faults(ROOT, sorted((ROOT / folder).rglob("*.py")), ALLOWED_ELSEWHERE) == {}


@pytest.mark.parametrize(
    "source", ["told = 1", "def f(held): ...", "for each in x: ...", "_MOST: int = 3", "def said(): ..."]
)
def test_an_empty_name_is_noticed(source: str) -> None:
    assert empty_names(source)

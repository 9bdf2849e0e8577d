"""Names describe their values: no empty words, and no constants without a subject or a unit."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "src" / "gatehouse"
#: The folders of tests and tools.
FOLDERS: Final = ("tests", "bench", "training", "tools")
#: Participles and pronouns that do not describe a value. No part of a name is one of them.
EMPTY_WORDS: Final = frozenset({"told", "said", "found", "each", "held", "given", "wanted", "asked"})
#: Terms that contain one of these words: of RFC 9110 and of errors, of people's names, of data sets.
TERMS: Final = re.compile(r"not_?found|given_?name|held_?out", re.IGNORECASE)
#: Names of constants without a subject or a unit.
EMPTY_CONSTANTS: Final = frozenset(
    {"MOST", "LEAST", "LONGEST", "SHORTEST", "PATIENCE", "PAUSE", "BEAT", "HURRY", "LAST", "LATER", "GONE", "AT_ONCE"}
)
#: Names that existing files or a protocol require.
ALLOWED: Final = {
    "outpost/money/leases.py": {"given"},  # a field of the stored leases
    "outpost/money/budget.py": {"wanted"},  # a method of the protocol of `leases`
    "foundation/settings.py": {"provider_max_connections_each"},  # a setting
    "outpost/admin/status.py": {"asked_at"},  # a field of a response
    "platform/governance/model_registry/schemas.py": {"HeldRequest"},  # a schema of the OpenAPI document
}
#: Names of fields in the results of earlier measurements.
ALLOWED_ELSEWHERE: Final = {
    "bench/dlp/entities.py": {"found"},
    "bench/dlp/scoring.py": {"found", "asked"},
}
MODULES: Final = sorted(SOURCE.rglob("*.py"))
#: Class names that occur in several modules are fewer than this. Most of the remaining ones are names of the API.
MAX_REPEATED_CLASS_NAMES: Final = 60
#: Words in names of constants for a time or size, and the units that such a name must contain.
TIMES: Final = frozenset({"TIMEOUT", "INTERVAL", "DELAY", "TTL", "LIFETIME", "AGE", "WAIT", "DEADLINE", "PERIOD"})
SIZES: Final = frozenset(
    {
        "SIZE", "LENGTH", "LONG", "WIDTH", "HEIGHT", "WINDOW", "OVERLAP", "STEP", "SLICE", "PIECE", "REACH",
        "LOOKAHEAD", "PASSAGE", "THRESHOLD",
    }
)  # fmt: skip
UNITS: Final = frozenset(
    {
        "SECONDS", "MINUTES", "HOURS", "DAYS", "MONTHS", "MILLISECONDS", "MS", "NS", "ATTEMPTS", "FACTOR", "VERSION",
        "BYTES", "CHARACTERS", "PIXELS", "TOKENS", "BITS", "LINES", "DIGITS", "ENTRIES", "WORDS", "SCORE", "FINDINGS",
        "VALUES", "CHANGES", "TEXTS",
    }
)  # fmt: skip


#: Nodes that define a name. That of an `except` or `match` may be None.
_NAMED: Final = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar,
)  # fmt: skip
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_CLASS: Final = re.compile(r"^ *class (\w+)", re.MULTILINE)


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the variables, attributes, parameters, functions, classes and constants that a module defines, with their
    lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, _NAMED) and node.name:
            yield node.lineno, node.name


def has_empty_word(name: str) -> bool:
    """Return whether a part of a name, in snake case or in camel case, is an empty word. The names of tests are
    sentences, which may have such words."""
    if name.startswith("test_"):
        return False
    return not EMPTY_WORDS.isdisjoint(word.lower() for word in _WORD.findall(TERMS.sub("_", name)))


def empty_names(source: str, allowed: frozenset[str] | set[str] = frozenset()) -> list[str]:
    return [
        f"line {line}: {name}"
        for line, name in names(ast.parse(source))
        if name not in allowed and (has_empty_word(name) or name.strip("_") in EMPTY_CONSTANTS)
    ]


def constants_without_unit(source: str) -> list[str]:
    """Yield the numeric constants of a module whose names are about a time or a size and have no unit."""
    constants = []
    for node in ast.parse(source).body:
        target = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
        if not isinstance(target, ast.Name) or not target.id.isupper() or not _is_number(node):
            continue
        words = set(target.id.strip("_").split("_"))
        if words & (TIMES | SIZES) and not words & UNITS:
            constants.append(f"line {node.lineno}: {target.id}")
    return constants


def _is_number(node: ast.stmt) -> bool:
    """Return whether the value is an arithmetic expression of numbers."""
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    if value is None:
        return False
    allowed = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    return all(
        isinstance(part, allowed) and not (isinstance(part, ast.Constant) and not isinstance(part.value, int | float))
        for part in ast.walk(value)
    )


def faults(root: Path, modules: list[Path], allowed: dict[str, set[str]]) -> dict[str, list[str]]:
    lines = {
        (name := str(path.relative_to(root))): empty_names(path.read_text("utf-8"), allowed.get(name, set()))
        for path in modules
    }
    return {path: names for path, names in lines.items() if names}


def test_names_describe_their_values() -> None:
    assert faults(SOURCE, MODULES, ALLOWED) == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_in_tests_and_tools_describe_their_values(folder: str) -> None:
    assert faults(ROOT, sorted((ROOT / folder).rglob("*.py")), ALLOWED_ELSEWHERE) == {}


@pytest.mark.parametrize(
    "source",
    [
        "told = 1",
        "self.asked = 1",
        "def f(held): ...",
        "for each in x: ...",
        "_MOST: int = 3",
        "def said(): ...",
        "ASKED = 1",
        "class Found: ...",
        "try: ...\nexcept ValueError as said: ...",
        "rows_found = 1",
        "_was_told = 1",
        "class HeldRequest: ...",
        "MAX_HELD = 1",
    ],
)
def test_an_empty_name_is_noticed(source: str) -> None:
    assert empty_names(source)


@pytest.mark.parametrize(
    "source",
    ["class KeyNotFound: ...", "NOT_FOUND = 1", "foundation = 1", "given_names = 1", "def test_it_is_found(): ..."],
)
def test_a_term_with_such_a_word_is_allowed(source: str) -> None:
    assert not empty_names(source)


def repeated_class_names(root: Path) -> dict[str, list[str]]:
    """Return the class names that several modules define, with these modules."""
    modules: dict[str, set[str]] = {}
    for path in root.rglob("*.py"):
        for name in _CLASS.findall(path.read_text("utf-8")):
            modules.setdefault(name, set()).add(str(path.relative_to(root)))
    return {name: sorted(paths) for name, paths in modules.items() if len(paths) > 1}


def test_few_class_names_occur_in_several_modules() -> None:
    repeated = repeated_class_names(SOURCE)
    assert len(repeated) < MAX_REPEATED_CLASS_NAMES, repeated


def test_a_repeated_class_name_is_noticed(tmp_path: Path) -> None:
    for name, source in {"a.py": "class A: ...\nclass B: ...", "b.py": "class A: ...", "c.py": "class C: ..."}.items():
        (tmp_path / name).write_text(source, "utf-8")
    assert repeated_class_names(tmp_path) == {"A": ["a.py", "b.py"]}


def test_constants_have_their_unit() -> None:
    faulty = {
        str(path.relative_to(ROOT)): names
        for path in [*MODULES, *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))]
        if (names := constants_without_unit(path.read_text("utf-8")))
    }
    assert faulty == {}


def test_a_constant_without_unit_is_noticed() -> None:
    assert constants_without_unit("_CONNECT_TIMEOUT: Final = 5.0\nMAX_LENGTH = 3 * 1024\nTIMEOUT_SECONDS = 2") == [
        "line 1: _CONNECT_TIMEOUT",
        "line 2: MAX_LENGTH",
    ]

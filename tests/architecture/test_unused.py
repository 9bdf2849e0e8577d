"""Every function, class and constant of the product is used in the product. Comments and docstrings are no uses."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).parents[2] / "src" / "gatehouse"
#: Names that a library calls, or that only tests or the training need, with the user.
USED_ELSEWHERE: Final = {
    "eof_received": "asyncio calls it",
    "on_message_begin": "httptools calls it",
    "get_command": "click calls it",
    "format_commands": "click calls it",
    "EXCEPTIONS": "the list of fields that are not inspected; a test compares it with the behaviour",
    "MAX_CHARACTERS_WITHOUT_OPENING": "a limit on the catalog's patterns, which a test checks",
    "public_pem": "tests forge tokens with it",
    "GIVEN_NAMES": "the training of the models",
    "FAMILY_NAMES": "the training of the models",
}
#: A definition, with its decorator, or the last line of it. Decorators register functions, except for `property`.
_DEFINITION: Final = re.compile(
    r"^(?: *(?:@|(?=\)\n))(?P<decorator>.*)\n)? *(?:async def|def|class) (?P<name>\w+)"
    r"|^(?P<constant>[A-Za-z]\w*)(?:: [^=\n]+)? = ",
    re.MULTILINE,
)
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_REGISTERED: Final = re.compile(r"(?!property$|dataclass|unique$)")


def code_of(module: str) -> str:
    """Return the source of a module without its comments and docstrings."""
    lines = module.splitlines(keepends=True)
    ranges = [
        (token.start, token.end)
        for token in tokenize.generate_tokens(io.StringIO(module).readline)
        if token.type == tokenize.COMMENT
    ]
    for node in ast.walk(ast.parse(module)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            assert node.end_lineno is not None
            ranges.append(((node.lineno, node.col_offset), (node.end_lineno, len(lines[node.end_lineno - 1]))))
    for (first, begin), (last, end) in ranges:
        for number in range(first, last + 1):
            line = lines[number - 1]
            kept = line[:begin] if number == first else ""
            lines[number - 1] = kept + (line[end:] if number == last else "")
            if number == last and not lines[number - 1].endswith("\n"):
                lines[number - 1] += "\n"
    return "".join(lines)


def unused(sources: Iterable[str]) -> set[str]:
    """Return the names that are defined, and that occur nowhere else in the sources."""
    counts: Counter[str] = Counter()
    defined: set[str] = set()
    for source in sources:
        counts.update(_WORD.findall(source))
        for match in _DEFINITION.finditer(source):
            if match["decorator"] is None or not _REGISTERED.match(match["decorator"]):
                defined.add(match["name"] or match["constant"])
    return {name for name in defined if counts[name] == 1 and not name.startswith("__")}


def test_every_name_in_the_sources_is_used() -> None:
    modules = [code_of(path.read_text("utf-8")) for path in SOURCE.rglob("*.py")]
    others = [path.read_text("utf-8") for kind in ("*.html", "*.sql") for path in SOURCE.rglob(kind)]
    assert unused([*modules, *others]) == USED_ELSEWHERE.keys()


def test_a_name_in_a_comment_or_docstring_is_no_use() -> None:
    module = (
        '"""About LIMIT."""\n\nLIMIT: Final = 3  # LIMIT\n#: LIMIT\n\n'
        'def a() -> None:\n    """Uses LIMIT,\n    twice LIMIT."""\n\n\na()\n'
    )
    assert unused([code_of(module)]) == {"LIMIT"}
    assert unused([code_of(module + 'print("LIMIT")\n')]) == set()


def test_an_unused_name_is_noticed() -> None:
    module = (
        "LIMIT: Final = 3\n\n@x.route\ndef a(): ...\n\n@x.route(\n    1\n)\ndef e(): ...\n\n"
        "@property\ndef b(self): ...\n\nclass C:\n    def d(self): ...\n"
    )
    assert unused([module]) == {"LIMIT", "b", "C", "d"}
    assert unused([module, "print(LIMIT, b, C, C.d)"]) == set()

"""Computes skeletons of regexes. The skeleton of a text has `0` for each digit, `A` for each ASCII capital letter and
`a` for each ASCII small letter.

Wherever a regex matches a text, the skeleton of the regex matches the skeleton of the text. Numbers have few distinct
skeletons, so that search results can be cached by skeleton.
"""

from collections.abc import Iterable
from typing import Any, Final

import re2

from gatehouse.detection.regex.trees import op, parser

_DIGITS: Final = frozenset(range(0x30, 0x3A))
_CAPITALS: Final = frozenset(range(0x41, 0x5B))
_SMALL: Final = frozenset(range(0x61, 0x7B))
_ASCII: Final = frozenset(range(0x80))
#: The code point that represents all characters that are not ASCII.
_NON_ASCII: Final = 0x80
_WORD: Final = _DIGITS | _CAPITALS | _SMALL | {0x5F}
_SPACE: Final = frozenset(map(ord, " \t\n\r\f\v"))
_ALL: Final = _ASCII | {_NON_ASCII}
_CATEGORIES: Final = {
    op.CATEGORY_DIGIT: _DIGITS,
    op.CATEGORY_NOT_DIGIT: _ALL - _DIGITS,
    op.CATEGORY_WORD: _WORD,
    op.CATEGORY_NOT_WORD: _ALL - _WORD,
    op.CATEGORY_SPACE: _SPACE,
    op.CATEGORY_NOT_SPACE: _ALL - _SPACE,
}
_ANCHORS: Final = {op.AT_BOUNDARY: r"\b", op.AT_NON_BOUNDARY: r"\B"}
_LINES: Final = {op.AT_BEGINNING: "(?m:^)", op.AT_END: "(?m:$)"}
_TEXT: Final = {op.AT_BEGINNING: r"\A", op.AT_END: r"\z", op.AT_BEGINNING_STRING: r"\A"}
_IGNORE_CASE: Final = parser.SRE_FLAG_IGNORECASE
_MULTILINE: Final = parser.SRE_FLAG_MULTILINE
_DOTALL: Final = parser.SRE_FLAG_DOTALL

_NON_ASCII_RANGE: Final = r"\x80-\x{10ffff}"
_NO_CHARACTER: Final = r"[^\x00-\x{10ffff}]"

_MIN_UNBOUND_CHARACTERS: Final = 1 << 20

#: Translation table for `bytes.translate`.
SKELETON: Final = bytes(
    0x30 if byte in _DIGITS else 0x41 if byte in _CAPITALS else 0x61 if byte in _SMALL else byte for byte in range(256)
)


#: The skeletons of typical prose without digits and without words in capital letters.
_PROSE: Final = "\n".join(
    written.format("a" * length, "A" + "a" * length)
    for length in range(1, 17)
    for written in (
        "{1} {0} {0}, {0}; {0}-{0} {1} {1}.",
        "\"{0}\" ('{1}') {0}: {0}",
        "{0}_{0}/{0} = {0}.{0}({0})",
        "- {0}",
    )
)


class Unsupported(ValueError):
    """The regex contains syntax that this module does not support."""


def longest(regex: str) -> int | None:
    """Return the longest match in code points, or None if the regex cannot be read or has no bound."""
    tree = _read(regex, 0)
    width = None if tree is None else int(tree.getwidth()[1])
    return width if width is not None and width < _MIN_UNBOUND_CHARACTERS else None


def skeleton(regex: str, *, ignore_case: bool = False) -> str | None:
    """Return the skeleton of the regex. Return None if the regex cannot be read, or if the skeleton matches ordinary
    words, so that a search with it would exclude nothing."""
    regex_skeleton = any_skeleton(regex, ignore_case=ignore_case)
    return None if regex_skeleton is None or re2.search(regex_skeleton, _PROSE) else regex_skeleton


def any_skeleton(regex: str, *, ignore_case: bool = False) -> str | None:
    """Return the skeleton of the regex, or None if the regex cannot be read."""
    tree = _read(regex, _IGNORE_CASE if ignore_case else 0)
    if tree is None:
        return None
    try:
        return _sequence(tree, tree.state.flags)
    except Unsupported:
        return None


def _read(regex: str, flags: int) -> Any:
    # Python and RE2 parse these two sequences differently.
    if "[[:" in regex or "{," in regex:
        return None
    try:
        return parser.parse(regex, flags)
    except (parser.error, OverflowError):
        return None


def _sequence(nodes: Iterable[Any], flags: int) -> str:
    return "".join(_node(code, argument, flags) for code, argument in nodes)


def _node(code: Any, argument: Any, flags: int) -> str:
    points = _points(code, argument, flags)
    if points is not None:
        return _class(points)
    if code is op.BRANCH:
        return "(?:" + "|".join(_sequence(branch, flags) for branch in argument[1]) + ")"
    if code is op.SUBPATTERN:
        _, flags_on, flags_off, inner = argument
        return "(?:" + _sequence(inner, (flags | flags_on) & ~flags_off) + ")"
    if code in {op.MAX_REPEAT, op.MIN_REPEAT}:
        least, most, inner = argument
        bounds = f"{least}," if most is op.MAXREPEAT else f"{least},{most}"
        return f"(?:{_sequence(inner, flags)}){{{bounds}}}"
    if code is op.AT:
        if argument in _ANCHORS:
            return _ANCHORS[argument]
        if argument in (ends := _LINES if flags & _MULTILINE else _TEXT):
            return ends[argument]
    raise Unsupported(str(code))


def _points(code: Any, argument: Any, flags: int) -> frozenset[int] | None:
    """Return the code points that a one-character node matches, or None for other nodes."""
    if code is op.LITERAL:
        points = frozenset({min(argument, _NON_ASCII)})
    elif code is op.NOT_LITERAL:
        points = _ALL - {argument}
    elif code is op.ANY:
        points = _ALL if flags & _DOTALL else _ALL - {0x0A}
    elif code is op.IN:
        points = _members(argument)
    else:
        return None
    if flags & _IGNORE_CASE:
        points |= {point ^ 0x20 for point in points if point in _CAPITALS or point in _SMALL}
    return points


def _members(items: Any) -> frozenset[int]:
    points: set[int] = set()
    for kind, value in items:
        if kind is op.LITERAL:
            points.add(min(value, _NON_ASCII))
        elif kind is op.RANGE:
            points.update(range(value[0], min(value[1], _NON_ASCII) + 1))
        elif kind is op.CATEGORY:
            points |= _CATEGORIES[value]
    # A negated class is assumed to match all characters that are not ASCII.
    return (_ASCII - points) | {_NON_ASCII} if items[0][0] is op.NEGATE else frozenset(points)


def _class(points: frozenset[int]) -> str:
    mapped = {SKELETON[point] if point < 0x80 else point for point in points}
    if not mapped:
        return _NO_CHARACTER
    inner = "".join(f"\\x{point:02x}" for point in sorted(mapped - {_NON_ASCII}))
    return f"[{inner}{_NON_ASCII_RANGE if _NON_ASCII in mapped else ''}]"

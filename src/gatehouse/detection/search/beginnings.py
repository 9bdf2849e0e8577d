"""Computes the literals with which the matches of a regex begin."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from gatehouse.detection.regex.trees import op, parser
from gatehouse.detection.search.matching import UNDERSCORE

#: Maximum number of literals of a regex in `beginnings` and in `near_beginnings`.
_MAX_BEGINNINGS: Final = 40
_MAX_NEAR_BEGINNINGS: Final = 400
#: Maximum characters of a character class that is expanded into one literal for each character.
_MAX_CLASS_CHARACTERS: Final = 6
#: Minimum number of adjacent letters that are treated as a word.
_MIN_WORD_LETTERS: Final = 3
#: Visible ASCII characters, and the character that replaces some underscores in the searched text. In RE2 `\\d` and
#: `\\w` are ASCII.
_VISIBLE: Final = frozenset((*range(0x21, 0x7F), ord(UNDERSCORE)))
_SPACE_ORDINAL: Final = 0x20
_BLANK_CATEGORIES: Final = frozenset({op.CATEGORY_SPACE, op.CATEGORY_NOT_DIGIT, op.CATEGORY_NOT_WORD})
_VISIBLE_CATEGORIES: Final = frozenset({op.CATEGORY_DIGIT, op.CATEGORY_WORD})
#: A pair of a literal and a flag. The flag is true if the literal is the complete match of its part of the regex, and
#: false if the match may continue after the literal.
_Beginning = tuple[str, bool]
_ANY_BEGINNING: Final[tuple[_Beginning, ...]] = (("", False),)


def beginnings(regex: str) -> frozenset[str]:
    """Return literals such that each match begins with one of them. Compare them case-insensitively. Return an empty
    set if a match may begin in another way, if there are more than `_MAX_BEGINNINGS` literals, or if Python's parser
    rejects the regex."""
    literals = _literals(regex, _MAX_BEGINNINGS, edges=False)
    return frozenset() if "" in literals else literals


def near_beginnings(regex: str) -> tuple[frozenset[str], bool]:
    """Return literals such that each match has one of them at its first or second character. Compare them
    case-insensitively. Also return whether a literal may be at the second character. The set is empty if a match may
    begin in another way or with a literal that is common in texts, if there are more than `_MAX_NEAR_BEGINNINGS`
    literals, or if Python's parser rejects the regex."""
    literals = _literals(regex, _MAX_NEAR_BEGINNINGS, edges=True)
    if not all(map(_is_distinctive, literals)):
        return frozenset(), False
    return literals, literals != _literals(regex, _MAX_NEAR_BEGINNINGS, edges=False)


def _is_distinctive(literal: str) -> bool:
    """Return whether few texts contain the literal."""
    common = literal.isascii() and (literal.isalpha() or literal.isdigit())
    return len(literal) > 2 or (len(literal) == 2 and not common)


def _literals(regex: str, limit: int, *, edges: bool) -> frozenset[str]:
    try:
        tree = parser.parse(regex)
    except (parser.error, OverflowError):
        return frozenset()
    return frozenset(beginning for beginning, _ in _BeginningsReader(limit, edges=edges).of_sequence(tree, first=True))


def has_word(regex: str) -> bool:
    """Return whether the regex contains a word of `_MIN_WORD_LETTERS` or more adjacent letters."""
    try:
        return _has_word(parser.parse(regex))
    except (parser.error, OverflowError):
        return True


def has_no_blanks(regex: str) -> bool:
    """Return whether all characters of a match, except the first and the last one, are in `_VISIBLE`."""
    try:
        nodes = list(parser.parse(regex))
    except (parser.error, OverflowError):
        return False
    while nodes and nodes[0][0] is op.AT:
        del nodes[0]
    if nodes and _is_edge(nodes[0]):
        del nodes[0]
    if nodes and _is_single(nodes[-1]):
        del nodes[-1]
    return all(_is_visible(code, argument) for code, argument in nodes)


def repeats_blanks(regex: str, limit: int) -> bool:
    """Return whether the regex has a character class that matches a space and whose maximum repetition count exceeds
    `limit`."""
    try:
        return _repeats_blanks(parser.parse(regex), limit)
    except (parser.error, OverflowError):
        return True


def _repeats_blanks(nodes: Iterable[Any], limit: int) -> bool:
    for code, argument in nodes:
        if code in {op.MAX_REPEAT, op.MIN_REPEAT} and argument[1] > limit and _takes_blank(argument[-1]):
            return True
        if any(_repeats_blanks(inner, limit) for inner in _children(code, argument)):
            return True
    return False


def _takes_blank(nodes: Iterable[Any]) -> bool:
    [(code, argument), *others] = nodes
    if others or code is not op.IN:
        return False
    negated = argument[0][0] is op.NEGATE
    contains = any(
        (kind is op.LITERAL and value == _SPACE_ORDINAL)
        or (kind is op.RANGE and value[0] <= _SPACE_ORDINAL <= value[1])
        or (kind is op.CATEGORY and value in _BLANK_CATEGORIES)
        for kind, value in argument
    )
    return contains != negated


def _is_edge(node: Any) -> bool:
    """Return whether the node matches at most one character, or only visible characters."""
    code, argument = node
    if code is op.SUBPATTERN and len(argument[-1]) == 1:
        return _is_edge(argument[-1][0])
    if code is op.BRANCH:
        return all(
            int(branch.getwidth()[1]) <= 1 or all(_is_visible(*node) for node in branch) for branch in argument[1]
        )
    return _is_single(node)


def _is_single(node: Any) -> bool:
    """Return whether the node matches at most one character."""
    code, argument = node
    if code is op.SUBPATTERN:
        return int(argument[-1].getwidth()[1]) <= 1
    if code is op.BRANCH:
        return all(int(branch.getwidth()[1]) <= 1 for branch in argument[1])
    return code in {op.IN, op.NOT_LITERAL, op.ANY, op.LITERAL}


def _is_visible(code: Any, argument: Any) -> bool:
    if code is op.AT:
        return argument in {op.AT_BOUNDARY, op.AT_NON_BOUNDARY}
    if code is op.LITERAL:
        return argument in _VISIBLE
    if code is op.IN:
        return all(map(_is_visible_member, argument))
    inner = _children(code, argument)
    return bool(inner) and all(_is_visible(*node) for nodes in inner for node in nodes)


def _is_visible_member(member: Any) -> bool:
    kind, value = member
    if kind is op.RANGE:
        return value[0] in _VISIBLE and value[1] in _VISIBLE
    return (kind is op.LITERAL and value in _VISIBLE) or (kind is op.CATEGORY and value in _VISIBLE_CATEGORIES)


def _has_word(nodes: Iterable[Any]) -> bool:
    letters = 0
    for code, argument in nodes:
        letters = letters + 1 if code is op.LITERAL and chr(argument).isalpha() else 0
        if letters >= _MIN_WORD_LETTERS or any(map(_has_word, _children(code, argument))):
            return True
    return False


def _children(code: Any, argument: Any) -> Sequence[Any]:
    if code is op.SUBPATTERN or code in {op.MAX_REPEAT, op.MIN_REPEAT}:
        return (argument[-1],)
    return list(argument[1]) if code is op.BRANCH else ()


class _BeginningsReader:
    """Collects the beginnings of the matches from a regex tree. A class of at most `_MAX_CLASS_CHARACTERS` literal
    characters is expanded into these characters. With `edges`, any other class, a negated character or `.` at the
    beginning of the regex is left out of the literals."""

    def __init__(self, limit: int, *, edges: bool) -> None:
        self._limit = limit
        self._edges = edges

    def of_sequence(self, nodes: Iterable[Any], *, first: bool = False) -> Iterable[_Beginning]:
        prefixes: set[_Beginning] = {("", True)}
        for code, argument in nodes:
            if code is op.AT:
                continue
            if not any(complete for _, complete in prefixes):
                break
            suffixes = self._of_node(code, argument, first=first)
            first = False
            prefixes = {
                prefix
                for before, complete in prefixes
                for prefix in (
                    ((before + suffix, suffix_whole) for suffix, suffix_whole in suffixes)
                    if complete
                    else ((before, False),)
                )
            }
            if len(prefixes) > self._limit:
                return _ANY_BEGINNING
        return prefixes

    def _of_node(self, code: Any, argument: Any, *, first: bool) -> Iterable[_Beginning]:
        if code is op.LITERAL:
            return ((chr(argument), True),)
        if code is op.SUBPATTERN:
            return self.of_sequence(argument[-1], first=first)
        if code is op.BRANCH:
            return [prefix for branch in argument[1] for prefix in self.of_sequence(branch, first=first)]
        if code is op.IN and len(argument) <= _MAX_CLASS_CHARACTERS and all(kind is op.LITERAL for kind, _ in argument):
            return [(chr(value), True) for _, value in argument]
        if first and self._edges and code in {op.IN, op.NOT_LITERAL, op.ANY}:
            return (("", True),)
        if code in {op.MAX_REPEAT, op.MIN_REPEAT}:
            least, most, inner = argument
            if (least, most) == (0, 1):
                return [*self.of_sequence(inner, first=first), ("", True)]
            if least == most == 1:
                return self.of_sequence(inner, first=first)
            if least:
                return [(beginning, False) for beginning, _ in self.of_sequence(inner)]
        return _ANY_BEGINNING

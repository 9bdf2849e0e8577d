"""The literals with which the matches of a regex begin."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from gatehouse.detection.matching import UNDERSCORE
from gatehouse.detection.regex_trees import op, parser

#: A regex with more of them, or a class with more characters, is not written out.
_MOST: Final = 40
_MOST_NEAR: Final = 400
_MOST_IN_CLASS: Final = 6
#: Letters beside each other that are a word, at least.
_WORD: Final = 3
#: Characters of ASCII that are seen. In RE2 `\\d` and `\\w` are of ASCII.
_PRINTED: Final = frozenset((*range(0x21, 0x7F), ord(UNDERSCORE)))
_BLANK: Final = 0x20
_BLANK_CATEGORIES: Final = frozenset({op.CATEGORY_SPACE, op.CATEGORY_NOT_DIGIT, op.CATEGORY_NOT_WORD})
_PRINTED_CATEGORIES: Final = frozenset({op.CATEGORY_DIGIT, op.CATEGORY_WORD})
#: A beginning, and whether it is all that its part of the regex matches.
_Beginning = tuple[str, bool]
_ANYTHING: Final[tuple[_Beginning, ...]] = (("", False),)


def beginnings(regex: str) -> frozenset[str]:
    """One of them begins each match, whatever the case. Nothing where a match may begin otherwise."""
    found = _found(regex, _MOST, edges=False)
    return frozenset() if "" in found else found


def near_beginnings(regex: str) -> tuple[frozenset[str], bool]:
    """One of them begins each match, whatever the case, or stands behind its first character; whether it may. Nothing
    where a match may begin otherwise, or with little."""
    found = _found(regex, _MOST_NEAR, edges=True)
    if not all(map(_says_enough, found)):
        return frozenset(), False
    return found, found != _found(regex, _MOST_NEAR, edges=False)


def _says_enough(literal: str) -> bool:
    """Whether it stands in few texts."""
    common = literal.isascii() and (literal.isalpha() or literal.isdigit())
    return len(literal) > 2 or (len(literal) == 2 and not common)


def _found(regex: str, most: int, *, edges: bool) -> frozenset[str]:
    try:
        tree = parser.parse(regex)
    except (parser.error, OverflowError):
        return frozenset()
    return frozenset(beginning for beginning, _ in _Reader(most, edges=edges).of_sequence(tree, first=True))


def holds_word(regex: str) -> bool:
    """Whether letters of a word stand in it, three or more."""
    try:
        return _has_word(parser.parse(regex))
    except (parser.error, OverflowError):
        return True


def is_without_blanks(regex: str) -> bool:
    """Whether its matches, but for the first character and the last, are of what ASCII prints, without blanks."""
    try:
        nodes = list(parser.parse(regex))
    except (parser.error, OverflowError):
        return False
    while nodes and nodes[0][0] is op.AT:
        del nodes[0]
    if nodes and _is_edge(nodes[0]):
        del nodes[0]
    if nodes and _is_one(nodes[-1]):
        del nodes[-1]
    return all(_is_printed(code, argument) for code, argument in nodes)


def repeats_blanks(regex: str, most: int) -> bool:
    """Whether characters with a blank among them are repeated more than `most` times in it."""
    try:
        return _repeats_blanks(parser.parse(regex), most)
    except (parser.error, OverflowError):
        return True


def _repeats_blanks(nodes: Iterable[Any], most: int) -> bool:
    for code, argument in nodes:
        if code in {op.MAX_REPEAT, op.MIN_REPEAT} and argument[1] > most and _takes_blank(argument[-1]):
            return True
        if any(_repeats_blanks(inner, most) for inner in _inner(code, argument)):
            return True
    return False


def _takes_blank(nodes: Iterable[Any]) -> bool:
    [(code, argument), *others] = nodes
    if others or code is not op.IN:
        return False
    negated = argument[0][0] is op.NEGATE
    holds = any(
        (kind is op.LITERAL and value == _BLANK)
        or (kind is op.RANGE and value[0] <= _BLANK <= value[1])
        or (kind is op.CATEGORY and value in _BLANK_CATEGORIES)
        for kind, value in argument
    )
    return holds != negated


def _is_edge(node: Any) -> bool:
    """Whether it matches at most one character, or what is printed."""
    code, argument = node
    if code is op.SUBPATTERN and len(argument[-1]) == 1:
        return _is_edge(argument[-1][0])
    if code is op.BRANCH:
        return all(int(each.getwidth()[1]) <= 1 or all(_is_printed(*node) for node in each) for each in argument[1])
    return _is_one(node)


def _is_one(node: Any) -> bool:
    """Whether it matches at most one character."""
    code, argument = node
    if code is op.SUBPATTERN:
        return int(argument[-1].getwidth()[1]) <= 1
    if code is op.BRANCH:
        return all(int(branch.getwidth()[1]) <= 1 for branch in argument[1])
    return code in {op.IN, op.NOT_LITERAL, op.ANY, op.LITERAL}


def _is_printed(code: Any, argument: Any) -> bool:
    if code is op.AT:
        return argument in {op.AT_BOUNDARY, op.AT_NON_BOUNDARY}
    if code is op.LITERAL:
        return argument in _PRINTED
    if code is op.IN:
        return all(map(_is_printed_member, argument))
    inner = _inner(code, argument)
    return bool(inner) and all(_is_printed(*node) for nodes in inner for node in nodes)


def _is_printed_member(member: Any) -> bool:
    kind, value = member
    if kind is op.RANGE:
        return value[0] in _PRINTED and value[1] in _PRINTED
    return (kind is op.LITERAL and value in _PRINTED) or (kind is op.CATEGORY and value in _PRINTED_CATEGORIES)


def _has_word(nodes: Iterable[Any]) -> bool:
    letters = 0
    for code, argument in nodes:
        letters = letters + 1 if code is op.LITERAL and chr(argument).isalpha() else 0
        if letters >= _WORD or any(map(_has_word, _inner(code, argument))):
            return True
    return False


def _inner(code: Any, argument: Any) -> Sequence[Any]:
    if code is op.SUBPATTERN or code in {op.MAX_REPEAT, op.MIN_REPEAT}:
        return (argument[-1],)
    return list(argument[1]) if code is op.BRANCH else ()


class _Reader:
    """`edges`: one character that may be any is left out at the beginning."""

    def __init__(self, most: int, *, edges: bool) -> None:
        self._most = most
        self._edges = edges

    def of_sequence(self, nodes: Iterable[Any], *, first: bool = False) -> Iterable[_Beginning]:
        found: set[_Beginning] = {("", True)}
        for code, argument in nodes:
            if code is op.AT:
                continue
            if not any(whole for _, whole in found):
                break
            behind = self._of_node(code, argument, first=first)
            first = False
            found = {
                pair
                for before, whole in found
                for pair in (((before + b, w) for b, w in behind) if whole else ((before, False),))
            }
            if len(found) > self._most:
                return _ANYTHING
        return found

    def _of_node(self, code: Any, argument: Any, *, first: bool) -> Iterable[_Beginning]:
        if code is op.LITERAL:
            return ((chr(argument), True),)
        if code is op.SUBPATTERN:
            return self.of_sequence(argument[-1], first=first)
        if code is op.BRANCH:
            return [pair for branch in argument[1] for pair in self.of_sequence(branch, first=first)]
        if code is op.IN and len(argument) <= _MOST_IN_CLASS and all(kind is op.LITERAL for kind, _ in argument):
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
        return _ANYTHING

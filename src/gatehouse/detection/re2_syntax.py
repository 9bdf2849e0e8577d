"""RE2's syntax, read for what RE2 does not tell about a regex, and for regexes made of it.

Only regexes that RE2 has compiled are read, so nothing is checked here but what Gatehouse does not take.
"""

import math
import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

import re2

_ESCAPE: Final = re.compile(r"\\(?:[pP](?:\{\^?\w+\}|\w)|x(?:\{[0-9a-fA-F]+\}|[0-9a-fA-F]{2})|[0-7]{1,3}|.)", re.DOTALL)
_REPEAT: Final = re.compile(r"(?:[*+?]|\{(?P<least>\d+)(?P<open>,(?P<most>\d*))?\})\??")
_GROUP: Final = re.compile(r"\((?:\?(?:P?<\w+>|(?P<on>[imsU]*)(?P<off>-[imsU]+)?(?P<ends>[:)])))?")
_TEXT_ENDS: Final = frozenset({r"\A", r"\z"})
_WORD_ENDS: Final = frozenset({r"\b", r"\B"})


class Kind(Enum):
    #: one character, or one of a class
    CHARACTER = auto()
    #: the beginning or end of the text, not of a line
    TEXT_END = auto()
    #: the end of a line or word
    ASSERTION = auto()
    #: what opens a group, closes it, or separates its branches
    OPEN = auto()
    CLOSE = auto()
    BRANCH = auto()
    #: repetition of what stands before it
    REPEAT = auto()
    FLAGS = auto()


class Token(NamedTuple):
    """`flags` are those in force at a character. `least` and `most` belong to a repetition."""

    kind: Kind
    text: str
    flags: frozenset[str] = frozenset()
    least: int = 0
    most: float = 0


class AnyByte(ValueError):
    """`\\C` matches a byte, which may be half a character; `position` is its place in the regex."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class Widths(NamedTuple):
    """Characters of the shortest and the longest match; `longest` is infinite where a match has no end."""

    shortest: int
    longest: float


def tokens(regex: str) -> list[Token]:
    """Raises `AnyByte`."""
    return list(_Reader(regex).tokens())


class _Reader:
    """Goes through a regex with the flags in force, and those outside the groups that are open."""

    def __init__(self, regex: str) -> None:
        self._regex = regex
        self._flags: frozenset[str] = frozenset()
        self._outside: list[frozenset[str]] = []

    def tokens(self) -> Iterator[Token]:
        regex, place = self._regex, 0
        while place < len(regex):
            if regex.startswith(r"\Q", place):
                stop = regex.find(r"\E", place)
                quoted = regex[place + 2 : stop if stop >= 0 else len(regex)]
                yield from (Token(Kind.CHARACTER, re2.escape(each), self._flags) for each in quoted)
                place = stop + 2 if stop >= 0 else len(regex)
            else:
                token = self._token(place)
                yield token
                place += len(token.text)

    def _token(self, place: int) -> Token:
        character = self._regex[place]
        if character in "()":
            return self._group(place)
        if character == "|":
            return Token(Kind.BRANCH, character)
        if repeat := _REPEAT.match(self._regex, place):
            return Token(Kind.REPEAT, repeat[0], self._flags, *_bounds(repeat))
        if character in "^$":
            return Token(Kind.ASSERTION if "m" in self._flags else Kind.TEXT_END, character)
        if character == "[":
            return Token(Kind.CHARACTER, self._regex[place : _class_end(self._regex, place)], self._flags)
        if character == "\\":
            return self._escape(place)
        return Token(Kind.CHARACTER, character, self._flags)

    def _group(self, place: int) -> Token:
        if self._regex[place] == ")":
            self._flags = self._outside.pop()
            return Token(Kind.CLOSE, ")")
        group = _GROUP.match(self._regex, place)
        assert group is not None
        if group["ends"] != ")":
            self._outside.append(self._flags)
        self._flags = (self._flags | frozenset(group["on"] or "")) - frozenset(group["off"] or "")
        return Token(Kind.FLAGS if group["ends"] == ")" else Kind.OPEN, group[0])

    def _escape(self, place: int) -> Token:
        escape = _ESCAPE.match(self._regex, place)
        assert escape is not None
        text = escape[0]
        if text == r"\C":
            raise AnyByte(place)
        kind = Kind.TEXT_END if text in _TEXT_ENDS else Kind.ASSERTION if text in _WORD_ENDS else Kind.CHARACTER
        return Token(kind, text, self._flags)


def _bounds(repeat: re.Match[str]) -> tuple[int, float]:
    sign = repeat[0][0]
    if sign == "{":
        least = int(repeat["least"])
        return least, least if repeat["open"] is None else int(repeat["most"]) if repeat["most"] else math.inf
    return int(sign == "+"), 1 if sign == "?" else math.inf


def _class_end(regex: str, start: int) -> int:
    """Where the class that begins at `start` ends."""
    place = start + 1
    if regex.startswith("^", place):
        place += 1
    if regex.startswith("]", place):
        place += 1
    while regex[place] != "]":
        if regex[place] == "\\":
            place += 2
        elif regex.startswith("[:", place) and (named := regex.find(":]", place)) >= 0:
            place = named + 2
        else:
            place += 1
    return place + 1


class _Open:
    """A group that is read: the widths of its branches so far, of the sequence that is read, and of its last part."""

    __slots__ = ("branches", "last", "sequence")

    def __init__(self) -> None:
        self.branches: Widths | None = None
        self.sequence = self.last = Widths(0, 0)

    def add(self, part: Widths) -> None:
        """`last` stays apart from the sequence for a repetition that may follow."""
        self.sequence = Widths(self.sequence.shortest + self.last.shortest, self.sequence.longest + self.last.longest)
        self.last = part

    def end_branch(self) -> Widths:
        self.add(Widths(0, 0))
        known, new = self.branches, self.sequence
        self.branches = (
            new if known is None else Widths(min(known.shortest, new.shortest), max(known.longest, new.longest))
        )
        self.sequence = Widths(0, 0)
        return self.branches


def widths(read: list[Token]) -> Widths:
    """How short and how long a match may be."""
    groups = [_Open()]
    for token in read:
        group = groups[-1]
        if token.kind is Kind.CHARACTER:
            group.add(Widths(1, 1))
        elif token.kind is Kind.OPEN:
            groups.append(_Open())
        elif token.kind is Kind.CLOSE:
            groups.pop()
            groups[-1].add(group.end_branch())
        elif token.kind is Kind.BRANCH:
            group.end_branch()
        elif token.kind is Kind.REPEAT:
            shortest, longest = group.last
            group.last = Widths(shortest * token.least, longest * token.most if longest and token.most else 0)
        else:
            group.add(Widths(0, 0))
    return groups[0].end_branch()


def without_groups(read: list[Token]) -> list[Token]:
    """The same with groups that have no number and no name, so that several regexes can be put together."""
    return [token._replace(text="(?:") if _captures(token) else token for token in read]


def _captures(token: Token) -> bool:
    return token.kind is Kind.OPEN and token.text.endswith(("(", ">"))


def has_text_ends(read: list[Token]) -> bool:
    return any(token.kind is Kind.TEXT_END for token in read)


def unfinished(read: list[Token]) -> str:
    """A regex for a text that may go on: at the text's end each part matches.

    What it finds before the end is what `regex` finds there, however the text goes on: threads of the search that are
    still alive at the end match by reaching it, and RE2 takes the first of them. So a match that ends at the text's
    end is undecided, and no match can begin before it that is not found yet. Where none is alive, the match is the
    empty one at the end.
    """
    always = {Kind.CHARACTER, Kind.TEXT_END, Kind.ASSERTION}
    return "".join(rf"(?:{token.text}|\z)" if token.kind in always else token.text for token in read)


def without_text_ends(read: list[Token]) -> list[Token]:
    """What matches wherever `read` does, in any text around its own."""
    nothing = Token(Kind.ASSERTION, "(?:)")
    return [nothing if token.kind is Kind.TEXT_END else token for token in read]


def any_character(read: list[Token]) -> str | None:
    """A regex for one character, among them each that a match may begin with; None where no match is empty."""
    if widths(read).shortest:
        return None
    characters = {
        f"(?{''.join(sorted(token.flags))}:{token.text})" if token.flags else f"(?:{token.text})"
        for token in read
        if token.kind is Kind.CHARACTER
    }
    return "|".join(sorted(characters))

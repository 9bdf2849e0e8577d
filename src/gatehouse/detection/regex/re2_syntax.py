"""Reads RE2's regex syntax, to compute properties that RE2 does not report and to derive regexes from other regexes.

The module reads only regexes that RE2 has already compiled. The only error that it raises is `AnyByte`, for syntax that
RE2 accepts and Gatehouse does not.
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


class TokenKind(Enum):
    """The kind of a token."""

    #: one character, or one character of a class
    CHARACTER = auto()
    #: an anchor to the beginning or end of the text (not of a line)
    TEXT_END = auto()
    #: an anchor to the beginning or end of a line or word
    ASSERTION = auto()
    #: the opening of a group; `CLOSE` is its closing and `BRANCH` the separator of its branches
    OPEN = auto()
    CLOSE = auto()
    BRANCH = auto()
    #: repetition of the preceding token
    REPEAT = auto()
    FLAGS = auto()


class Token(NamedTuple):
    """A part of a regex. `flags` are the active flags at a character. `least` and `most` are the bounds of a
    repetition."""

    kind: TokenKind
    text: str
    flags: frozenset[str] = frozenset()
    least: int = 0
    most: float = 0


class AnyByte(ValueError):
    """The regex contains `\\C`, which matches one byte and may thus split a character. `position` is the index of `\\C`
    in the regex."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class Widths(NamedTuple):
    """The lengths of the shortest and the longest match in characters. `longest` is infinite if there is no bound."""

    shortest: int
    longest: float


def tokens(regex: str) -> list[Token]:
    """Return the tokens of a regex. Raises `AnyByte`."""
    return list(_TokenReader(regex).tokens())


class _TokenReader:
    """Splits a regex into tokens. Keeps track of the active flags and of the flags outside each open group."""

    def __init__(self, regex: str) -> None:
        self._regex = regex
        self._flags: frozenset[str] = frozenset()
        self._outer_flags: list[frozenset[str]] = []

    def tokens(self) -> Iterator[Token]:
        regex, place = self._regex, 0
        while place < len(regex):
            if regex.startswith(r"\Q", place):
                stop = regex.find(r"\E", place)
                quoted = regex[place + 2 : stop if stop >= 0 else len(regex)]
                yield from (Token(TokenKind.CHARACTER, re2.escape(character), self._flags) for character in quoted)
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
            return Token(TokenKind.BRANCH, character)
        if repeat := _REPEAT.match(self._regex, place):
            return Token(TokenKind.REPEAT, repeat[0], self._flags, *_bounds(repeat))
        if character in "^$":
            return Token(TokenKind.ASSERTION if "m" in self._flags else TokenKind.TEXT_END, character)
        if character == "[":
            return Token(TokenKind.CHARACTER, self._regex[place : _class_end(self._regex, place)], self._flags)
        if character == "\\":
            return self._escape(place)
        return Token(TokenKind.CHARACTER, character, self._flags)

    def _group(self, place: int) -> Token:
        if self._regex[place] == ")":
            self._flags = self._outer_flags.pop()
            return Token(TokenKind.CLOSE, ")")
        group = _GROUP.match(self._regex, place)
        assert group is not None
        if group["ends"] != ")":
            self._outer_flags.append(self._flags)
        self._flags = (self._flags | frozenset(group["on"] or "")) - frozenset(group["off"] or "")
        return Token(TokenKind.FLAGS if group["ends"] == ")" else TokenKind.OPEN, group[0])

    def _escape(self, place: int) -> Token:
        escape = _ESCAPE.match(self._regex, place)
        assert escape is not None
        text = escape[0]
        if text == r"\C":
            raise AnyByte(place)
        kind = (
            TokenKind.TEXT_END
            if text in _TEXT_ENDS
            else TokenKind.ASSERTION
            if text in _WORD_ENDS
            else TokenKind.CHARACTER
        )
        return Token(kind, text, self._flags)


def _bounds(repeat: re.Match[str]) -> tuple[int, float]:
    operator = repeat[0][0]
    if operator == "{":
        least = int(repeat["least"])
        return least, least if repeat["open"] is None else int(repeat["most"]) if repeat["most"] else math.inf
    return int(operator == "+"), 1 if operator == "?" else math.inf


def _class_end(regex: str, start: int) -> int:
    """Return the end of the character class that begins at `start`."""
    place = start + 1
    if regex.startswith("^", place):
        place += 1
    if regex.startswith("]", place):
        place += 1
    while regex[place] != "]":
        if regex[place] == "\\":
            place += 2
        elif regex.startswith("[:", place) and (name_end := regex.find(":]", place)) >= 0:
            place = name_end + 2
        else:
            place += 1
    return place + 1


class _OpenGroup:
    """The widths of an open group: of its completed branches, of the current sequence, and of the sequence's last
    part."""

    __slots__ = ("branches", "last", "sequence")

    def __init__(self) -> None:
        self.branches: Widths | None = None
        self.sequence = self.last = Widths(0, 0)

    def add(self, part: Widths) -> None:
        """Append a part to the sequence. The last part is stored separately, because a repetition may follow it."""
        self.sequence = Widths(self.sequence.shortest + self.last.shortest, self.sequence.longest + self.last.longest)
        self.last = part

    def end_branch(self) -> Widths:
        self.add(Widths(0, 0))
        previous, sequence = self.branches, self.sequence
        self.branches = (
            sequence
            if previous is None
            else Widths(min(previous.shortest, sequence.shortest), max(previous.longest, sequence.longest))
        )
        self.sequence = Widths(0, 0)
        return self.branches


def widths(regex_tokens: list[Token]) -> Widths:
    """Return the lengths of the shortest and the longest match."""
    groups = [_OpenGroup()]
    for token in regex_tokens:
        group = groups[-1]
        if token.kind is TokenKind.CHARACTER:
            group.add(Widths(1, 1))
        elif token.kind is TokenKind.OPEN:
            groups.append(_OpenGroup())
        elif token.kind is TokenKind.CLOSE:
            groups.pop()
            groups[-1].add(group.end_branch())
        elif token.kind is TokenKind.BRANCH:
            group.end_branch()
        elif token.kind is TokenKind.REPEAT:
            shortest, longest = group.last
            group.last = Widths(shortest * token.least, longest * token.most if longest and token.most else 0)
        else:
            group.add(Widths(0, 0))
    return groups[0].end_branch()


def without_groups(regex_tokens: list[Token]) -> list[Token]:
    """Return the tokens with non-capturing groups only, so that several regexes can be combined."""
    return [token._replace(text="(?:") if _captures(token) else token for token in regex_tokens]


def _captures(token: Token) -> bool:
    return token.kind is TokenKind.OPEN and token.text.endswith(("(", ">"))


def has_text_ends(regex_tokens: list[Token]) -> bool:
    return any(token.kind is TokenKind.TEXT_END for token in regex_tokens)


def unfinished(regex_tokens: list[Token]) -> str:
    """Return a regex for searching an incomplete text. In this regex, each part also matches the end of the text.

    A match that ends before the end of the text is also a match of the original regex, regardless of the text that
    follows. A match that ends at the end of the text is undecided, because more text may extend or end it. No match can
    begin before an undecided match. If there is neither a match nor the beginning of one, RE2 returns the empty match
    at the end of the text.

    """
    consuming = {TokenKind.CHARACTER, TokenKind.TEXT_END, TokenKind.ASSERTION}
    return "".join(rf"(?:{token.text}|\z)" if token.kind in consuming else token.text for token in regex_tokens)


def without_text_ends(regex_tokens: list[Token]) -> list[Token]:
    """Return the tokens without the anchors to the beginning and end of the text. The result matches at every place
    where the original regex may match."""
    empty = Token(TokenKind.ASSERTION, "(?:)")
    return [empty if token.kind is TokenKind.TEXT_END else token for token in regex_tokens]


def any_character(regex_tokens: list[Token]) -> str | None:
    """Return a regex for one character that matches each character with which a nonempty match may begin. Return None
    if the regex cannot match the empty text."""
    if widths(regex_tokens).shortest:
        return None
    characters = {
        f"(?{''.join(sorted(token.flags))}:{token.text})" if token.flags else f"(?:{token.text})"
        for token in regex_tokens
        if token.kind is TokenKind.CHARACTER
    }
    return "|".join(sorted(characters))

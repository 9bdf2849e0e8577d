"""Changing text that is JSON (a tool's arguments) so that it stays JSON, also while it still comes in pieces."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from gatehouse.engine.dlp.inspection import Replacement

#: What a number or a bare word is made of.
_SCALAR: Final = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-._")


class JsonCursor:
    """Goes through JSON text once, from its start, and knows whether it stands inside a string."""

    __slots__ = ("_escaped", "in_string", "position")

    def __init__(self) -> None:
        self.position = 0
        self.in_string = False
        self._escaped = False

    def move(self, text: str) -> None:
        """Past the next piece of text."""
        self.position += len(text)
        if self._escaped:
            self._escaped = False
            text = text[1:]
        place = 0
        while True:
            quote = text.find('"', place)
            if self.in_string:
                escape = text.find("\\", place, quote if quote >= 0 else len(text))
                if escape >= 0:
                    if escape + 1 == len(text):
                        self._escaped = True
                        return
                    place = escape + 2
                    continue
            if quote < 0:
                return
            self.in_string = not self.in_string
            place = quote + 1


def fitted(
    changes: Sequence[Replacement], text: str, cursor: JsonCursor, *, base: int = 0, untouched: int = 0
) -> list[Replacement]:
    """The changes, in order, so that JSON stays JSON; the cursor goes on to the last one's end. `text` begins at `base`
    of the text that changes and cursor count in; nothing before `untouched` is changed."""
    fit: list[Replacement] = []
    for change in changes:
        if change.end <= cursor.position:
            # Gone with the number or word that the change before has replaced.
            continue
        start = max(change.start, cursor.position)
        cursor.move(text[cursor.position - base : start - base])
        if not cursor.in_string:
            # Back to where the number or word began: nothing but its own letters lies between.
            floor = fit[-1].end if fit else untouched
            start = cursor.position = max(base + scalar_start(text, start - base), floor)
        fit += _in_pieces(Replacement(start, change.end, change.text), text[start - base :], cursor)
    return fit


def _in_pieces(replacement: Replacement, text: str, cursor: JsonCursor) -> Iterator[Replacement]:
    """The replacement in pieces that leave JSON as JSON. `text` is what it replaces and what follows, from
    `replacement.start` on, where the cursor stands; the cursor is moved to the replacement's end.

    Inside a string the label takes the value's place. Numbers and bare words outside become the label as a string.
    What holds the JSON together (quotes, brackets, commas) stays.
    """
    start, length = 0, replacement.end - replacement.start
    while start < length:
        if cursor.in_string:
            end = _end_of_string(text, start, length)
            if end > start:
                yield Replacement(replacement.start + start, replacement.start + end, replacement.text)
            end = min(end + 1, length)
        elif text[start] in _SCALAR:
            end = start
            while end < len(text) and text[end] in _SCALAR:
                end += 1
            label = msgspec.json.encode(replacement.text).decode()
            yield Replacement(replacement.start + start, replacement.start + end, label)
        else:
            end = start + 1
        cursor.move(text[start:end])
        start = end


def _end_of_string(text: str, start: int, limit: int) -> int:
    """Where the string's own quote stands, or the limit."""
    place = start
    while place < limit:
        if text[place] == "\\":
            place += 2
        elif text[place] == '"':
            return place
        else:
            place += 1
    return limit


#: No number or bare word of JSON is longer.
_LONGEST_SCALAR: Final = 64


def scalar_start(text: str, position: int) -> int:
    """The start of the number or bare word that goes on at `position`, or `position` if none does."""
    start = position
    while start > 0 and text[start - 1] in _SCALAR:
        start -= 1
        if position - start > _LONGEST_SCALAR:
            return position
    return start


def inside_string(value: str) -> str:
    """A value as it stands between the quotes of a JSON string."""
    return msgspec.json.encode(value).decode()[1:-1]

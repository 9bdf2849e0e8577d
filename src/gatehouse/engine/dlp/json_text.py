"""Changing text that is JSON so that it stays JSON: whole texts, also JSON in their strings; a tool's arguments, while
they still come in pieces."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from gatehouse.detection.normalise import View
from gatehouse.detection.normalise.escapes import unescaped
from gatehouse.engine.dlp import json_grammar
from gatehouse.engine.dlp.inspection import Replacement
from gatehouse.engine.dlp.steps import Steps

_OPENS: Final = re.compile(r"[ \t\r\n]*[{\[\"]")
_ESCAPE_OR_QUOTE: Final = re.compile(r"[\\\"]")
#: How deep strings of JSON in strings of JSON are read.
_LEVELS: Final = 4
_CHANGES_A_STEP: Final = 64

#: What a number or a bare word is made of.
_SCALAR: Final = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-._")


class JsonCursor:
    """Goes through JSON text once, from its start, and knows whether it stands inside a string, where the last string
    began, and whether the character before was a backslash that escapes the next one."""

    __slots__ = ("escaped", "in_string", "position", "string_start")

    def __init__(self) -> None:
        self.position = 0
        self.in_string = False
        self.string_start = 0
        self.escaped = False

    def move(self, text: str) -> None:
        """Past the next piece of text."""
        if not text:
            return
        begin = self.position
        self.position += len(text)
        place = int(self.escaped)
        self.escaped = False
        while True:
            quote = text.find('"', place)
            if self.in_string:
                escape = text.find("\\", place, quote if quote >= 0 else len(text))
                if escape >= 0:
                    if escape + 1 == len(text):
                        self.escaped = True
                        return
                    place = escape + 2
                    continue
            if quote < 0:
                return
            self.in_string = not self.in_string
            place = quote + 1
            if self.in_string:
                self.string_start = begin + place


def is_json(text: str) -> bool:
    """Whether all of `text` is an object, a list or a string in JSON."""
    if _OPENS.match(text) is None:
        return False
    try:
        json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    return True


def is_json_in_steps(text: str) -> Steps[bool]:
    """The same of a text of any length, a step for some milliseconds at most."""
    if len(text) <= json_grammar.WINDOW_CHARACTERS:
        return is_json(text)
    if _OPENS.match(text, 0, json_grammar.WINDOW_CHARACTERS) is None:
        return False
    try:
        yield from json_grammar.JsonReader(text).read()
    except json_grammar.NotJson:
        return False
    return True


def fit_whole_json(changes: Sequence[Replacement], text: str, *, levels: int = _LEVELS) -> Steps[list[Replacement]]:
    """The changes, in order, to `text`, all of which is JSON, so that it stays JSON. So does JSON in its strings, up to
    `levels` deep."""
    fit: list[Replacement] = []
    in_strings: dict[int, list[Replacement]] = {}
    cursor = JsonCursor()
    fitting = yield from fit_to_json_in_steps(changes, text)
    for change in fitting:
        yield
        cursor.move(text[cursor.position : change.start])
        if cursor.in_string:
            in_strings.setdefault(cursor.string_start, []).append(change)
        else:
            fit.append(change)
    for start, within in in_strings.items():
        content = text[start : _end_of_string(text, start, len(text))]
        fit += yield from _fit_to_string(within, content, start, levels)
    return sorted(fit, key=lambda change: change.start)


def _fit_to_string(changes: Sequence[Replacement], content: str, start: int, levels: int) -> Steps[list[Replacement]]:
    """The changes to a string that holds `content` from `start` on, each to whole escapes."""
    plain = unescaped(content) or View(content)
    inner: list[Replacement] = []
    behind = 0
    for change in changes:
        first, last = plain.around(change.start - start, change.end - start)
        if max(first, behind) < last:
            inner.append(Replacement(max(first, behind), last, change.text))
            behind = last
    nested = levels > 0 and (yield from is_json_in_steps(plain.text))
    if nested:
        inner = yield from fit_whole_json(inner, plain.text, levels=levels - 1)
    fit: list[Replacement] = []
    for change in inner:
        yield
        first, last = plain.origin(change.start, change.end)
        fit.append(Replacement(start + first, start + last, escape_json_string(change.text) if nested else change.text))
    return fit


def fit_to_json_in_steps(changes: Sequence[Replacement], text: str) -> Steps[list[Replacement]]:
    """The changes, in order, to all of a text, so that JSON stays JSON."""
    fit: list[Replacement] = []
    cursor = JsonCursor()
    for first in range(0, len(changes), _CHANGES_A_STEP):
        some = changes[first : first + _CHANGES_A_STEP]
        fit += fit_to_json(some, text, cursor, untouched=fit[-1].end if fit else 0)
        yield
    return fit


def fit_to_json(
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
        fit += _in_pieces(Replacement(start, change.end, change.text), text, base, cursor)
    return fit


def _in_pieces(replacement: Replacement, text: str, base: int, cursor: JsonCursor) -> Iterator[Replacement]:
    """The replacement in pieces that leave JSON as JSON. `text` begins at `base` of the text that the replacement
    counts in. The cursor stands where the replacement begins, and is moved to its end.

    Inside a string the label takes the value's place. Numbers and bare words outside become the label as a string.
    What holds the JSON together (quotes, brackets, commas) stays.
    """
    start, stop = replacement.start - base, replacement.end - base
    if cursor.escaped:
        # The rest of an escape.
        cursor.move(text[start : start + 1])
        start += 1
    while start < stop:
        if cursor.in_string:
            end = _end_of_string(text, start, stop)
            if end > start:
                yield Replacement(base + start, base + end, replacement.text)
            end = min(end + 1, stop)
        elif text[start] in _SCALAR:
            end = start
            while end < len(text) and text[end] in _SCALAR:
                end += 1
            label = msgspec.json.encode(replacement.text).decode()
            yield Replacement(base + start, base + end, label)
        else:
            end = start + 1
        cursor.move(text[start:end])
        start = end


def _end_of_string(text: str, start: int, limit: int) -> int:
    """Where the string's own quote stands, or the limit, or an escape that goes through the limit."""
    place = start
    while found := _ESCAPE_OR_QUOTE.search(text, place, limit):
        if found[0] == '"':
            return found.start()
        place = found.start() + 2
        if place > limit:
            return found.start()
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


def escape_json_string(value: str) -> str:
    """A value as it stands between the quotes of a JSON string."""
    return msgspec.json.encode(value).decode()[1:-1]

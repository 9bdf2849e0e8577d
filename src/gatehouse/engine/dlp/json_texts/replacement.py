"""Fits replacements to JSON, so that the changed text is still valid JSON. Handles whole texts, including JSON inside
their strings, and arguments of tools that arrive in pieces."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from gatehouse.detection.normalise import View
from gatehouse.detection.normalise.escapes import unescaped
from gatehouse.engine.dlp.inspection import Replacement
from gatehouse.engine.dlp.json_texts import grammar
from gatehouse.engine.dlp.steps import Steps

_JSON_START: Final = re.compile(r"[ \t\r\n]*[{\[\"]")
_ESCAPE_OR_QUOTE: Final = re.compile(r"[\\\"]")
#: Maximum number of levels of JSON texts nested in strings of JSON that are read.
_STRING_LEVELS: Final = 4
_CHANGES_PER_STEP: Final = 64

#: Characters of numbers and bare words (`true`, `null`).
_SCALAR_CHARACTERS: Final = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-._")


class JsonCursor:
    """Moves through a JSON text once, from its start. Tracks whether the position is inside a string, where the last
    string began, and whether a backslash escapes the next character."""

    __slots__ = ("escaped", "in_string", "position", "string_start")

    def __init__(self) -> None:
        self.position = 0
        self.in_string = False
        self.string_start = 0
        self.escaped = False

    def move(self, text: str) -> None:
        """Move past `text`, the next piece."""
        if not text:
            return
        start = self.position
        self.position += len(text)
        index = int(self.escaped)
        self.escaped = False
        while True:
            if not self.in_string:
                index = text.find('"', index) + 1
                if not index:
                    return
                self.in_string = True
                self.string_start = start + index
            match = _ESCAPE_OR_QUOTE.search(text, index)
            if match is None:
                return
            index = match.end()
            if match[0] == '"':
                self.in_string = False
            elif index == len(text):
                self.escaped = True
                return
            else:
                index += 1

    def move_to(self, position: int, text: str) -> Steps[None]:
        """Move to `position` of the whole text, in steps."""
        while self.position < position:
            self.move(text[self.position : min(position, self.position + grammar.WINDOW_CHARACTERS)])
            yield


def is_json(text: str) -> bool:
    """Return whether `text` as a whole is a JSON object, list or string."""
    if _JSON_START.match(text) is None:
        return False
    try:
        json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    return True


def is_json_in_steps(text: str) -> Steps[bool]:
    """Return whether `text` as a whole is JSON, in steps of a few milliseconds, for texts of any length."""
    if len(text) <= grammar.WINDOW_CHARACTERS:
        return is_json(text)
    if _JSON_START.match(text, 0, grammar.WINDOW_CHARACTERS) is None:
        return False
    try:
        yield from grammar.JsonReader(text).read()
    except grammar.NotJson:
        return False
    return True


def fit_whole_json(
    changes: Sequence[Replacement], text: str, *, levels: int = _STRING_LEVELS
) -> Steps[list[Replacement]]:
    """Return the changes, which are in order, fitted to `text`, which is JSON as a whole. The text stays valid JSON,
    and so does JSON inside its strings, up to `levels` deep."""
    fitted: list[Replacement] = []
    changes_by_string: dict[int, list[Replacement]] = {}
    cursor = JsonCursor()
    top_level_changes = yield from fit_to_json_in_steps(changes, text)
    for change in top_level_changes:
        yield
        yield from cursor.move_to(change.start, text)
        if cursor.in_string:
            changes_by_string.setdefault(cursor.string_start, []).append(change)
        else:
            fitted.append(change)
    for start, string_changes in changes_by_string.items():
        content = text[start : _end_of_string(text, start, len(text))]
        fitted += yield from _fit_to_string(string_changes, content, start, levels)
    return sorted(fitted, key=lambda change: change.start)


def _fit_to_string(changes: Sequence[Replacement], content: str, start: int, levels: int) -> Steps[list[Replacement]]:
    """Return the changes fitted to the string whose content is `content` and begins at `start`. The changes are
    extended to whole escapes."""
    content_view = unescaped(content) or View(content)
    inner: list[Replacement] = []
    previous_end = 0
    for change in changes:
        first, last = content_view.around(change.start - start, change.end - start)
        if max(first, previous_end) < last:
            inner.append(Replacement(max(first, previous_end), last, change.text))
            previous_end = last
    nested = levels > 0 and (yield from is_json_in_steps(content_view.text))
    if nested:
        inner = yield from fit_whole_json(inner, content_view.text, levels=levels - 1)
    fitted: list[Replacement] = []
    for change in inner:
        yield
        first, last = content_view.origin(change.start, change.end)
        fitted.append(
            Replacement(start + first, start + last, escape_json_string(change.text) if nested else change.text)
        )
    return fitted


def fit_to_json_in_steps(changes: Sequence[Replacement], text: str) -> Steps[list[Replacement]]:
    """Return the changes, which are in order, fitted to a whole text so that its JSON stays valid."""
    fitted: list[Replacement] = []
    cursor = JsonCursor()
    for index in range(0, len(changes), _CHANGES_PER_STEP):
        step_changes = changes[index : index + _CHANGES_PER_STEP]
        yield from cursor.move_to(step_changes[0].start, text)
        fitted += fit_to_json(step_changes, text, cursor, unchanged_until=fitted[-1].end if fitted else 0)
        yield
    return fitted


def fit_to_json(
    changes: Sequence[Replacement], text: str, cursor: JsonCursor, *, base: int = 0, unchanged_until: int = 0
) -> list[Replacement]:
    """Return the changes, which are in order, fitted so that JSON stays valid. Moves the cursor to the end of the last
    change. `text` begins at `base` in the text that the positions of the changes and the cursor refer to. Nothing
    before `unchanged_until` is changed."""
    fitted: list[Replacement] = []
    for change in changes:
        if change.end <= cursor.position:
            # The previous change has already replaced the whole number or word.
            continue
        start = max(change.start, cursor.position)
        cursor.move(text[cursor.position - base : start - base])
        if not cursor.in_string:
            # Move back to the start of the number or word. Only characters of that number or word are between.
            earliest = fitted[-1].end if fitted else unchanged_until
            start = cursor.position = max(base + scalar_start(text, start - base), earliest)
        fitted += _split_at_structure(Replacement(start, change.end, change.text), text, base, cursor)
    return fitted


def _split_at_structure(replacement: Replacement, text: str, base: int, cursor: JsonCursor) -> Iterator[Replacement]:
    """Yield the replacement in pieces that keep the JSON valid. `text` begins at `base` in the text that the positions
    of the replacement refer to. The cursor is at the start of the replacement, and is moved to its end.

    Inside a string, the label replaces the value. A number or bare word outside of strings is replaced by the label as
    a string. The structure of the JSON (quotes, brackets, commas) is kept.
    """
    start, stop = replacement.start - base, replacement.end - base
    if cursor.escaped:
        # The replacement begins in the middle of an escape.
        cursor.move(text[start : start + 1])
        start += 1
    while start < stop:
        if cursor.in_string:
            end = _end_of_string(text, start, stop)
            if end > start:
                yield Replacement(base + start, base + end, replacement.text)
            end = min(end + 1, stop)
        elif text[start] in _SCALAR_CHARACTERS:
            end = start
            while end < len(text) and text[end] in _SCALAR_CHARACTERS:
                end += 1
            label = msgspec.json.encode(replacement.text).decode()
            yield Replacement(base + start, base + end, label)
        else:
            end = start + 1
        cursor.move(text[start:end])
        start = end


def _end_of_string(text: str, start: int, limit: int) -> int:
    """Return the position of the closing quote, of an escape that crosses `limit`, or `limit` itself, whichever comes
    first."""
    position = start
    while match := _ESCAPE_OR_QUOTE.search(text, position, limit):
        if match[0] == '"':
            return match.start()
        position = match.start() + 2
        if position > limit:
            return match.start()
    return limit


#: Maximum number of characters that are searched for the start of a number or bare word.
_MAX_SCALAR_CHARACTERS: Final = 64


def scalar_start(text: str, position: int) -> int:
    """Return the start of the number or bare word that continues at `position`, or `position` if no number or word
    does."""
    start = position
    while start > 0 and text[start - 1] in _SCALAR_CHARACTERS:
        start -= 1
        if position - start > _MAX_SCALAR_CHARACTERS:
            return position
    return start


def escape_json_string(value: str) -> str:
    """Return the value with JSON escapes, as it appears between the quotes of a string."""
    return msgspec.json.encode(value).decode()[1:-1]

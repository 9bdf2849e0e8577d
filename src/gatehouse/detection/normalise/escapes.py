"""Decodes backslash escapes, both in raw JSON and in JSON or source code within a text."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

from gatehouse.detection.normalise.characters import character_view
from gatehouse.detection.normalise.view import Piece, View, spliced

_ESCAPE: Final = re.compile(
    r"\\(?:u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
    r'|u(?P<code>[0-9a-fA-F]{4})|(?P<simple>["\\/bfnrt]))'
)
_SIMPLE: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
#: An escape, or a pair of escapes for a surrogate pair, that may be incomplete.
_INCOMPLETE: Final = re.compile(
    r"\\(?:u(?:[0-9a-fA-F]{0,3}|[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?))?\Z"
)
_MAX_ESCAPE_CHARACTERS: Final = 12
#: An escape within a text. Each level of JSON within a JSON string doubles the number of backslashes. At four levels
#: there are up to 15.
_NESTED: Final = re.compile(r"""\\{1,15}(?:u(?P<code>[0-9a-fA-F]{4})|x(?P<byte>[0-9a-fA-F]{2})|(?P<simple>[nrt"'/]))""")
_NESTED_INCOMPLETE: Final = re.compile(r"\\{1,15}(?:u[0-9a-fA-F]{0,3}|x[0-9a-fA-F]?)?\Z")
_MAX_NESTED_CHARACTERS: Final = 15 + len("u000")
#: Characters with which no value begins.
_EDGES: Final = frozenset("\n\r\t\"'/")


def unescaped(text: str) -> View | None:
    """Return a view of raw JSON with its escapes decoded, or None if there is no backslash. `text` must not begin
    within an escape."""
    if "\\" not in text:
        return None
    pieces = ((match.start(), match.end(), _decoded_character(match)) for match in _ESCAPE.finditer(text))
    return spliced(text, pieces)


def begun(text: str) -> int:
    """Return the index of the incomplete escape at the end of `text`, or the length of `text` if there is none."""
    edge = max(0, len(text) - _MAX_ESCAPE_CHARACTERS)
    if "\\" not in text[edge:]:
        return len(text)
    # Escapes are read from left to right, because the last backslash may itself be escaped.
    position = edge
    while position and text[position - 1] == "\\":
        position -= 1
    for match in _ESCAPE.finditer(text, position):
        if _INCOMPLETE.match(text, match.start()):
            # This is the first half of a surrogate pair. The second half may follow.
            return match.start()
        position = match.end()
    last = _INCOMPLETE.search(text, position)
    return last.start() if last else len(text)


class Nested(NamedTuple):
    """A view with decoded escapes. The four lists have one entry for each escape, in order: the index of its character
    in the view, its start in the source, its end in the source, and the decoded character."""

    view: View
    escaped: list[int]
    begins: list[int]
    ends: list[int]
    characters: list[str]

    def before(self, offset: int) -> int:
        """Return `offset` of the source, or the start of the escape that contains it."""
        escape = self._escape_at(offset)
        return offset if escape is None else self.begins[escape]

    def whole(self, start: int, end: int) -> tuple[int, int]:
        """Return the span from `start` to `end` of the source, adjusted so that it contains no part of an escape. If a
        part of an escape were replaced, the remaining part would be invalid. If the end is within an escape, the span
        ends before this escape. If the start is within the escape of white space or a quote, the span begins after this
        escape. If the start is within another escape, the span begins at this escape."""
        escape = self._escape_at(end)
        stop = end if escape is None else self.begins[escape]
        escape = self._escape_at(start)
        if escape is None:
            return start, stop
        begin, after = self.begins[escape], self.ends[escape]
        if after < stop and self.characters[escape] in _EDGES:
            return after, stop
        return begin, max(stop, after)

    def _escape_at(self, offset: int) -> int | None:
        """Return the index of the escape that begins before `offset` and ends after it."""
        index = bisect_left(self.begins, offset) - 1
        return index if index >= 0 and offset < self.ends[index] else None


def nested_view(view: View, *, final: bool) -> Nested | None:
    """Return `view` with the backslash escapes in its text decoded, up to the fourth level, or None if there are none.

    JSON within a string has a line break as the two characters `\\n`. Without this view, the letter `n` would be next
    to the value that follows. `final` means that the text is complete. Otherwise an incomplete escape at its end is
    left out."""
    text = view.text
    if "\\" not in text:
        return None
    if not final:
        incomplete = _NESTED_INCOMPLETE.search(text, max(0, len(text) - _MAX_NESTED_CHARACTERS))
        text = text[: incomplete.start()] if incomplete else text
    if _NESTED.search(text) is None:
        return None
    unescaped_view = spliced(text, _nested_pieces(text))
    replaced = unescaped_view.replaced()
    characters = [unescaped_view.text[place] for place in replaced]
    source_view = unescaped_view.over(view)
    normalised = source_view if unescaped_view.text.isascii() else character_view(unescaped_view.text).over(source_view)
    assert source_view.starts is not None
    assert source_view.ends is not None
    assert normalised.starts is not None
    begins = source_view.starts[replaced]
    # The character view removes invisible characters. The escape of such a character maps to the next character.
    escaped = normalised.starts.searchsorted(begins)
    return Nested(normalised, escaped.tolist(), begins.tolist(), source_view.ends[replaced].tolist(), characters)


def nested_begun(view: View, end: int) -> int:
    """Return the index of the incomplete escape right before `end`, or `end` if there is none."""
    edge = max(0, end - _MAX_NESTED_CHARACTERS)
    text = view.text[edge:end]
    match = _NESTED_INCOMPLETE.search(text) if "\\" in text else None
    return edge + match.start() if match else end


def without_escapes(view: View) -> View:
    """Return `view` with its backslash escapes decoded (see `nested_view`), or `view` itself if it has none."""
    nested = nested_view(view, final=True)
    return view if nested is None else nested.view


def _nested_pieces(text: str) -> Iterator[Piece]:
    for match in _NESTED.finditer(text):
        code = match["code"] or match["byte"]
        simple = match["simple"]
        yield match.start(), match.end(), chr(int(code, 16)) if code else _SIMPLE.get(simple, simple)


def _decoded_character(match: re.Match[str]) -> str:
    if match["simple"]:
        return _SIMPLE.get(match["simple"], match["simple"])
    if match["code"]:
        return chr(int(match["code"], 16))
    return chr(0x10000 + ((int(match["high"], 16) - 0xD800) << 10) + int(match["low"], 16) - 0xDC00)

"""Backslash escapes: those of JSON as it arrives, in pieces, and those of JSON or source code within a text."""

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
#: An escape, or a pair of them, that has begun and may go on.
_BEGUN: Final = re.compile(r"\\(?:u(?:[0-9a-fA-F]{0,3}|[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?))?\Z")
_LONGEST: Final = 12
#: An escape within a text. Each level of JSON in a string of JSON doubles the backslashes: of four levels there are 15.
_NESTED: Final = re.compile(r"""\\{1,15}(?:u(?P<code>[0-9a-fA-F]{4})|x(?P<byte>[0-9a-fA-F]{2})|(?P<simple>[nrt"'/]))""")
_NESTED_BEGUN: Final = re.compile(r"\\{1,15}(?:u[0-9a-fA-F]{0,3}|x[0-9a-fA-F]?)?\Z")
_LONGEST_NESTED: Final = 15 + len("u000")
#: What a value does not begin with.
_EDGES: Final = frozenset("\n\r\t\"'/")


def unescaped(text: str) -> View | None:
    """None where there are no escapes. `text` does not begin within an escape."""
    if "\\" not in text:
        return None
    pieces = ((found.start(), found.end(), _meaning(found)) for found in _ESCAPE.finditer(text))
    return spliced(text, pieces)


def begun(text: str) -> int:
    """From where on `text` may be the beginning of an escape; its length where it is not."""
    edge = max(0, len(text) - _LONGEST)
    if "\\" not in text[edge:]:
        return len(text)
    # Escapes are read from the front: the last backslash may itself be escaped.
    behind = edge
    while behind and text[behind - 1] == "\\":
        behind -= 1
    for found in _ESCAPE.finditer(text, behind):
        if _BEGUN.match(text, found.start()):
            # The first half of a pair, whose second half may follow.
            return found.start()
        behind = found.end()
    last = _BEGUN.search(text, behind)
    return last.start() if last else len(text)


class Nested(NamedTuple):
    """A view of what escapes in a text stand for, at which of its characters they stand, and from where to where each
    one goes in the source and what it stands for. All in order."""

    view: View
    escaped: list[int]
    begins: list[int]
    ends: list[int]
    characters: list[str]

    def before(self, offset: int) -> int:
        """`offset` of the source, or the beginning of the escape that goes through it."""
        escape = self._through(offset)
        return offset if escape is None else self.begins[escape]

    def whole(self, start: int, end: int) -> tuple[int, int]:
        """What is from `start` to `end` of the source, without parts of escapes: what is left of one where a value is
        replaced would be no escape. A value ends before an escape that it goes into; it begins behind a blank or quote
        whose escape it begins in, and with any other character."""
        escape = self._through(end)
        stop = end if escape is None else self.begins[escape]
        escape = self._through(start)
        if escape is None:
            return start, stop
        begin, behind = self.begins[escape], self.ends[escape]
        if behind < stop and self.characters[escape] in _EDGES:
            return behind, stop
        return begin, max(stop, behind)

    def _through(self, offset: int) -> int | None:
        """The escape that begins before `offset` and ends behind it."""
        place = bisect_left(self.begins, offset) - 1
        return place if place >= 0 and offset < self.ends[place] else None


def nested_view(view: View, *, final: bool) -> Nested | None:
    """`view` with what the backslash escapes in its text stand for, at any level up to the fourth; None where there are
    none. JSON within a string, a tool's result or a message holds a line break as two characters, so that a letter
    touches the value behind it. `final`: the text does not go on, so that no escape at its end is left out."""
    text = view.text
    if "\\" not in text:
        return None
    if not final:
        begun_at = _NESTED_BEGUN.search(text, max(0, len(text) - _LONGEST_NESTED))
        text = text[: begun_at.start()] if begun_at else text
    if _NESTED.search(text) is None:
        return None
    written = spliced(text, _nested(text))
    replaced = written.replaced()
    characters = [written.text[place] for place in replaced]
    of_source = written.over(view)
    seen = of_source if written.text.isascii() else character_view(written.text).over(of_source)
    assert of_source.starts is not None
    assert of_source.ends is not None
    assert seen.starts is not None
    begins = of_source.starts[replaced]
    # What is not drawn is gone: its escape stands at the character behind it.
    escaped = seen.starts.searchsorted(begins)
    return Nested(seen, escaped.tolist(), begins.tolist(), of_source.ends[replaced].tolist(), characters)


def nested_begun(view: View, end: int) -> int:
    """From which character on, up to `end`, an escape may have begun, or `end`."""
    edge = max(0, end - _LONGEST_NESTED)
    text = view.text[edge:end]
    found = _NESTED_BEGUN.search(text) if "\\" in text else None
    return edge + found.start() if found else end


def without_escapes(view: View) -> View:
    """`view` with what its backslash escapes stand for, as `nested_view` reads them."""
    nested = nested_view(view, final=True)
    return view if nested is None else nested.view


def _nested(text: str) -> Iterator[Piece]:
    for found in _NESTED.finditer(text):
        code = found["code"] or found["byte"]
        simple = found["simple"]
        yield found.start(), found.end(), chr(int(code, 16)) if code else _SIMPLE.get(simple, simple)


def _meaning(found: re.Match[str]) -> str:
    if found["simple"]:
        return _SIMPLE.get(found["simple"], found["simple"])
    if found["code"]:
        return chr(int(found["code"], 16))
    return chr(0x10000 + ((int(found["high"], 16) - 0xD800) << 10) + int(found["low"], 16) - 0xDC00)

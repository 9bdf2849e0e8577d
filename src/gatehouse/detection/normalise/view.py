"""Defines a view: a text in the form that patterns are matched against, with a map back to the caller's code points."""

from collections.abc import Iterable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Offsets = npt.NDArray[np.int64]
#: Start and end of a piece of a text, and its replacement.
Piece: TypeAlias = tuple[int, int, str]

#: JSON may contain lone surrogates, which UTF-8 cannot encode. Each is replaced by one character.
_SURROGATE_ERRORS: Final = "replace"
#: Maximum bytes of a text whose offsets are computed one by one. For a longer text, all offsets are computed once.
_MAX_UNINDEXED_BYTES: Final = 2048


class View:
    """A view of a source text.

    `text` is the normalised text. Its character `i` represents the code points from `starts[i]` to `ends[i]` of the
    source. If `starts` is None, each character represents the code point at the same position. If only `ends` is None,
    each character represents one code point. Code points between the end of one character and the start of the next are
    not part of the view."""

    __slots__ = ("_bytes", "_characters", "_narrow", "data", "ends", "starts", "text")

    def __init__(self, text: str, starts: Offsets | None = None, ends: Offsets | None = None) -> None:
        self.text = text
        self.data = text.encode("utf-8", _SURROGATE_ERRORS)
        self.starts = starts
        self.ends = ends
        self._narrow = len(self.data) == len(text)
        self._bytes: memoryview | None = None
        self._characters: memoryview | None = None

    def __len__(self) -> int:
        return len(self.text)

    def character(self, byte: int) -> int:
        """Return the index of the character that begins at `byte` of `data`."""
        if self._narrow:
            return byte
        if len(self.data) < _MAX_UNINDEXED_BYTES:
            return len(self.data[:byte].decode())
        if self._characters is None:
            # For each byte, the number of characters that begin before it. Access to an element of a memoryview is
            # faster than access to an element of an array.
            begins = np.cumsum((np.frombuffer(self.data, np.uint8) & 0xC0) != 0x80, dtype=np.int32)
            self._characters = np.concatenate((np.zeros(1, np.int32), begins)).data
        return int(self._characters[byte])

    def byte(self, character: int) -> int:
        """Return the byte of `data` at which `character` begins, or the length of `data` for the end of the text."""
        if self._narrow:
            return character
        if character >= len(self.text):
            return len(self.data)
        if len(self.data) < _MAX_UNINDEXED_BYTES:
            return len(self.text[:character].encode("utf-8", _SURROGATE_ERRORS))
        if self._bytes is None:
            self._bytes = np.flatnonzero((np.frombuffer(self.data, np.uint8) & 0xC0) != 0x80).data
        return int(self._bytes[character])

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the source that `text[start:end]` represents. `text[start:end]` must not be empty."""
        if self.starts is None:
            return start, end
        last = end - 1
        return int(self.starts[start]), int(self.starts[last]) + 1 if self.ends is None else int(self.ends[last])

    def start_of(self, character: int, length: int) -> int:
        """Return the source position of `character`, or `length` for the end of the text. `length` is the length of the
        source in code points."""
        if character >= len(self.text):
            return length
        return character if self.starts is None else int(self.starts[character])

    def at(self, offset: int) -> int:
        """Return the first character that begins at `offset` of the source or later."""
        if self.starts is None:
            return min(offset, len(self.text))
        return int(self.starts.searchsorted(offset))

    def around(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of characters that represent any part of the source from `start` to `end`. This part must
        not be empty."""
        first, last = self.at(start), self.at(end)
        if first and self.origin(first - 1, first)[1] > start:
            first -= 1
        return first, last

    def over(self, below: "View") -> "View":
        """Return a view with the text of this view and the source of `below`. The source of this view is
        `below.text`."""
        if below.starts is None:
            return self
        if self.starts is None:
            return View(self.text, below.starts, below.ends)
        last = self.starts if self.ends is None else self.ends - 1
        ends = below.starts[last] + 1 if below.ends is None else below.ends[last]
        return View(self.text, below.starts[self.starts], ends)

    def replaced(self) -> list[int]:
        """Return the indices of the characters that represent more than one code point of the source, in order."""
        if self.starts is None or self.ends is None:
            return []
        indices: list[int] = np.flatnonzero(self.ends - self.starts > 1).tolist()
        return indices

    def without(self, characters: Offsets) -> "View":
        """Return this view without the characters at the indices `characters`, which must be in order."""
        kept = np.ones(len(self.text), dtype=bool)
        kept[characters] = False
        pieces, last = [], 0
        for index in characters.tolist():
            pieces.append(self.text[last:index])
            last = index + 1
        pieces.append(self.text[last:])
        starts = np.flatnonzero(kept) if self.starts is None else self.starts[kept]
        return View("".join(pieces), starts, None if self.ends is None else self.ends[kept])


def spliced(text: str, pieces: Iterable[Piece]) -> View:
    """Return a view of `text` with each piece replaced. The pieces must be in order. Each character of a replacement
    represents the complete piece."""
    texts: list[str] = []
    # The view consists of gaps between pieces and of replacements, in turn. The three lists have the start and end of
    # each of them in the text, and its length in the view.
    begins: list[int] = [0]
    stops: list[int] = []
    lengths: list[int] = []
    last = 0
    for start, end, replacement in pieces:
        texts += (text[last:start], replacement)
        begins += (start, end)
        stops += (start, end)
        lengths += (start - last, len(replacement))
        last = end
    texts.append(text[last:])
    stops.append(len(text))
    lengths.append(len(text) - last)
    counts = np.array(lengths)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    in_gap = np.repeat(np.arange(len(counts)) % 2 == 0, counts)
    starts = np.repeat(begins, counts) + np.where(in_gap, within, 0)
    return View("".join(texts), starts, np.where(in_gap, starts + 1, np.repeat(stops, counts)))

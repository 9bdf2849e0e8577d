"""A text as the patterns see it, and the way back to the caller's code points."""

from collections.abc import Iterable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Offsets = npt.NDArray[np.int64]
#: Start and end in a text, and what stands there instead.
Piece: TypeAlias = tuple[int, int, str]

#: Lone surrogates, which JSON can hold and UTF-8 cannot, are read as one character each.
_SURROGATE: Final = "replace"
#: Below so many bytes an offset is counted when it is asked for; above, all are counted once.
_SHORT: Final = 2048


class View:
    """`text` is what is seen. Its character `i` stands for the code points `starts[i]` to `ends[i]` of the source;
    None: the view is the source, character by character. What is left out of a view stands before a character, between
    the end of one and the start of the next."""

    __slots__ = ("_bytes", "_characters", "_narrow", "data", "ends", "starts", "text")

    def __init__(self, text: str, starts: Offsets | None = None, ends: Offsets | None = None) -> None:
        self.text = text
        self.data = text.encode("utf-8", _SURROGATE)
        self.starts = starts
        self.ends = ends
        self._narrow = len(self.data) == len(text)
        self._bytes: memoryview | None = None
        self._characters: memoryview | None = None

    def __len__(self) -> int:
        return len(self.text)

    def character(self, byte: int) -> int:
        """The character that begins at `byte` of `data`."""
        if self._narrow:
            return byte
        if len(self.data) < _SHORT:
            return len(self.data[:byte].decode())
        if self._characters is None:
            # How many characters begin before each byte; a memoryview is read faster than an array.
            begins = np.cumsum((np.frombuffer(self.data, np.uint8) & 0xC0) != 0x80, dtype=np.int32)
            self._characters = np.concatenate((np.zeros(1, np.int32), begins)).data
        return int(self._characters[byte])

    def byte(self, character: int) -> int:
        """Where `character` begins in `data`; the end for the one past the last."""
        if self._narrow:
            return character
        if character >= len(self.text):
            return len(self.data)
        if len(self.data) < _SHORT:
            return len(self.text[:character].encode("utf-8", _SURROGATE))
        if self._bytes is None:
            self._bytes = np.flatnonzero((np.frombuffer(self.data, np.uint8) & 0xC0) != 0x80).data
        return int(self._bytes[character])

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """The code points of the source for `text[start:end]`, which is not empty."""
        if self.starts is None:
            return start, end
        last = end - 1
        return int(self.starts[start]), int(self.starts[last]) + 1 if self.ends is None else int(self.ends[last])

    def start_of(self, character: int, length: int) -> int:
        """Where `character` begins in a source of `length` code points: `length` for the one past the last."""
        if character >= len(self.text):
            return length
        return character if self.starts is None else int(self.starts[character])

    def at(self, offset: int) -> int:
        """The first character that stands for nothing before `offset` of the source."""
        if self.starts is None:
            return min(offset, len(self.text))
        return int(self.starts.searchsorted(offset))

    def around(self, start: int, end: int) -> tuple[int, int]:
        """The characters that stand for any of the source from `start` to `end`, which is not empty."""
        first, last = self.at(start), self.at(end)
        if first and self.origin(first - 1, first)[1] > start:
            first -= 1
        return first, last

    def over(self, below: "View") -> "View":
        """This view of `below.text` as a view of what `below` is a view of."""
        if below.starts is None:
            return self
        if self.starts is None:
            return View(self.text, below.starts, below.ends)
        last = self.starts if self.ends is None else self.ends - 1
        ends = below.starts[last] + 1 if below.ends is None else below.ends[last]
        return View(self.text, below.starts[self.starts], ends)

    def replaced(self) -> list[int]:
        """The characters that stand for more than one code point of the source, in order."""
        if self.starts is None or self.ends is None:
            return []
        indices: list[int] = np.flatnonzero(self.ends - self.starts > 1).tolist()
        return indices

    def without(self, characters: Offsets) -> "View":
        """This view without some of its characters, given by their indices in order."""
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
    """`text` with each piece, in order, replaced; each character of a replacement stands for the whole piece."""
    texts: list[str] = []
    # What the view is made of, gaps and replacements in turn: where each begins and ends in the text, and its length.
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

"""Finds the end of a request's body (RFC 9112, 6 and 7). Strict: every deviation is an error."""

import re
from typing import Final, Protocol

#: A line of the chunked coding: a size or nothing, and its line break as far as it has arrived. Chunk extensions are
#: refused: another reader could parse them differently and see a different next message.
_line: Final = re.compile(rb"([0-9A-Fa-f]{0,16})(?:(\r\n)|\r?\Z)").match


class Malformed(Exception):
    """The input is not a valid request, or two parsers could read different requests from it."""


class Framing(Protocol):
    #: whether the whole body has been taken
    done: bool

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the part of `data` that belongs to the body, and the rest after the body. Raises `Malformed`."""


class Sized:
    """A body whose length is in its head."""

    __slots__ = ("_left", "done")

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = False

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        left = self._left
        if len(data) < left:
            self._left = left - len(data)
            return data, b""
        self._left, self.done = 0, True
        return data[:left], data[left:]


class Chunked:
    """A body in the chunked coding. Trailers are refused: their fields would not be validated."""

    __slots__ = ("_after_chunk", "_last", "_left", "_partial_line", "done")

    def __init__(self) -> None:
        self.done = False
        self._partial_line = b""
        #: bytes of the current chunk that have not arrived
        self._left = 0
        #: whether the line break after a chunk's data is next, and whether the last chunk has been seen
        self._after_chunk = self._last = False

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        data, self._partial_line = self._partial_line + data, b""
        pieces: list[bytes] = []
        position = 0
        while position < len(data) and not self.done:
            if self._left:
                piece = data[position : position + self._left]
                pieces.append(piece)
                position += len(piece)
                self._left -= len(piece)
                continue
            line = _line(data, position)
            if line is None or (line[1] and (self._after_chunk or self._last)):
                raise Malformed
            if line[2] is None:
                self._partial_line, position = data[position:], len(data)
            else:
                self._end_line(line[1])
                position = line.end()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces), data[position:]

    def _end_line(self, size: bytes) -> None:
        if self._last:
            self.done = True
        elif self._after_chunk:
            self._after_chunk = False
        elif not size:
            raise Malformed
        else:
            self._left = int(size, 16)
            self._last = not self._left
            self._after_chunk = not self._last

"""Finds the end of a request's body (RFC 9112, 6 and 7). Every deviation from the standard is an error."""

import re
from typing import Final, Protocol

#: A line of the chunked coding: a size or nothing, and the part of its line break that has arrived. Chunk extensions
#: are refused, because another server could parse them differently and recognize a different next request.
_line: Final = re.compile(rb"([0-9A-Fa-f]{0,16})(?:(\r\n)|\r?\Z)").match


class Malformed(Exception):
    """The input is not a valid request, or different servers could parse it as different requests."""


class Framing(Protocol):
    #: whether the complete body has been taken
    done: bool

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the bytes of `data` that are content of the body, and the bytes after the body. Raises `Malformed`."""


class Sized:
    """A body whose length is in the head of the request."""

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
    """A body in the chunked coding. Trailers are refused, because their fields would not be validated."""

    __slots__ = ("_after_chunk", "_last", "_left", "_partial_line", "done")

    def __init__(self) -> None:
        self.done = False
        self._partial_line = b""
        #: bytes of the current chunk that have not arrived
        self._left = 0
        #: `_after_chunk`: the line break after the data of a chunk is next; `_last`: the last chunk has been taken
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

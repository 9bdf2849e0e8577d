"""Where a request's body ends on the wire (RFC 9112, 6 and 7), and nothing lenient about it."""

import re
from typing import Final, Protocol

#: A line of the chunked coding: a size or nothing, and its end, as far as it is here. No extension: nobody here knows
#: one, and whoever reads it otherwise sees another message behind it.
_line: Final = re.compile(rb"([0-9A-Fa-f]{0,16})(?:(\r\n)|\r?\Z)").match


class Malformed(Exception):
    """What has arrived is no request, or two readers could see two different ones in it."""


class Framing(Protocol):
    #: whether all of the body was taken
    done: bool

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        """What of it belongs to the body, and what lies behind its end. Raises `Malformed`."""


class Sized:
    """A body of a length that its head has told."""

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
    """A body in chunks. Trailers are refused: they would be fields that nobody has judged."""

    __slots__ = ("_behind", "_kept", "_last", "_left", "done")

    def __init__(self) -> None:
        self.done = False
        #: the beginning of a line
        self._kept = b""
        #: what is missing of a chunk
        self._left = 0
        #: whether a chunk is over but for its line's end, and whether it was the last
        self._behind = self._last = False

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        data, self._kept = self._kept + data, b""
        pieces: list[bytes] = []
        at = 0
        while at < len(data) and not self.done:
            if self._left:
                piece = data[at : at + self._left]
                pieces.append(piece)
                at += len(piece)
                self._left -= len(piece)
                continue
            line = _line(data, at)
            if line is None or (line[1] and (self._behind or self._last)):
                raise Malformed
            if line[2] is None:
                self._kept, at = data[at:], len(data)
            else:
                self._line_over(line[1])
                at = line.end()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces), data[at:]

    def _line_over(self, size: bytes) -> None:
        if self._last:
            self.done = True
        elif self._behind:
            self._behind = False
        elif not size:
            raise Malformed
        else:
            self._left = int(size, 16)
            self._last = not self._left
            self._behind = not self._last

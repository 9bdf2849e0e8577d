"""Splits server-sent events at event boundaries, independent of the network's chunks."""

import re
from collections.abc import Callable, Iterator

#: maximum size of the buffered, incomplete event; an image in an answer is one event of some megabytes
MAX_EVENT_BYTES = 8 * 1024 * 1024

_BOUNDARY = re.compile(rb"\r?\n\r?\n")


class EventTooLarge(Exception):
    """More than `MAX_EVENT_BYTES` of an event are buffered, and its end has not arrived."""


class Splitter:
    """Buffers the incomplete event at the end of the input. Its work is linear in the size of an event, regardless of
    the number of chunks."""

    __slots__ = ("_pieces", "_seam", "_size")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        #: the last buffered bytes, in which a boundary may begin
        self._seam = b""

    def push(self, chunk: bytes) -> bytes:
        """Return all complete events so far, unchanged, in one block; empty if there is none. Raises
        `EventTooLarge`."""
        if self._pieces:
            joint = self._seam + chunk
            if not _last_boundary(joint):
                self._buffer(chunk, joint)
                return b""
            chunk = self.take_rest() + chunk
        cut = _last_boundary(chunk)
        if cut == len(chunk):
            return chunk
        rest = chunk[cut:]
        self._buffer(rest, rest)
        return chunk[:cut]

    def take_rest(self) -> bytes:
        """Return and clear the buffered bytes."""
        rest = b"".join(self._pieces)
        self._pieces, self._size, self._seam = [], 0, b""
        return rest

    def _buffer(self, piece: bytes, end: bytes) -> None:
        self._size += len(piece)
        if self._size > MAX_EVENT_BYTES:
            raise EventTooLarge
        self._pieces.append(piece)
        self._seam = end[-3:]


def events(block: bytes) -> Iterator[bytes]:
    """Yields the events of a block of `Splitter.push`, each with its separator."""
    if b"\r" not in block:
        *whole, rest = block.split(b"\n\n")
        for event in whole:
            yield event + b"\n\n"
        if rest:
            yield rest
        return
    start = 0
    while start < len(block):
        end = _end_of_event(block, start)
        yield block[start:end]
        start = end


def up_to_fault(block: bytes, fault_in: Callable[[bytes], str | None]) -> tuple[bytes, str | None]:
    """Return the events before the first error and the result of `fault_in` for it; without an error, the whole block
    and None."""
    position = 0
    for event in events(block):
        fault = fault_in(data_of(event))
        if fault is not None:
            return block[:position], fault
        position += len(event)
    return block, None


def event_at(block: bytes, position: int) -> tuple[int, int]:
    """Return the start and end of the event at a position."""
    start = block.rfind(b"\n\n", 0, position) + 2
    # An unsuccessful search scans the whole block, so search for CRLF only if there is a CR.
    if b"\r" in block:
        start = max(start, block.rfind(b"\n\r\n", 0, position) + 3)
    # `rfind` returns -1 if there is no separator, which gives 1 (LF) or 2 (CRLF). The event then starts at 0.
    return (start if start > 2 else 0), _end_of_event(block, position)


def data_of(event: bytes) -> bytes:
    """Return the event's data with its lines joined; empty for a comment."""
    if event.startswith(b"data: ") and b"\n" not in (plain := event[6:].rstrip(b"\r\n")):
        return plain
    lines = [_value(line) for line in event.splitlines() if line.startswith(b"data")]
    return lines[0] if len(lines) == 1 else b"\n".join(lines)


def frame(data: bytes, name: str | None = None) -> bytes:
    if name is None:
        return b"data: " + data + b"\n\n"
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"


def _value(line: bytes) -> bytes:
    value = line.partition(b":")[2]
    return value[1:] if value.startswith(b" ") else value


def _last_boundary(data: bytes) -> int:
    """Return the end of the last complete event. Searches for CRLF only if there is a CR."""
    if b"\r" not in data:
        if data.endswith(b"\n\n"):
            return len(data)
        return data.rfind(b"\n\n") + 2 if b"\n\n" in data else 0
    end = 0
    for boundary in _BOUNDARY.finditer(data):
        end = boundary.end()
    return end


def _end_of_event(block: bytes, position: int) -> int:
    plain = block.find(b"\n\n", position)
    if b"\r" not in block:
        return plain + 2 if plain >= 0 else len(block)
    boundary = _BOUNDARY.search(block, position)
    return boundary.end() if boundary is not None else len(block)

"""AWS's binary framing of a stream of events: lengths, headers and a payload, under two checksums."""

import struct
from collections.abc import Iterator, Mapping
from typing import Final
from zlib import crc32

import msgspec

from gatehouse.engine.conversation.sse import MAX_EVENT_BYTES

CONTENT_TYPE: Final = "application/vnd.amazon.eventstream"

#: Lengths of the frame and of its headers, and the checksum of both.
_PRELUDE: Final = struct.Struct("!III")
_CRC: Final = struct.Struct("!I")
_SHORT: Final = struct.Struct("!H")
#: Sizes in bytes of header values of fixed size, by type: booleans, numbers, a timestamp, a UUID.
_FIXED_SIZES: Final = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_BYTES_TYPE: Final = 6
_TEXT_TYPE: Final = 7


class Frame(msgspec.Struct, frozen=True, gc=False):
    """A message of the stream. `headers` contains the headers with text values."""

    headers: Mapping[str, str]
    payload: bytes


class BadFrame(ValueError):
    """The bytes are not a valid frame, or were corrupted."""


class Frames:
    """Splits bytes of the network into frames. The work for a frame is linear in its size."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def empty(self) -> bool:
        """Return whether no incomplete frame is buffered."""
        return not self._buffer

    def push(self, chunk: bytes) -> Iterator[Frame]:
        """Yield the complete frames. Raises `BadFrame` after the frames before it were yielded."""
        self._buffer += chunk
        while (size := self._next_size()) is not None:
            whole = bytes(self._buffer[:size])
            del self._buffer[:size]
            yield _read(whole)

    def _next_size(self) -> int | None:
        """Return the size of the next frame; None while it is incomplete."""
        if len(self._buffer) < _PRELUDE.size:
            return None
        size, headers, checksum = _PRELUDE.unpack_from(self._buffer)
        if crc32(self._buffer[: _PRELUDE.size - _CRC.size]) != checksum:
            raise BadFrame("checksum of a prelude")
        if size > MAX_EVENT_BYTES or headers > size - _PRELUDE.size - _CRC.size:
            raise BadFrame("lengths")
        return size if len(self._buffer) >= size else None


def _read(frame: bytes) -> Frame:
    (checksum,) = _CRC.unpack_from(frame, len(frame) - _CRC.size)
    if crc32(frame[: -_CRC.size]) != checksum:
        raise BadFrame("checksum of a message")
    end = _PRELUDE.size + _PRELUDE.unpack_from(frame)[1]
    return Frame(dict(_headers(frame[_PRELUDE.size : end])), frame[end : -_CRC.size])


def _headers(data: bytes) -> Iterator[tuple[str, str]]:
    position = 0
    try:
        while position < len(data):
            name_end = position + 1 + data[position]
            name, value_type = data[position + 1 : name_end].decode(), data[name_end]
            position = name_end + 1
            if value_type in _FIXED_SIZES:
                position += _FIXED_SIZES[value_type]
                continue
            if value_type not in {_BYTES_TYPE, _TEXT_TYPE}:
                raise BadFrame("type of a header")
            (length,) = _SHORT.unpack_from(data, position)
            position += _SHORT.size + length
            if value_type == _TEXT_TYPE:
                yield name, data[position - length : position].decode()
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise BadFrame("headers") from error
    if position != len(data):
        raise BadFrame("length of headers")

"""AWS's binary framing of a stream of events: lengths, headers and a payload, under two checksums."""

import struct
from collections.abc import Iterator, Mapping
from typing import Final
from zlib import crc32

import msgspec

from gatehouse.engine.conversation.sse import MAX_EVENT_BYTES

CONTENT_TYPE: Final = "application/vnd.amazon.eventstream"

#: Lengths of the whole and of its headers, and the checksum of both.
_PRELUDE: Final = struct.Struct("!III")
_CRC: Final = struct.Struct("!I")
_SHORT: Final = struct.Struct("!H")
#: Bytes of a header's value by its type, where they are fixed: the booleans, numbers, a time, a UUID.
_FIXED: Final = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_BYTES: Final = 6
_TEXT: Final = 7


class Frame(msgspec.Struct, frozen=True, gc=False):
    """`headers` are those with a text for a value."""

    headers: Mapping[str, str]
    payload: bytes


class BadFrame(ValueError):
    """Bytes that are no frame, or not those that were sent."""


class Frames:
    """Cuts what the network brings into frames. What it does for a frame grows with its size alone."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = bytearray()

    @property
    def empty(self) -> bool:
        """Whether nothing is left of a frame that has not come to its end."""
        return not self._held

    def push(self, chunk: bytes) -> Iterator[Frame]:
        """Raises `BadFrame`, after the frames before it were given."""
        self._held += chunk
        while (size := self._next_size()) is not None:
            whole = bytes(self._held[:size])
            del self._held[:size]
            yield _read(whole)

    def _next_size(self) -> int | None:
        """Of the next frame, None while it is not all there."""
        if len(self._held) < _PRELUDE.size:
            return None
        size, headers, checksum = _PRELUDE.unpack_from(self._held)
        if crc32(self._held[: _PRELUDE.size - _CRC.size]) != checksum:
            raise BadFrame("checksum of a prelude")
        if size > MAX_EVENT_BYTES or headers > size - _PRELUDE.size - _CRC.size:
            raise BadFrame("lengths")
        return size if len(self._held) >= size else None


def _read(frame: bytes) -> Frame:
    (checksum,) = _CRC.unpack_from(frame, len(frame) - _CRC.size)
    if crc32(frame[: -_CRC.size]) != checksum:
        raise BadFrame("checksum of a message")
    end = _PRELUDE.size + _PRELUDE.unpack_from(frame)[1]
    return Frame(dict(_headers(frame[_PRELUDE.size : end])), frame[end : -_CRC.size])


def _headers(data: bytes) -> Iterator[tuple[str, str]]:
    at = 0
    try:
        while at < len(data):
            name_end = at + 1 + data[at]
            name, kind = data[at + 1 : name_end].decode(), data[name_end]
            at = name_end + 1
            if kind in _FIXED:
                at += _FIXED[kind]
                continue
            if kind not in {_BYTES, _TEXT}:
                raise BadFrame("type of a header")
            (length,) = _SHORT.unpack_from(data, at)
            at += _SHORT.size + length
            if kind == _TEXT:
                yield name, data[at - length : at].decode()
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise BadFrame("headers") from error
    if at != len(data):
        raise BadFrame("length of headers")

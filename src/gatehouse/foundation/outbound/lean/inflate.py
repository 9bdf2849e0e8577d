"""A packed body, unpacked a bounded piece at a time: what it would come to in the end is never held."""

import zlib
from typing import Final

from gatehouse.foundation.outbound import BrokenOff

_PIECE: Final = 64 * 1024

_GZIP: Final = 16 + zlib.MAX_WBITS
_ENCODINGS: Final = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": zlib.MAX_WBITS}


def inflater(encoding: str) -> "Inflater | None":
    """None for a body that is sent as it is. Raises `BrokenOff` for an encoding that was not asked for and that nobody
    here can read."""
    if encoding in {"", "identity"}:
        return None
    wbits = _ENCODINGS.get(encoding)
    if wbits is None:
        raise BrokenOff
    return Inflater(wbits)


class Inflater:
    def __init__(self, wbits: int) -> None:
        self._wbits = wbits
        self._packed = b""
        self._unpacking = zlib.decompressobj(wbits)
        self._begun = False
        # What was put in is used up, but the last piece was full.
        self._more = False

    def put(self, packed: bytes) -> None:
        """After `take` has given nothing."""
        if not self._begun:
            # Many send what `deflate` is named after, without the wrapping that it means.
            if self._wbits == zlib.MAX_WBITS and packed[0] & 0x0F != 8:
                self._wbits = -zlib.MAX_WBITS
                self._unpacking = zlib.decompressobj(self._wbits)
            self._begun = True
        self._packed = packed

    def take(self) -> bytes:
        """Some of it; nothing when more has to be put first. Raises `BrokenOff`."""
        while self._packed or self._more:
            if self._unpacking.eof:
                if self._wbits != _GZIP:
                    raise BrokenOff
                # A second member, or padding.
                self._packed = self._packed.lstrip(b"\0")
                if not self._packed:
                    break
                self._unpacking = zlib.decompressobj(self._wbits)
            try:
                piece = self._unpacking.decompress(self._packed, _PIECE)
            except zlib.error:
                raise BrokenOff from None
            self._packed = self._unpacking.unconsumed_tail or self._unpacking.unused_data
            self._more = len(piece) == _PIECE and not self._unpacking.eof
            if piece:
                return piece
        return b""

    def end(self) -> None:
        """Raises `BrokenOff` where more should have come."""
        if self._begun and not self._unpacking.eof:
            raise BrokenOff

"""Decompresses a body in pieces of bounded size, so that a decompression bomb does not fill the memory."""

import zlib
from typing import Final

from gatehouse.foundation.outbound import BrokenOff

_PIECE_BYTES: Final = 64 * 1024

_GZIP_WBITS: Final = 16 + zlib.MAX_WBITS
_WBITS: Final = {"gzip": _GZIP_WBITS, "x-gzip": _GZIP_WBITS, "deflate": zlib.MAX_WBITS}


def make_inflater(encoding: str) -> "Inflater | None":
    """Returns the decompressor for a content encoding, or None for `identity`. Raises `BrokenOff` for an unsupported
    encoding."""
    if encoding in {"", "identity"}:
        return None
    wbits = _WBITS.get(encoding)
    if wbits is None:
        raise BrokenOff
    return Inflater(wbits)


class Inflater:
    """Decompresses one body. Call `put` with some input, then `take` until it returns nothing, and so on."""

    def __init__(self, wbits: int) -> None:
        self._wbits = wbits
        self._input = b""
        self._decompressor = zlib.decompressobj(wbits)
        self._begun = False
        # Whether more output may follow without further input, because the last piece was full.
        self._more = False

    def put(self, compressed: bytes) -> None:
        """Adds input. Call it only after `take` has returned nothing."""
        if not self._begun:
            # Many servers send raw deflate data without the zlib header that `deflate` requires.
            if self._wbits == zlib.MAX_WBITS and compressed[0] & 0x0F != 8:
                self._wbits = -zlib.MAX_WBITS
                self._decompressor = zlib.decompressobj(self._wbits)
            self._begun = True
        self._input = compressed

    def take(self) -> bytes:
        """Returns some output, or no bytes if more input is needed. Raises `BrokenOff` for invalid input."""
        while self._input or self._more:
            if self._decompressor.eof:
                if self._wbits != _GZIP_WBITS:
                    raise BrokenOff
                # A second gzip member, or padding, follows the end of the first.
                self._input = self._input.lstrip(b"\0")
                if not self._input:
                    break
                self._decompressor = zlib.decompressobj(self._wbits)
            try:
                piece = self._decompressor.decompress(self._input, _PIECE_BYTES)
            except zlib.error:
                raise BrokenOff from None
            self._input = self._decompressor.unconsumed_tail or self._decompressor.unused_data
            self._more = len(piece) == _PIECE_BYTES and not self._decompressor.eof
            if piece:
                return piece
        return b""

    def end(self) -> None:
        """Checks that the body is complete. Raises `BrokenOff` if it is not."""
        if self._begun and not self._decompressor.eof:
            raise BrokenOff

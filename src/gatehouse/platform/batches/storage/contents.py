"""Seals the contents of a file or a batch under a key of its own, which is sealed under the master key.

So a rotation of the master key re-seals one short key for each file or batch. Once the row with the key is deleted,
remaining copies of the contents cannot be decrypted.
"""

import os
from typing import Final
from uuid import UUID

from gatehouse.foundation.secrets.sealing import SealedText, Sealer

_KEY_BYTES: Final = 32
_KEY_ID: Final = "b"


def key_context(row_id: object) -> bytes:
    """Return the context under which the key of a file or batch is sealed."""
    return f"batch contents:{row_id}".encode()


class BatchContents:
    """Seals and opens the contents of one file or batch. `part` is `chunk`, `request` or `result`, and `number` is
    the number of the chunk or line."""

    def __init__(self, key: bytes) -> None:
        self._sealer = Sealer({_KEY_ID: key}, _KEY_ID)

    @classmethod
    def new(cls, sealer: Sealer, row_id: UUID) -> "tuple[SealedText, BatchContents]":
        """Create a new key. Returns the sealed key, and the contents that use it."""
        key = os.urandom(_KEY_BYTES)
        return sealer.seal(key, context=key_context(row_id)), cls(key)

    @classmethod
    def of(cls, sealer: Sealer, row_id: UUID, sealed_key: str) -> "BatchContents":
        return cls(sealer.open(sealed_key, context=key_context(row_id)))

    def seal(self, content: bytes, part: str, number: int) -> str:
        return self._sealer.seal(content, context=f"{part}:{number}".encode())

    def open(self, sealed: str, part: str, number: int) -> bytes:
        return self._sealer.open(sealed, context=f"{part}:{number}".encode())

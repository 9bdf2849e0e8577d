"""Seals and opens the texts of a conversation under a key of the conversation, which is sealed under the master key.

So a rotation of the master key re-seals one short key for each conversation, and not every message. Once a conversation
and its key are deleted, copies of its messages cannot be read.
"""

import os
from typing import Final
from uuid import UUID

from gatehouse.foundation.secrets.sealing import SealedText, Sealer

_KEY_BYTES: Final = 32
_KEY_ID: Final = "c"


def key_context(conversation_id: object) -> bytes:
    """Return the context under which the conversation's key is sealed."""
    return f"conversation:{conversation_id}".encode()


class SealedContents:
    """Seals and opens the texts of one conversation. `context` is the id of a message, `title` or `summary`."""

    def __init__(self, key: bytes) -> None:
        self._sealer = Sealer({_KEY_ID: key}, _KEY_ID)

    @classmethod
    def new(cls, sealer: Sealer, conversation_id: UUID) -> "tuple[SealedText, SealedContents]":
        """Create a new key. Returns the sealed key, and the contents that use it."""
        key = os.urandom(_KEY_BYTES)
        return sealer.seal(key, context=key_context(conversation_id)), cls(key)

    @classmethod
    def of(cls, sealer: Sealer, conversation_id: UUID, sealed_key: str) -> "SealedContents":
        return cls(sealer.open(sealed_key, context=key_context(conversation_id)))

    def seal(self, text: str, context: object) -> str:
        return self._sealer.seal(text.encode(), context=str(context).encode())

    def open(self, sealed: str | None, context: object) -> str | None:
        return None if sealed is None else self._sealer.open(sealed, context=str(context).encode()).decode()

"""Seals and opens a conversation's texts under a key of the conversation, which is sealed under the master key.

A rotation of the master key therefore re-seals one short key for each conversation, not every message. The messages of
a deleted conversation cannot be read from copies without its key.
"""

import os
from typing import Final
from uuid import UUID

from gatehouse.foundation.secrets.sealing import SealedText, Sealer

_KEY_BYTES: Final = 32
_KEY_ID: Final = "c"


def key_context(conversation_id: object) -> bytes:
    """Return the context of the sealed key."""
    return f"conversation:{conversation_id}".encode()


class SealedContents:
    """Seals and opens one conversation's texts. `context` is a message's id, `title` or `summary`."""

    def __init__(self, key: bytes) -> None:
        self._sealer = Sealer({_KEY_ID: key}, _KEY_ID)

    @classmethod
    def new(cls, sealer: Sealer, conversation_id: UUID) -> "tuple[SealedText, SealedContents]":
        """Create a key. Return the sealed key and the contents."""
        key = os.urandom(_KEY_BYTES)
        return sealer.seal(key, context=key_context(conversation_id)), cls(key)

    @classmethod
    def of(cls, sealer: Sealer, conversation_id: UUID, sealed_key: str) -> "SealedContents":
        return cls(sealer.open(sealed_key, context=key_context(conversation_id)))

    def seal(self, text: str, context: object) -> str:
        return self._sealer.seal(text.encode(), context=str(context).encode())

    def open(self, sealed: str | None, context: object) -> str | None:
        return None if sealed is None else self._sealer.open(sealed, context=str(context).encode()).decode()

"""A conversation's texts at rest, each sealed under a key of the conversation's own.

Only that key is sealed under the master key: another master key means sealing one short text a conversation again, not
every message, and a deleted conversation cannot be read from what copies hold of its messages.
"""

import os
from typing import Final
from uuid import UUID

from gatehouse.foundation.sealing import SealedText, Sealer

_KEY_BYTES: Final = 32
_KEY_ID: Final = "c"


def key_context(conversation_id: object) -> bytes:
    """What the sealed key is bound to."""
    return f"conversation:{conversation_id}".encode()


class Contents:
    """Seals and opens one conversation's texts. What a text is bound to is a message's id, `title` or `summary`."""

    def __init__(self, key: bytes) -> None:
        self._sealer = Sealer({_KEY_ID: key}, _KEY_ID)

    @classmethod
    def new(cls, sealer: Sealer, conversation_id: UUID) -> "tuple[SealedText, Contents]":
        """With its key, sealed."""
        key = os.urandom(_KEY_BYTES)
        return sealer.seal(key, context=key_context(conversation_id)), cls(key)

    @classmethod
    def of(cls, sealer: Sealer, conversation_id: UUID, sealed_key: str) -> "Contents":
        return cls(sealer.open(sealed_key, context=key_context(conversation_id)))

    def seal(self, text: str, what: object) -> str:
        return self._sealer.seal(text.encode(), context=str(what).encode())

    def open(self, sealed: str | None, what: object) -> str | None:
        return None if sealed is None else self._sealer.open(sealed, context=str(what).encode()).decode()

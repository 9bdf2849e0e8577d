"""Seals and opens samples. Each sample is sealed with its own key, and the master key seals that key. A rotation of the
master key therefore re-seals one short key for each sample, and not the contents.
"""

import os
import time
from typing import Final
from uuid import UUID

from gatehouse.engine.records.samples import Contents, decode
from gatehouse.foundation.secrets.sealing import Sealer

#: Maximum number of samples of one organization that one worker keeps per minute.
MAX_PER_MINUTE: Final = 20

_KEY_BYTES: Final = 32
_KEY_ID: Final = "s"
#: Context of the sealed contents. It is constant, because their key has no other use.
_CONTENTS_CONTEXT: Final = b"texts"


def key_context(tenant_id: object, sample_id: object) -> bytes:
    """Return the context of the sealed key."""
    return f"dlp_sample:{tenant_id}:{sample_id}".encode()


def decrypt(sealer: Sealer, tenant_id: UUID, sample_id: UUID, sealed_key: str, contents: str) -> Contents:
    """Return the decrypted contents of a sample. Raises `CannotOpen`."""
    key = sealer.open(sealed_key, context=key_context(tenant_id, sample_id))
    return decode(_sealer_of(key).open(contents, context=_CONTENTS_CONTEXT))


class SealingSampler:
    """Implements the engine's `Sampler` for one worker."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        self._minute = 0
        #: Number of samples of the current minute by organization.
        self._counts: dict[UUID, int] = {}

    def admits(self, tenant_id: UUID) -> bool:
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._counts = minute, {}
        count = self._counts.get(tenant_id, 0)
        if count >= MAX_PER_MINUTE:
            return False
        self._counts[tenant_id] = count + 1
        return True

    def seal(self, tenant_id: UUID, sample_id: UUID, contents: bytes) -> tuple[str, str]:
        """Return the sealed key and the sealed contents."""
        key = os.urandom(_KEY_BYTES)
        sealed = _sealer_of(key).seal(contents, context=_CONTENTS_CONTEXT)
        return self._sealer.seal(key, context=key_context(tenant_id, sample_id)), sealed


def _sealer_of(key: bytes) -> Sealer:
    return Sealer({_KEY_ID: key}, _KEY_ID)

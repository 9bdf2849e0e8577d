"""What a sample says, at rest: sealed under a key of the sample's own.

Only that key is sealed under the master key: another master key means sealing one short text a sample again.
"""

import os
import time
from typing import Final
from uuid import UUID

from gatehouse.engine.samples import Contents, decode
from gatehouse.foundation.sealing import Sealer

#: Of an organization, that one worker keeps in a minute.
MAX_PER_MINUTE: Final = 20

_KEY_BYTES: Final = 32
_KEY_ID: Final = "s"
#: What the contents are bound to: their key has no other use.
_TEXTS: Final = b"texts"


def key_context(tenant_id: object, sample_id: object) -> bytes:
    """What the sealed key is bound to."""
    return f"dlp_sample:{tenant_id}:{sample_id}".encode()


def opened(sealer: Sealer, tenant_id: UUID, sample_id: UUID, sealed_key: str, contents: str) -> Contents:
    """Raises `CannotOpen`."""
    key = sealer.open(sealed_key, context=key_context(tenant_id, sample_id))
    return decode(_under(key).open(contents, context=_TEXTS))


class SealingSampler:
    """One worker's: the engine's `Sampler`."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        self._minute = 0
        #: by organization, of this minute
        self._kept: dict[UUID, int] = {}

    def admits(self, tenant_id: UUID) -> bool:
        minute = int(time.monotonic() // 60)
        if minute != self._minute:
            self._minute, self._kept = minute, {}
        kept = self._kept.get(tenant_id, 0)
        if kept >= MAX_PER_MINUTE:
            return False
        self._kept[tenant_id] = kept + 1
        return True

    def seal(self, tenant_id: UUID, sample_id: UUID, contents: bytes) -> tuple[str, str]:
        key = os.urandom(_KEY_BYTES)
        sealed = _under(key).seal(contents, context=_TEXTS)
        return self._sealer.seal(key, context=key_context(tenant_id, sample_id)), sealed


def _under(key: bytes) -> Sealer:
    return Sealer({_KEY_ID: key}, _KEY_ID)

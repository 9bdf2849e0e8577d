"""Sealed checkpoints of archived files. Only the owner of the master key can create a checkpoint, so files cannot be
forged.
"""

from typing import Any
from uuid import UUID

import msgspec

from gatehouse.foundation.secrets.sealing import SealedText, Sealer


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The expected properties of a kept file."""

    records: str
    rows: int
    #: SHA-256 digest of the file in hexadecimal
    sha256: str
    #: for a file of audit events: the first and the last sequence, `prev_hash` of the first event, and the hash of the
    #: last event
    first_sequence: int | None = None
    last_sequence: int | None = None
    prev_hash: str | None = None
    hash: str | None = None
    #: whether the file has expired and was deleted. The archiver seals this mark again, so that it cannot be forged
    gone: bool = False


def context(tenant_id: Any, file_id: Any) -> bytes:
    """Return the context that binds a sealed checkpoint to its file."""
    return f"archive_checkpoint:{tenant_id}:{file_id}".encode()


def seal(sealer: Sealer, tenant_id: UUID, file_id: UUID, checkpoint: Checkpoint) -> SealedText:
    return sealer.seal(msgspec.json.encode(checkpoint), context=context(tenant_id, file_id))


def opened(sealer: Sealer, tenant_id: UUID, file_id: UUID, sealed: str) -> Checkpoint:
    """Open a sealed checkpoint. Raises `CannotOpen`."""
    return msgspec.json.decode(sealer.open(sealed, context=context(tenant_id, file_id)), type=Checkpoint)

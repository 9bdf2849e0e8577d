"""Sealed checkpoints of archived files. Only the owner of the master key can create one, so files cannot be forged."""

from typing import Any
from uuid import UUID

import msgspec

from gatehouse.foundation.secrets.sealing import SealedText, Sealer


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The expected properties of a kept file."""

    records: str
    rows: int
    #: of the file's bytes, hexadecimal
    sha256: str
    #: of a file of audit events: the first and last sequence, the first event's `prev_hash`, the last event's hash
    first_sequence: int | None = None
    last_sequence: int | None = None
    prev_hash: str | None = None
    hash: str | None = None
    #: whether the file has expired and was deleted; sealed again by the archiver, so that it cannot be forged
    gone: bool = False


def context(tenant_id: Any, file_id: Any) -> bytes:
    """Return the context that binds a sealed checkpoint to its file."""
    return f"archive_checkpoint:{tenant_id}:{file_id}".encode()


def seal(sealer: Sealer, tenant_id: UUID, file_id: UUID, checkpoint: Checkpoint) -> SealedText:
    return sealer.seal(msgspec.json.encode(checkpoint), context=context(tenant_id, file_id))


def opened(sealer: Sealer, tenant_id: UUID, file_id: UUID, sealed: str) -> Checkpoint:
    """Open a sealed checkpoint. Raises `CannotOpen`."""
    return msgspec.json.decode(sealer.open(sealed, context=context(tenant_id, file_id)), type=Checkpoint)

"""What a kept file has to be like, sealed: only who has the master key can say that a file is the archive's."""

from typing import Any
from uuid import UUID

import msgspec

from gatehouse.foundation.sealing import SealedText, Sealer


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    records: str
    rows: int
    #: of the file's bytes, hexadecimal
    sha256: str
    #: of audit events: the first and last sequence, the hash that the first follows, and the last's
    first_sequence: int | None = None
    last_sequence: int | None = None
    prev_hash: str | None = None
    hash: str | None = None
    #: its time was over: said again under the seal, so that nobody else can say it
    gone: bool = False


def context(tenant_id: Any, file_id: Any) -> bytes:
    """What the sealed text is bound to."""
    return f"archive_checkpoint:{tenant_id}:{file_id}".encode()


def seal(sealer: Sealer, tenant_id: UUID, file_id: UUID, checkpoint: Checkpoint) -> SealedText:
    return sealer.seal(msgspec.json.encode(checkpoint), context=context(tenant_id, file_id))


def opened(sealer: Sealer, tenant_id: UUID, file_id: UUID, sealed: str) -> Checkpoint:
    """Raises `CannotOpen`."""
    return msgspec.json.decode(sealer.open(sealed, context=context(tenant_id, file_id)), type=Checkpoint)

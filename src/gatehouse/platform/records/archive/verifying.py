"""Verifies archived files against their sealed checkpoint: the digest of a file and, for audit events, the range of the
chain.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from gatehouse.foundation.lazy_import import LazyModule
from gatehouse.foundation.secrets.sealing import CannotOpen, Sealer
from gatehouse.platform.records.archive.storage import files
from gatehouse.platform.records.archive.storage.checkpoints import Checkpoint, opened
from gatehouse.platform.records.archive.storage.manifest import ArchiveFile
from gatehouse.platform.records.archive.storage.places import ArchiveStorage

pa: Any = LazyModule("pyarrow")


class DamagedFile(Exception):
    """A file is damaged or forged. The message describes the fault for the operator."""


class ChainRange(NamedTuple):
    """The range of a tenant's audit chain that a file of audit events contains."""

    first: int
    last: int
    prev_hash: bytes
    hash: bytes


def checkpoint(sealer: Sealer, file: ArchiveFile) -> Checkpoint:
    """Open the checkpoint of the file. Raises `DamagedFile`."""
    try:
        return opened(sealer, file.tenant_id, file.id, file.sealed_checkpoint)
    except CannotOpen as error:
        raise DamagedFile(f"its checkpoint does not open under the master key: {error}") from None


def check(sealer: Sealer, storage: ArchiveStorage, file: ArchiveFile) -> None:
    """Read the whole file, and compare it with its checkpoint. Raises `DamagedFile`."""
    expected = checkpoint(sealer, file)
    try:
        with storage.open(file.path) as source:
            size, sha256 = files.digest(source)
    except OSError as error:
        raise DamagedFile(f"it cannot be read: {error}".split("\n", 1)[0]) from None
    if (size, sha256, expected.records, expected.rows) != (file.bytes, expected.sha256, file.records, file.rows):
        raise DamagedFile("it differs from the file that was archived")


def chain_range(sealer: Sealer, file: ArchiveFile) -> ChainRange:
    """Return the range of the chain in a file of audit events, which may have expired. Raises `DamagedFile`."""
    sealed = checkpoint(sealer, file)
    if sealed.gone != (file.state == "gone"):
        raise DamagedFile(
            "it is marked as expired, but its checkpoint is not"
            if not sealed.gone
            else "its checkpoint is marked as expired, but the file is not"
        )
    if sealed.first_sequence is None or sealed.last_sequence is None or sealed.prev_hash is None or sealed.hash is None:
        raise DamagedFile("its checkpoint does not belong to audit events")
    return ChainRange(
        sealed.first_sequence, sealed.last_sequence, bytes.fromhex(sealed.prev_hash), bytes.fromhex(sealed.hash)
    )


def events(storage: ArchiveStorage, file: ArchiveFile) -> Iterator[dict[str, Any]]:
    """Yield the audit events of a file in the order of the chain, with the values that the database had. Raises
    `DamagedFile`."""
    try:
        with storage.open(file.path) as source:
            for group in files.read(source):
                yield from map(_as_stored, group.to_pylist())
    except (OSError, pa.ArrowInvalid) as error:
        raise DamagedFile(f"it cannot be read: {error}".split("\n", 1)[0]) from None


def _as_stored(row: dict[str, Any]) -> dict[str, Any]:
    for name in ("salt", "personal_digest", "prev_hash", "hash"):
        row[name] = None if row[name] is None else bytes.fromhex(row[name])
    return row

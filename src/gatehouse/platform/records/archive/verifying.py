"""Whether the archive's files are what was kept: each one's digest, under the master key's seal, and its audit events'
place in the chain."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from gatehouse.foundation.lazily import Lazily
from gatehouse.foundation.sealing import CannotOpen, Sealer
from gatehouse.platform.records.archive import files
from gatehouse.platform.records.archive.checkpoints import Checkpoint, opened
from gatehouse.platform.records.archive.manifest import File
from gatehouse.platform.records.archive.places import Place

pa: Any = Lazily("pyarrow")


class Unsound(Exception):
    """What is wrong with a file, for whoever runs the installation."""


class Stretch(NamedTuple):
    """Where in a tenant's chain a file of audit events begins and ends."""

    first: int
    last: int
    prev_hash: bytes
    hash: bytes


def checkpoint(sealer: Sealer, file: File) -> Checkpoint:
    """What the file has to be like. Raises `Unsound`."""
    try:
        return opened(sealer, file.tenant_id, file.id, file.sealed_checkpoint)
    except CannotOpen as error:
        raise Unsound(f"its checkpoint does not open under the master key: {error}") from None


def check(sealer: Sealer, place: Place, file: File) -> None:
    """Reads the whole file. Raises `Unsound`."""
    held = checkpoint(sealer, file)
    try:
        with place.open(file.path) as source:
            size, sha256 = files.digest(source)
    except OSError as error:
        raise Unsound(f"it cannot be read: {error}".split("\n", 1)[0]) from None
    if (size, sha256, held.records, held.rows) != (file.bytes, held.sha256, file.records, file.rows):
        raise Unsound("it is not the file that was kept")


def stretch(sealer: Sealer, file: File) -> Stretch:
    """Of a file of audit events, also when it is gone. Raises `Unsound`."""
    held = checkpoint(sealer, file)
    if held.gone != (file.state == "gone"):
        raise Unsound("nobody but the archiver says that its time is over" if not held.gone else "its time was over")
    if held.first_sequence is None or held.last_sequence is None or held.prev_hash is None or held.hash is None:
        raise Unsound("its checkpoint is not of audit events")
    return Stretch(held.first_sequence, held.last_sequence, bytes.fromhex(held.prev_hash), bytes.fromhex(held.hash))


def events(place: Place, file: File) -> Iterator[dict[str, Any]]:
    """A file's audit events in the order of the chain, as the database has them. Raises `Unsound`."""
    try:
        with place.open(file.path) as source:
            for group in files.read(source):
                yield from map(_as_stored, group.to_pylist())
    except (OSError, pa.ArrowInvalid) as error:
        raise Unsound(f"it cannot be read: {error}".split("\n", 1)[0]) from None


def _as_stored(row: dict[str, Any]) -> dict[str, Any]:
    for name in ("salt", "personal_digest", "prev_hash", "hash"):
        row[name] = None if row[name] is None else bytes.fromhex(row[name])
    return row

"""Writes files into the archive. A file is written, read back, compared, and then marked as kept."""

import contextlib
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias
from uuid import UUID

from gatehouse.foundation.ids import new_id
from gatehouse.foundation.lazy_import import LazyModule
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.foundation.storage import roles
from gatehouse.foundation.storage.locks import GlobalLock
from gatehouse.foundation.storage.roles import SERVICE_ROLE
from gatehouse.platform.records.archive.storage import files, manifest
from gatehouse.platform.records.archive.storage.checkpoints import Checkpoint, seal
from gatehouse.platform.records.archive.storage.contents import Records
from gatehouse.platform.records.archive.storage.manifest import ArchiveFile
from gatehouse.platform.records.archive.storage.places import ArchiveStorage

compute: Any = LazyModule("pyarrow.compute")

#: A generator of row groups. Each group is a `pyarrow.Table`.
RowGroups: TypeAlias = Generator[Any, None, None]

_HAS_LEGAL_HOLD: Final = "SELECT EXISTS (SELECT FROM legal_holds WHERE tenant_id = %s)"


class Stopped(Exception):
    """The run was stopped on request. The next run continues it."""


class ArchiverRunning(Exception):
    """Another archiver is running on this database."""


class ArchiveWriter:
    """The connection and the storage of one archiver, which runs in a thread. The constructor deletes the files that an
    earlier run left unfinished. It raises `ArchiverRunning`, `psycopg.Error` and `OSError`."""

    def __init__(
        self,
        url: str,
        storage: ArchiveStorage,
        sealer: Sealer,
        scratch: Path,
        *,
        now: datetime,
        stop: threading.Event | None = None,
    ) -> None:
        self.storage = storage
        self.sealer = sealer
        self.now = now
        self._stop = stop or threading.Event()
        self._scratch = scratch
        self.connection = roles.connect(url, SERVICE_ROLE, autocommit=True, connect_timeout=10)
        try:
            self._prepare()
        except BaseException:
            self.connection.close()
            raise

    def close(self) -> None:
        self.connection.close()

    def check_stop(self) -> None:
        """Raise `Stopped` if the run must stop. Call this often."""
        if self._stop.is_set():
            raise Stopped

    def has_legal_hold(self, tenant_id: UUID) -> bool:
        """Return whether the organization is under a legal hold."""
        return self.connection.execute(_HAS_LEGAL_HOLD, [tenant_id]).fetchone() == (True,)

    def store(
        self,
        tenant_id: UUID,
        records: Records,
        tier: str,
        rows: Callable[[], RowGroups],
        *,
        replaces: Sequence[ArchiveFile] = (),
    ) -> ArchiveFile | None:
        """Write a file of these rows, read it back, and keep it. Returns None if there are no rows. `rows` must return
        the same groups at each call. Raises `DifferentRows`, `UnderLegalHold` and `OSError`."""
        file_id = new_id()
        path = manifest.path(tier, records, tenant_id, self.now.date(), file_id)
        manifest.begin(self.connection, file_id, tenant_id, records, tier=tier, path=path)
        bounds = Bounds()
        # Both reads use one snapshot, because the file is compared with a second read, which must return the same rows.
        with self._scratch_file() as unfinished, self._snapshot():
            with contextlib.closing(self._observed(rows(), bounds)) as groups:
                count = files.write(unfinished, records, groups)
            if not count:
                manifest.delete_entry(self.connection, file_id)
                return None
            with unfinished.open("rb") as source:
                size, sha256 = files.digest(source)
            self.storage.put(unfinished, path)
            with self.storage.open(path) as source, contextlib.closing(self._observed(rows())) as groups:
                files.compare(source, groups)
        self.check(path, size, sha256)
        checkpoint = Checkpoint(records=records, rows=count, sha256=sha256, **bounds.chain)
        file = ArchiveFile(
            id=file_id, tenant_id=tenant_id, records=records, state="kept", tier=tier, path=path, rows=count,
            bytes=size, first_at=bounds.first_at, last_at=bounds.last_at, first_sequence=checkpoint.first_sequence,
            last_sequence=checkpoint.last_sequence, removed_at=replaces[-1].removed_at if replaces else None,
            sealed_checkpoint=seal(self.sealer, tenant_id, file_id, checkpoint),
        )  # fmt: skip
        self.keep(file, replaces)
        return file

    def check(self, path: str, size: int, sha256: str) -> None:
        """Check the size in bytes and the hexadecimal SHA-256 digest of a stored file. Raises `DifferentRows`."""
        with self.storage.open(path) as source:
            if files.digest(source) != (size, sha256):
                raise files.DifferentRows(f"{path} differs from the file that was written")

    def keep(self, file: ArchiveFile, replaces: Sequence[ArchiveFile] = ()) -> None:
        """Mark the file as kept, and delete the files that it replaces. Raises `UnderLegalHold`."""
        manifest.keep(self.connection, file, replaces=[replaced.id for replaced in replaces])
        if replaces:
            self._delete_unfinished()

    def _prepare(self) -> None:
        if self.connection.execute(GlobalLock.ARCHIVER.try_session_sql).fetchone() != (True,):
            raise ArchiverRunning
        self._scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        for leftover in self._scratch.iterdir():
            leftover.unlink()
        self._delete_unfinished()

    def _delete_unfinished(self) -> None:
        """Delete the files that were not kept or were replaced."""
        for file_id, path in manifest.unfinished(self.connection):
            self.storage.remove(path)
            manifest.delete_entry(self.connection, file_id)

    def _observed(self, rows: RowGroups, bounds: "Bounds | None" = None) -> RowGroups:
        # The generator is always closed, because a COPY that is not read to its end would block the connection.
        with contextlib.closing(rows) as groups:
            for group in groups:
                self.check_stop()
                if bounds is not None:
                    bounds.add(group)
                yield group

    @contextlib.contextmanager
    def _snapshot(self) -> Iterator[None]:
        with self.connection.transaction():
            self.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            yield

    @contextlib.contextmanager
    def _scratch_file(self) -> Iterator[Path]:
        path = self._scratch / f"{new_id()}.parquet"
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)


class Bounds:
    """The times and chain positions of the first and last records of a file, collected from its groups."""

    def __init__(self) -> None:
        self.first_at = datetime.max.replace(tzinfo=UTC)
        self.last_at = datetime.min.replace(tzinfo=UTC)
        #: for audit events, the fields of `Checkpoint` about the chain
        self.chain: dict[str, Any] = {}

    def add(self, group: Any) -> None:
        moments = compute.min_max(group["timestamp"]).as_py()
        self.first_at = min(self.first_at, moments["min"])
        self.last_at = max(self.last_at, moments["max"])
        if "prev_hash" in group.column_names:
            first, last = (group.slice(at, 1).to_pylist()[0] for at in (0, group.num_rows - 1))
            self.chain.setdefault("first_sequence", first["sequence"])
            self.chain.setdefault("prev_hash", first["prev_hash"])
            self.chain.update(last_sequence=last["sequence"], hash=last["hash"])

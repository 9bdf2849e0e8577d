"""Where the archiver works: one connection, one place, and how a file comes to be the archive's."""

import contextlib
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias
from uuid import UUID

from gatehouse.foundation.ids import new_id
from gatehouse.foundation.lazily import Lazily
from gatehouse.foundation.sealing import Sealer
from gatehouse.foundation.storage import roles
from gatehouse.foundation.storage.locks import GlobalLock
from gatehouse.foundation.storage.roles import SERVICE_ROLE
from gatehouse.platform.records.archive import files, manifest
from gatehouse.platform.records.archive.checkpoints import Checkpoint, seal
from gatehouse.platform.records.archive.contents import Records
from gatehouse.platform.records.archive.manifest import File
from gatehouse.platform.records.archive.places import Place

compute: Any = Lazily("pyarrow.compute")

#: Groups, each a `pyarrow.Table`.
Rows: TypeAlias = Generator[Any, None, None]

_HELD: Final = "SELECT EXISTS (SELECT FROM legal_holds WHERE tenant_id = %s)"


class Stopped(Exception):
    """It was asked to end; the next run goes on."""


class Busy(Exception):
    """Another archiver works on this database."""


class Workshop:
    """One archiver's, on a connection of its own, in a thread of its own. What a run before it left unfinished is
    cleared away first. Raises `Busy`, `psycopg.Error`, `OSError`."""

    def __init__(
        self,
        url: str,
        place: Place,
        sealer: Sealer,
        scratch: Path,
        *,
        now: datetime,
        stop: threading.Event | None = None,
    ) -> None:
        self.place = place
        self.sealer = sealer
        self.now = now
        self._stop = stop or threading.Event()
        self._scratch = scratch
        self.connection = roles.connect(url, SERVICE_ROLE, autocommit=True, connect_timeout=10)
        try:
            self._begin()
        except BaseException:
            self.connection.close()
            raise

    def close(self) -> None:
        self.connection.close()

    def go_on(self) -> None:
        """Called often. Raises `Stopped`."""
        if self._stop.is_set():
            raise Stopped

    def is_held(self, tenant_id: UUID) -> bool:
        return self.connection.execute(_HELD, [tenant_id]).fetchone() == (True,)

    def store(
        self,
        tenant_id: UUID,
        records: Records,
        tier: str,
        rows: Callable[[], Rows],
        *,
        instead_of: Sequence[File] = (),
    ) -> File | None:
        """Writes a file of these rows, reads it back, and makes it the archive's; None if there are none. `rows` gives
        the same groups each time it is called. Raises `DifferentRows`, `Held`, `OSError`."""
        file_id = new_id()
        path = manifest.path(tier, records, tenant_id, self.now.date(), file_id)
        manifest.begin(self.connection, file_id, tenant_id, records, tier=tier, path=path)
        edges = Edges()
        # The file is compared with what it was made of: that must be the same rows.
        with self._scratch_file() as unfinished, self._snapshot():
            with contextlib.closing(self._watched(rows(), edges)) as groups:
                count = files.write(unfinished, records, groups)
            if not count:
                manifest.forget(self.connection, file_id)
                return None
            with unfinished.open("rb") as source:
                size, sha256 = files.digest(source)
            self.place.put(unfinished, path)
            with self.place.open(path) as source, contextlib.closing(self._watched(rows())) as groups:
                files.compare(source, groups)
        self.check(path, size, sha256)
        checkpoint = Checkpoint(records=records, rows=count, sha256=sha256, **edges.chain)
        file = File(
            id=file_id, tenant_id=tenant_id, records=records, state="kept", tier=tier, path=path, rows=count,
            bytes=size, first_at=edges.first_at, last_at=edges.last_at, first_sequence=checkpoint.first_sequence,
            last_sequence=checkpoint.last_sequence, removed_at=instead_of[-1].removed_at if instead_of else None,
            sealed_checkpoint=seal(self.sealer, tenant_id, file_id, checkpoint),
        )  # fmt: skip
        self.keep(file, instead_of)
        return file

    def check(self, path: str, size: int, sha256: str) -> None:
        with self.place.open(path) as source:
            if files.digest(source) != (size, sha256):
                raise files.DifferentRows(f"{path} is not what was written")

    def keep(self, file: File, instead_of: Sequence[File] = ()) -> None:
        manifest.keep(self.connection, file, instead_of=[other.id for other in instead_of])
        if instead_of:
            self._finish()

    def _begin(self) -> None:
        if self.connection.execute(GlobalLock.ARCHIVER.try_session_sql).fetchone() != (True,):
            raise Busy
        self._scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in self._scratch.iterdir():
            left.unlink()
        self._finish()

    def _finish(self) -> None:
        """Deletes files that are not the archive's, or not any more."""
        for file_id, path in manifest.unfinished(self.connection):
            self.place.remove(path)
            manifest.forget(self.connection, file_id)

    def _watched(self, rows: Rows, edges: "Edges | None" = None) -> Rows:
        # Closed whatever happens: a COPY that nobody reads to its end would keep the connection for itself.
        with contextlib.closing(rows) as groups:
            for group in groups:
                self.go_on()
                if edges is not None:
                    edges.see(group)
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


class Edges:
    """The first and last of what passes by."""

    def __init__(self) -> None:
        self.first_at = datetime.max.replace(tzinfo=UTC)
        self.last_at = datetime.min.replace(tzinfo=UTC)
        #: of audit events, as a checkpoint names them
        self.chain: dict[str, Any] = {}

    def see(self, group: Any) -> None:
        moments = compute.min_max(group["timestamp"]).as_py()
        self.first_at = min(self.first_at, moments["min"])
        self.last_at = max(self.last_at, moments["max"])
        if "prev_hash" in group.column_names:
            first, last = (group.slice(at, 1).to_pylist()[0] for at in (0, group.num_rows - 1))
            self.chain.setdefault("first_sequence", first["sequence"])
            self.chain.setdefault("prev_hash", first["prev_hash"])
            self.chain.update(last_sequence=last["sequence"], hash=last["hash"])

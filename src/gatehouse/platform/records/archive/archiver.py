"""The archiver: what is past an organization's hot window goes from the database to the archive."""

import contextlib
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID
from zoneinfo import ZoneInfo

import psycopg

from gatehouse.foundation.ids import new_id
from gatehouse.foundation.lazily import Lazily
from gatehouse.foundation.sealing import Sealer
from gatehouse.foundation.storage import roles
from gatehouse.foundation.storage.roles import SERVICE_ROLE
from gatehouse.platform.records.archive import ageing, files, forgetting, manifest
from gatehouse.platform.records.archive.checkpoints import Checkpoint, seal
from gatehouse.platform.records.archive.contents import ORDER, RECORDS, Records
from gatehouse.platform.records.archive.manifest import File
from gatehouse.platform.records.archive.places import Place
from gatehouse.platform.records.hot import RetentionPolicy, hot_since, read_retention_policy

compute: Any = Lazily("pyarrow.compute")

#: Groups, each a `pyarrow.Table`.
Rows: TypeAlias = Generator[Any, None, None]

#: Rows of one file.
MOST: Final = 200_000
#: Rows that leave the database in one transaction.
_PART: Final = 5_000
#: A month's invoice is made of its usage records, within ten days of its end.
_INVOICED: Final = timedelta(days=11)

_ONE_AT_A_TIME: Final = "SELECT pg_try_advisory_lock(hashtext('gatehouse.archiver'))"
_TENANT: Final = "SELECT id, timezone, retention_policy FROM tenants WHERE id = %s"
_HELD: Final = "SELECT EXISTS (SELECT FROM legal_holds WHERE tenant_id = %s)"
#: The last event of the chain's beginning that is past the window altogether: what came late stays until its neighbours
#: go, so that each file holds a stretch of the chain.
_CHAIN: Final = (
    "SELECT coalesce((SELECT max(last_sequence) FROM archive_files WHERE tenant_id = %(tenant)s"
    " AND records = 'audit_events' AND state IN ('kept', 'gone')), 0) + 1,"
    " coalesce((SELECT min(sequence) FROM audit_events WHERE tenant_id = %(tenant)s AND timestamp >= %(before)s),"
    " (SELECT sequence + 1 FROM audit_heads WHERE tenant_id = %(tenant)s), 1) - 1"
)
_LAST_KEY: Final = (
    "SELECT timestamp, id FROM {0} WHERE tenant_id = %(tenant)s AND timestamp < %(before)s"
    " ORDER BY timestamp, id LIMIT 1 OFFSET %(most)s"
)
_VERY_LAST_KEY: Final = (
    "SELECT timestamp, id FROM {0} WHERE tenant_id = %(tenant)s AND timestamp < %(before)s"
    " ORDER BY timestamp DESC, id DESC LIMIT 1"
)


class Stopped(Exception):
    """It was asked to end; the next run goes on."""


class Held(Exception):
    """A legal hold was set meanwhile."""


class Busy(Exception):
    """Another archiver works on this database."""


class Owner(NamedTuple):
    id: UUID
    timezone: str
    policy: RetentionPolicy


class Archiver:
    """One run, on a connection of its own, in a thread of its own. Raises `Busy`, `psycopg.Error`."""

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

    def run(self, tenant_id: UUID) -> int:
        """Everything that is due of one organization. Returns how many rows went to the archive; `archive_runs` says
        how it went."""
        status, rows = "failed", 0
        try:
            (row,) = self.connection.execute(_TENANT, [tenant_id])
            owner = Owner(row[0], row[1], read_retention_policy(row[2]))
            status = "held"
            if not self._held(tenant_id):
                status = "failed"
                for archived in self._steps(owner):
                    rows += archived
                status = "success"
        except Held:
            status = "held"
        except Stopped:
            status = "stopped"
            raise
        finally:
            if status != "stopped":
                with contextlib.suppress(psycopg.Error):
                    manifest.note_run(self.connection, tenant_id, self.now, status, rows)
        return rows

    def forget(self, tenant_id: UUID) -> None:
        """People who were removed, where there is no hold."""
        if not self._held(tenant_id):
            forgetting.forget(self, tenant_id)

    def drop_months(self) -> None:
        """Months of the database's tables in which nobody has rows any more."""
        while self.connection.execute("SELECT gatehouse_drop_empty_month()").fetchone() != (None,):
            self.go_on()

    def go_on(self) -> None:
        """Called often. Raises `Stopped`."""
        if self._stop.is_set():
            raise Stopped

    def _begin(self) -> None:
        if self.connection.execute(_ONE_AT_A_TIME).fetchone() != (True,):
            raise Busy
        self._scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in self._scratch.iterdir():
            left.unlink()
        self._finish()

    def _held(self, tenant_id: UUID) -> bool:
        return self.connection.execute(_HELD, [tenant_id]).fetchone() == (True,)

    def _steps(self, owner: Owner) -> Iterator[int]:
        for file in manifest.to_remove(self.connection, owner.id):
            self._remove(file)
        for records in RECORDS:
            before = self._before(owner, records)
            while (written := self._next(owner, records, before)) is not None:
                yield written.rows
                self._remove(written)
        ageing.age(self, owner.id, owner.policy)
        forgetting.forget(self, owner.id)

    def _before(self, owner: Owner, records: Records) -> datetime:
        hot = hot_since(owner.policy, self.now)
        if records != "usage_records":
            return hot
        zone = ZoneInfo(owner.timezone)
        month = (self.now - _INVOICED).astimezone(zone).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        return min(hot, month.astimezone(UTC))

    def _next(self, owner: Owner, records: Records, before: datetime) -> File | None:
        """One more file with the oldest rows that are in none, or None when all are."""
        values = self._part(owner.id, records, before)
        if values is None:
            return None
        which = f"tenant_id = %(tenant)s AND {ORDER[records].part} ORDER BY {ORDER[records].columns}"
        return self.store(
            owner.id, records, "warm", lambda: files.from_database(self.connection, records, which, values)
        )

    def _part(self, tenant_id: UUID, records: Records, before: datetime) -> dict[str, Any] | None:
        """Which rows the next file is to hold."""
        values: dict[str, Any] = {"tenant": tenant_id, "before": before, "most": MOST - 1}
        if records == "audit_events":
            first, last = self.connection.execute(_CHAIN, values).fetchone() or (1, 0)
            return {**values, "first": first, "last": min(last, first + MOST - 1)} if first <= last else None
        for query in (_LAST_KEY, _VERY_LAST_KEY):
            found = self.connection.execute(query.format(records), values).fetchone()
            if found is not None:
                return {**values, "last_at": found[0], "last_id": found[1]}
        return None

    def store(
        self,
        tenant_id: UUID,
        records: Records,
        tier: str,
        rows: Callable[[], Rows],
        *,
        instead_of: File | None = None,
    ) -> File | None:
        """Writes a file of these rows, reads it back, and makes it the archive's; None if there are none. `rows` gives
        the same groups each time it is called. Raises `DifferentRows`, `OSError`."""
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
            last_sequence=checkpoint.last_sequence, removed_at=instead_of.removed_at if instead_of else None,
            sealed_checkpoint=seal(self.sealer, tenant_id, file_id, checkpoint),
        )  # fmt: skip
        self.keep(file, instead_of)
        return file

    def check(self, path: str, size: int, sha256: str) -> None:
        with self.place.open(path) as source:
            if files.digest(source) != (size, sha256):
                raise files.DifferentRows(f"{path} is not what was written")

    def keep(self, file: File, instead_of: File | None = None) -> None:
        manifest.keep(self.connection, file, instead_of=instead_of.id if instead_of else None)
        if instead_of is not None:
            self._finish()

    def _remove(self, file: File) -> None:
        """Takes a kept file's rows out of the database."""
        if file.records == "audit_events":
            while self._removed("gatehouse_remove_audit_events(%s, %s)", [file.id, _PART]):
                pass
        else:
            with self.place.open(file.path) as source:
                for keys in files.columns(source, "timestamp", "id"):
                    for begin in range(0, keys.num_rows, _PART):
                        part = keys.slice(begin, _PART).to_pydict()
                        call = f"gatehouse_remove_{file.records}(%s, %s, %s::uuid[])"
                        self._removed(call, [file.id, part["timestamp"], part["id"]])
        manifest.note_removed(self.connection, file.id)

    def _removed(self, call: str, values: Sequence[Any]) -> int:
        self.go_on()
        row = self.connection.execute(f"SELECT {call}", values).fetchone()
        if row is None or row[0] is None:
            raise Held
        return int(row[0])

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

"""The archiver: what is past an organization's hot window goes from the database to the archive."""

import contextlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import psycopg

from gatehouse.platform.records.archive import ageing, files, forgetting, joining, manifest
from gatehouse.platform.records.archive.contents import ORDER, RECORDS, Records
from gatehouse.platform.records.archive.manifest import File, Held
from gatehouse.platform.records.archive.workshop import Stopped, Workshop
from gatehouse.platform.records.hot import RetentionPolicy, hot_since, read_retention_policy

#: Rows that leave the database in one transaction.
_PART: Final = 5_000
#: A month's invoice is made of its usage records, within ten days of its end.
_INVOICED: Final = timedelta(days=11)

_TENANT: Final = "SELECT id, timezone, retention_policy FROM tenants WHERE id = %s"
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


class Owner(NamedTuple):
    id: UUID
    timezone: str
    policy: RetentionPolicy


class Archiver(Workshop):
    """One run."""

    def run(self, tenant_id: UUID) -> int:
        """Everything that is due of one organization. Returns how many rows went to the archive; `archive_runs` says
        how it went."""
        status, rows = "failed", 0
        try:
            (row,) = self.connection.execute(_TENANT, [tenant_id])
            owner = Owner(row[0], row[1], read_retention_policy(row[2]))
            status = "held"
            if not self.is_held(tenant_id):
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
        with contextlib.suppress(Held):
            if not self.is_held(tenant_id):
                forgetting.forget(self, tenant_id)

    def drop_months(self) -> None:
        """Months of the database's tables in which nobody has rows any more."""
        while self.connection.execute("SELECT gatehouse_drop_empty_month()").fetchone() != (None,):
            self.go_on()

    def _steps(self, owner: Owner) -> Iterator[int]:
        for file in manifest.to_remove(self.connection, owner.id):
            self._remove(file)
        for records in RECORDS:
            before = self._before(owner, records)
            while (written := self._next(owner, records, before)) is not None:
                yield written.rows
                self._remove(written)
        ageing.age(self, owner.id, owner.policy)
        joining.join(self, owner.id, owner.policy)
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
        values: dict[str, Any] = {"tenant": tenant_id, "before": before, "most": files.MOST - 1}
        if records == "audit_events":
            first, last = self.connection.execute(_CHAIN, values).fetchone() or (1, 0)
            return {**values, "first": first, "last": min(last, first + files.MOST - 1)} if first <= last else None
        for query in (_LAST_KEY, _VERY_LAST_KEY):
            found = self.connection.execute(query.format(records), values).fetchone()
            if found is not None:
                return {**values, "last_at": found[0], "last_id": found[1]}
        return None

    def _remove(self, file: File) -> None:
        """Takes a kept file's rows out of the database."""
        if file.records == "audit_events":
            while self._removed("gatehouse_remove_audit_events(%s, %s)", [file.id, _PART]):
                pass
            unsent = self.connection.execute("SELECT gatehouse_unsent_from(%s)", [file.tenant_id]).fetchone()
            if unsent is not None and unsent[0] is not None and unsent[0] <= (file.last_sequence or 0):
                # Some wait to be forwarded: the next run tries again.
                return
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

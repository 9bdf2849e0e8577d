"""The archiver: moves the records of an organization that are older than its hot window from the database to the
archive.
"""

import contextlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import psycopg

from gatehouse.platform.records.archive import ageing, forgetting, joining
from gatehouse.platform.records.archive.storage import files, manifest
from gatehouse.platform.records.archive.storage.contents import ORDER, RECORDS, Records
from gatehouse.platform.records.archive.storage.manifest import ArchiveFile, UnderLegalHold
from gatehouse.platform.records.archive.storage.writer import ArchiveWriter, Stopped
from gatehouse.platform.records.hot import HotRetention, hot_since, read_retention_policy

#: Number of rows that one transaction deletes from the database.
_REMOVAL_ROWS: Final = 5_000
#: Time for which the usage records of a month stay after its end. The invoice is made from them within ten days.
_INVOICE_DELAY: Final = timedelta(days=11)

_TENANT: Final = "SELECT id, timezone, retention_policy FROM tenants WHERE id = %s"
#: Selects the range of the chain to archive: all events before the first event that is still in the window. A later
#: event of the chain stays in the database even if its timestamp is older, so that each file contains an unbroken range
#: of the chain.
_CHAIN_RANGE: Final = (
    "SELECT coalesce((SELECT max(last_sequence) FROM archive_files WHERE tenant_id = %(tenant)s"
    " AND records = 'audit_events' AND state IN ('kept', 'gone')), 0) + 1,"
    " coalesce((SELECT min(sequence) FROM audit_events WHERE tenant_id = %(tenant)s AND timestamp >= %(before)s),"
    " (SELECT sequence + 1 FROM audit_heads WHERE tenant_id = %(tenant)s), 1) - 1"
)
_KEY_AT_OFFSET: Final = (
    "SELECT timestamp, id FROM {0} WHERE tenant_id = %(tenant)s AND timestamp < %(before)s"
    " ORDER BY timestamp, id LIMIT 1 OFFSET %(offset)s"
)
_LAST_KEY: Final = (
    "SELECT timestamp, id FROM {0} WHERE tenant_id = %(tenant)s AND timestamp < %(before)s"
    " ORDER BY timestamp DESC, id DESC LIMIT 1"
)


class ArchivedTenant(NamedTuple):
    id: UUID
    timezone: str
    policy: HotRetention


class Archiver(ArchiveWriter):
    """One run of the archiver."""

    def run(self, tenant_id: UUID) -> int:
        """Run all due steps for one organization, and write the status to `archive_runs`. Returns the number of
        archived rows. Raises `Stopped`."""
        status, rows = "failed", 0
        try:
            (row,) = self.connection.execute(_TENANT, [tenant_id])
            tenant = ArchivedTenant(row[0], row[1], read_retention_policy(row[2]))
            status = "held"
            if not self.has_legal_hold(tenant_id):
                status = "failed"
                for archived in self._steps(tenant):
                    rows += archived
                status = "success"
        except UnderLegalHold:
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
        """Remove the people who are to be forgotten from the archive, unless there is a legal hold."""
        with contextlib.suppress(UnderLegalHold):
            if not self.has_legal_hold(tenant_id):
                forgetting.forget(self, tenant_id)

    def drop_months(self) -> None:
        """Drop the partitions of months that have no rows."""
        while self.connection.execute("SELECT gatehouse_drop_empty_month()").fetchone() != (None,):
            self.check_stop()

    def _steps(self, tenant: ArchivedTenant) -> Iterator[int]:
        """Run all steps. Yields the number of rows of each new file."""
        for file in manifest.to_remove(self.connection, tenant.id):
            self._remove(file)
        for records in RECORDS:
            before = self._archive_before(tenant, records)
            while (new_file := self._write_next(tenant, records, before)) is not None:
                yield new_file.rows
                self._remove(new_file)
        ageing.age(self, tenant.id, tenant.policy)
        joining.join(self, tenant.id, tenant.policy)
        forgetting.forget(self, tenant.id)

    def _archive_before(self, tenant: ArchivedTenant, records: Records) -> datetime:
        hot = hot_since(tenant.policy, self.now)
        if records != "usage_records":
            return hot
        zone = ZoneInfo(tenant.timezone)
        month = (self.now - _INVOICE_DELAY).astimezone(zone).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        return min(hot, month.astimezone(UTC))

    def _write_next(self, tenant: ArchivedTenant, records: Records, before: datetime) -> ArchiveFile | None:
        """Write a file with the oldest rows that are in no file. Returns None if there are no such rows."""
        values = self._next_range(tenant.id, records, before)
        if values is None:
            return None
        condition = f"tenant_id = %(tenant)s AND {ORDER[records].part} ORDER BY {ORDER[records].columns}"
        return self.store(
            tenant.id, records, "warm", lambda: files.from_database(self.connection, records, condition, values)
        )

    def _next_range(self, tenant_id: UUID, records: Records, before: datetime) -> dict[str, Any] | None:
        """Return the query parameters that select the rows of the next file, or None if there are no such rows."""
        values: dict[str, Any] = {"tenant": tenant_id, "before": before, "offset": files.MAX_FILE_ROWS - 1}
        if records == "audit_events":
            first, last = self.connection.execute(_CHAIN_RANGE, values).fetchone() or (1, 0)
            if first > last:
                return None
            return {**values, "first": first, "last": min(last, first + files.MAX_FILE_ROWS - 1)}
        for query in (_KEY_AT_OFFSET, _LAST_KEY):
            key = self.connection.execute(query.format(records), values).fetchone()
            if key is not None:
                return {**values, "last_at": key[0], "last_id": key[1]}
        return None

    def _remove(self, file: ArchiveFile) -> None:
        """Delete the rows of a kept file from the database. Raises `UnderLegalHold`."""
        if file.records == "audit_events":
            while self._call_removal("gatehouse_remove_audit_events(%s, %s)", [file.id, _REMOVAL_ROWS]):
                pass
            unsent = self.connection.execute("SELECT gatehouse_unsent_from(%s)", [file.tenant_id]).fetchone()
            if unsent is not None and unsent[0] is not None and unsent[0] <= (file.last_sequence or 0):
                # Some of these events still wait to be forwarded to a SIEM, so the next run removes them.
                return
        else:
            with self.storage.open(file.path) as source:
                for keys in files.columns(source, "timestamp", "id"):
                    for begin in range(0, keys.num_rows, _REMOVAL_ROWS):
                        batch = keys.slice(begin, _REMOVAL_ROWS).to_pydict()
                        call = f"gatehouse_remove_{file.records}(%s, %s, %s::uuid[])"
                        self._call_removal(call, [file.id, batch["timestamp"], batch["id"]])
        manifest.note_removed(self.connection, file.id)

    def _call_removal(self, call: str, values: Sequence[Any]) -> int:
        """Call a function that deletes rows. Returns the number of deleted rows. Raises `UnderLegalHold`."""
        self.check_stop()
        row = self.connection.execute(f"SELECT {call}", values).fetchone()
        if row is None or row[0] is None:
            raise UnderLegalHold
        return int(row[0])

"""Stores the records that outposts upload, in the transaction that advances the position of the outpost
(docs/outpost-protocol.md). The rows are the same as for the platform's own records."""

import asyncio
import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import psycopg
import structlog

from gatehouse.engine.records import audit_events
from gatehouse.engine.records.upload_notices import (
    Ended,
    Lost,
    Notice,
    Operated,
)
from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.identity import Caller, CallerKind, TenantId
from gatehouse.foundation.journal import Batch, JournalEntry, Position
from gatehouse.platform.changes.chain.actions import RECORDS_LOST
from gatehouse.platform.changes.chain.links import AuditEvent
from gatehouse.platform.keeper.prepare import Prepared, decode_batch, prepare
from gatehouse.platform.keeper.store import BadRecord, Overtaken, Store
from gatehouse.platform.live.outpost_records import (
    Rejected,
    SequenceGap,
    Stored,
    Upload,
)
from gatehouse.platform.live.uses import note_uses_sql
from gatehouse.platform.publishing.outposts.entries import InvalidEntry, notice, validated_line

log = structlog.get_logger(__name__)

#: Maximum number of uploads that run or wait in one worker.
MAX_WAITING_UPLOADS: Final = 16
#: Maximum number of attempts to store one upload. An attempt fails if a concurrent upload of the same outpost advances
#: the position.
_MAX_ATTEMPTS: Final = 5

_POSITION: Final = "SELECT sequence FROM outpost_positions WHERE (tenant_id, outpost_id, journal_id) = (%s, %s, %s)"
_INSERT_POSITION: Final = (
    "INSERT INTO outpost_positions (tenant_id, outpost_id, journal_id, sequence) VALUES (%s, %s, %s, %s)"
    " ON CONFLICT DO NOTHING"
)
_UPDATE_POSITION: Final = (
    "UPDATE outpost_positions SET sequence = %s, updated_at = now()"
    " WHERE (tenant_id, outpost_id, journal_id) = (%s, %s, %s) AND sequence = %s"
)
_BUDGETS: Final = "SELECT id FROM budgets WHERE tenant_id = %s"
_KEYS: Final = "SELECT id::text FROM api_keys WHERE tenant_id = %s AND id = ANY(%s::uuid[])"
_NOTE_KEYS: Final = note_uses_sql("api_keys", "last_used", ids="%s", seconds="%s")
# An outpost spends without a lease of the platform. Its spending is entered as granted, so that the platform does not
# grant the same amount to a worker.
_GRANT: Final = (
    "UPDATE budget_leases SET granted_nano_usd = greatest(granted_nano_usd, ceil(recorded_usd * 1000000000)),"
    " granted_requests = greatest(granted_requests, recorded_requests),"
    " granted_tokens = greatest(granted_tokens, recorded_tokens)"
    " WHERE writer_id = %s AND budget_id = ANY(%s::uuid[])"
)


class IntakeBusy(Unavailable):
    code = "busy"
    message = "Too many uploads are being stored. Send the records again later."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "1"})


class IntakeUnavailable(Unavailable):
    code = "database_unavailable"
    message = "The database cannot be reached. Keep the records and send them again later."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "5"})


class NumberedEntry(NamedTuple):
    """An entry of an upload, with its sequence number."""

    sequence: int
    #: the line of a record, or a notice
    payload: bytes | Notice


class OutpostStore(Store):
    """A `Store` for one journal of one outpost. All records are stored with the id of the outpost as their writer."""

    def select_journal(self, tenant_id: TenantId, outpost_id: UUID, journal_id: UUID) -> None:
        """Use this journal from now on. Call this before the other methods."""
        self._tenant_id, self._outpost_id = tenant_id, outpost_id
        self._journal = (tenant_id, outpost_id, journal_id)

    def position(self) -> int:
        """Return the sequence number of the last stored record, or 0 if there is none."""
        row = self._connection.execute(_POSITION, self._journal).fetchone()
        return 0 if row is None else int(row[0])

    def budgets(self) -> frozenset[UUID]:
        """Return the ids of the organization's budgets, and the organization's own id, which is the id of its plan's
        limit."""
        rows = self._connection.execute(_BUDGETS, [self._tenant_id])
        return frozenset({self._tenant_id, *(budget_id for (budget_id,) in rows)})

    def note_used_keys(self, used: Mapping[str, float]) -> None:
        """Set `last_used` of those keys that belong to the organization. `used` maps key ids to Unix times."""
        if not used:
            return
        own = [key for (key,) in self._connection.execute(_KEYS, [self._tenant_id, list(used)])]
        self._connection.execute(_NOTE_KEYS, [own, [used[key] for key in own]])

    def _move(self, positions: Mapping[UUID, Position], expected: Mapping[UUID, Position]) -> None:
        ((journal_id, target),) = positions.items()
        before = expected[journal_id].offset
        if before == 0:
            result = self._connection.execute(_INSERT_POSITION, [*self._journal, target.offset])
        else:
            result = self._connection.execute(_UPDATE_POSITION, [target.offset, *self._journal, before])
        if result.rowcount != 1:
            raise Overtaken

    def _spend(self, prepared: Prepared) -> None:
        super()._spend(prepared)
        if spent := prepared.spent.by_lease:
            self._connection.execute(_GRANT, [self._outpost_id, [lease.budget_id for lease in spent]])


class Intake:
    """The intake of one worker. It stores uploads one after the other in a thread, because each upload locks the audit
    chain of its organization. It reuses one connection."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._store: OutpostStore | None = None
        # If a request is cancelled, its thread continues. The lock makes the thread of the next request wait for it.
        self._store_lock = threading.Lock()

    async def store(self, outpost: Caller, upload: Upload) -> Stored:
        """Store the new records of the upload. Raises `SequenceGap`, `IntakeBusy` and `IntakeUnavailable`."""
        if self._waiting >= MAX_WAITING_UPLOADS:
            raise IntakeBusy
        self._waiting += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(self._store_upload, outpost, upload)
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        async with self._turn:
            await asyncio.to_thread(self._disconnect)

    def _store_upload(self, outpost: Caller, upload: Upload) -> Stored:
        assert outpost.tenant_id is not None
        assert outpost.outpost_id is not None
        with self._store_lock:
            try:
                store = self._store = self._store or OutpostStore(self._url)
                store.select_journal(outpost.tenant_id, outpost.outpost_id, upload.journal_id)
                store.missing_tenants([str(outpost.tenant_id)])
                for _ in range(_MAX_ATTEMPTS):
                    try:
                        return _UploadWriter(store, outpost.tenant_id, outpost.outpost_id, upload).write_all()
                    except Overtaken:
                        continue
                raise IntakeBusy
            except (psycopg.Error, OSError) as error:
                self._disconnect_quietly()
                log.warning("outposts.database_away", reason=type(error).__name__)
                raise IntakeUnavailable from None

    def _disconnect(self) -> None:
        with self._store_lock:
            self._disconnect_quietly()

    def _disconnect_quietly(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None


class _UploadWriter:
    """Writes one upload, starting at the position that is stored in the database."""

    def __init__(self, store: OutpostStore, tenant_id: TenantId, outpost_id: UUID, upload: Upload) -> None:
        self._store = store
        self._tenant_id = tenant_id
        self._outpost_id = outpost_id
        self._upload = upload
        self._position = store.position()
        self._rejected: list[Rejected] = []
        self._stored_count = 0

    def write_all(self) -> Stored:
        """Write all new entries. Raises `SequenceGap`, `Overtaken` and `psycopg.Error`."""
        first, expected = self._upload.sequence, self._position + 1
        if first > expected:
            raise SequenceGap(expected)
        fresh = self._upload.entries[expected - first :]
        if fresh:
            self._write(self._validated(fresh, expected), self._position + len(fresh))
        return Stored(next_sequence=self._position + 1, stored=self._stored_count, rejected=sorted(self._rejected))

    def _validated(self, entries: Iterable[Any], first: int) -> list[NumberedEntry]:
        """Return the entries that can be stored. Adds the other entries to the rejected ones."""
        budgets = self._store.budgets()
        valid = []
        for sequence, entry in enumerate(entries, first):
            try:
                payload = notice(entry) or validated_line(entry, self._tenant_id, budgets)
                valid.append(NumberedEntry(sequence, payload))
            except InvalidEntry as fault:
                self._rejected.append(Rejected(sequence, str(fault)))
        return valid

    def _write(self, records: Sequence[NumberedEntry], last: int) -> None:
        """Write the records, and advance the position to `last`, which includes rejected entries."""
        try:
            prepared = self._prepared(records)
            self._transaction(prepared, last)
        except BadRecord:
            if len(records) == 1:
                self._rejected.append(
                    Rejected(records[0].sequence, "the database refuses the record, or already has it")
                )
                self._write([], last)
            else:
                # Split the records to find the bad one.
                middle = len(records) // 2
                self._write(records[:middle], records[middle].sequence - 1)
                self._write(records[middle:], last)
            return
        self._stored_count += len(records)
        self._position = last
        self._store.note_used_keys(prepared.used_keys)

    def _prepared(self, records: Sequence[NumberedEntry]) -> Prepared:
        lines = [JournalEntry(self._outpost_id, 0, number, line) for number, line in records if isinstance(line, bytes)]
        entries, unreadable = decode_batch(Batch(lines))
        if unreadable:
            raise BadRecord("not a valid entry")
        journal_ended = any(isinstance(payload, Ended) for _, payload in records)
        # Only this journal has ended. Another journal of the outpost may have a live writer.
        journal_id = self._upload.journal_id
        left_open = self._store.left_open([journal_id]) if journal_ended else {}
        try:
            finished = (self._outpost_id,) if journal_ended else ()
            prepared = prepare(entries, finished, left_open, outpost_id=self._outpost_id)
        except Exception as error:
            # An unexpected exception is the fault of one record, and must not block the other records for ever.
            raise BadRecord(type(error).__name__) from error
        prepared.opened = {stream: (journal_id, line) for stream, (_, line) in prepared.opened.items()}
        # A journal may only end streams that it has opened.
        if prepared.ended:
            own = left_open or self._store.left_open([journal_id])
            prepared.ended = [stream for stream in prepared.ended if stream in own]
        for sequence, payload in records:
            if isinstance(payload, Lost):
                prepared.add_audit_event(str(self._tenant_id), self._lost(sequence, payload))
            elif isinstance(payload, Operated):
                prepared.add_audit_event(str(self._tenant_id), self._operated(payload))
        return prepared

    def _operated(self, call: Operated) -> AuditEvent:
        return AuditEvent(
            id=call.id,
            timestamp=datetime.fromtimestamp(call.timestamp, UTC),
            action=audit_events.OPERATED,
            actor_id=str(self._outpost_id),
            actor_type=CallerKind.OUTPOST,
            resource_type="outpost",
            resource_id=str(self._outpost_id),
            ip=call.ip,
            details=audit_events.operator_details(call),
        )

    def _lost(self, sequence: int, lost: Lost) -> AuditEvent:
        return AuditEvent(
            action=RECORDS_LOST,
            actor_id=str(self._outpost_id),
            actor_type=CallerKind.OUTPOST,
            outcome="failure",
            resource_type="outpost",
            resource_id=str(self._outpost_id),
            reason=lost.reason,
            details={
                "journal_id": str(self._upload.journal_id),
                "sequence": sequence,
                "records": lost.records,
                "bytes": lost.bytes,
            },
        )

    def _transaction(self, prepared: Prepared, last: int) -> None:
        journal_id = self._upload.journal_id
        self._store.ensure_months({*prepared.usage, *prepared.dlp.events, *prepared.events})
        target = Batch(positions={journal_id: Position(0, last)})
        expected = {journal_id: Position(0, self._position)}
        self._store.write(target, expected, prepared, before_commit=lambda: None)

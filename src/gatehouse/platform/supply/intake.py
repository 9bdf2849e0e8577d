"""Outposts' records on their way into the database: as the drain stores this platform's own, in the transaction that
moves the outpost's position (decisions 8, Wires)."""

import asyncio
import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import psycopg
import structlog

from gatehouse.engine import audited
from gatehouse.engine.notices import Ended, Lost, Notice, Operated
from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.identity import Caller, CallerKind, TenantId
from gatehouse.foundation.journal import Batch, Position
from gatehouse.foundation.journal import Entry as Line
from gatehouse.platform.chain.actions import RECORDS_LOST
from gatehouse.platform.chain.links import AuditEvent
from gatehouse.platform.keeper.prepare import Prepared, decoded, prepare
from gatehouse.platform.keeper.store import BadRecord, Overtaken, Store
from gatehouse.platform.live.uses import note_uses_sql
from gatehouse.platform.supply.entries import Unfit, fit, notice
from gatehouse.platform.uploads import Rejected, SequenceGap, Stored, Upload

log = structlog.get_logger(__name__)

#: Uploads that wait for their turn, a worker.
WAITING: Final = 16
#: How often one upload begins anew because another one of the same outpost was faster.
_TRIES: Final = 5

_POSITION: Final = "SELECT sequence FROM outpost_positions WHERE (tenant_id, outpost_id, journal_id) = (%s, %s, %s)"
_BEGIN: Final = (
    "INSERT INTO outpost_positions (tenant_id, outpost_id, journal_id, sequence) VALUES (%s, %s, %s, %s)"
    " ON CONFLICT DO NOTHING"
)
_MOVE: Final = (
    "UPDATE outpost_positions SET sequence = %s, updated_at = now()"
    " WHERE (tenant_id, outpost_id, journal_id) = (%s, %s, %s) AND sequence = %s"
)
_BUDGETS: Final = "SELECT id FROM budgets WHERE tenant_id = %s"
_KEYS: Final = "SELECT id::text FROM api_keys WHERE tenant_id = %s AND id = ANY(%s::uuid[])"
_NOTE_KEYS: Final = note_uses_sql("api_keys", "last_used", ids="%s", seconds="%s")
# Nobody has given the outpost a lease: what it has spent is what it was granted, so that others do not spend it again.
_GRANT: Final = (
    "UPDATE budget_leases SET granted_nano_usd = greatest(granted_nano_usd, ceil(recorded_usd * 1000000000)),"
    " granted_requests = greatest(granted_requests, recorded_requests),"
    " granted_tokens = greatest(granted_tokens, recorded_tokens)"
    " WHERE writer_id = %s AND budget_id = ANY(%s::uuid[])"
)


class Busy(Unavailable):
    code = "busy"
    message = "Other outposts' records are being stored. Send these again in a moment."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "1"})


class DatabaseAway(Unavailable):
    code = "database_unavailable"
    message = "The database cannot be reached: keep the records, and send them again."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "5"})


class Numbered(NamedTuple):
    sequence: int
    #: a record's line, or what the outpost says between records
    payload: bytes | Notice


class OutpostStore(Store):
    """A `Store` for one journal of one outpost. The outpost is the writer of all that it hands in."""

    def of(self, tenant_id: TenantId, outpost_id: UUID, journal_id: UUID) -> None:
        self._tenant_id, self._outpost_id = tenant_id, outpost_id
        self._journal = (tenant_id, outpost_id, journal_id)

    def position(self) -> int:
        row = self._connection.execute(_POSITION, self._journal).fetchone()
        return 0 if row is None else int(row[0])

    def budgets(self) -> frozenset[UUID]:
        """Ids of the organization's, and that of its plan's limit."""
        rows = self._connection.execute(_BUDGETS, [self._tenant_id])
        return frozenset({self._tenant_id, *(budget_id for (budget_id,) in rows)})

    def note_used_keys(self, used: Mapping[str, float]) -> None:
        """Sets `last_used` of those of the keys that are the organization's. `used` has Unix times by key id."""
        if not used:
            return
        own = [key for (key,) in self._connection.execute(_KEYS, [self._tenant_id, list(used)])]
        self._connection.execute(_NOTE_KEYS, [own, [used[key] for key in own]])

    def _move(self, positions: Mapping[UUID, Position], held: Mapping[UUID, Position]) -> None:
        ((journal_id, moved),) = positions.items()
        before = held[journal_id].offset
        if before == 0:
            done = self._connection.execute(_BEGIN, [*self._journal, moved.offset])
        else:
            done = self._connection.execute(_MOVE, [moved.offset, *self._journal, before])
        if done.rowcount != 1:
            raise Overtaken

    def _spend(self, prepared: Prepared) -> None:
        super()._spend(prepared)
        if spent := prepared.spent.by_lease:
            self._connection.execute(_GRANT, [self._outpost_id, [lease.budget_id for lease in spent]])


class Intake:
    """One worker's. Uploads are stored one after the other, in a thread: each holds the chain of its organization, and
    the connection is kept from one to the next."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._store: OutpostStore | None = None
        # What a cancelled request has left at work goes on in its thread.
        self._working = threading.Lock()

    async def store(self, outpost: Caller, upload: Upload) -> Stored:
        """Raises `SequenceGap`, `Busy`, `DatabaseAway`."""
        if self._waiting >= WAITING:
            raise Busy
        self._waiting += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(self._stored, outpost, upload)
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        async with self._turn:
            await asyncio.to_thread(self._disconnect)

    def _stored(self, outpost: Caller, upload: Upload) -> Stored:
        assert outpost.tenant_id is not None
        assert outpost.outpost_id is not None
        with self._working:
            try:
                store = self._store = self._store or OutpostStore(self._url)
                store.of(outpost.tenant_id, outpost.outpost_id, upload.journal_id)
                store.missing_tenants([str(outpost.tenant_id)])
                for _ in range(_TRIES):
                    try:
                        return _Writing(store, outpost.tenant_id, outpost.outpost_id, upload).all()
                    except Overtaken:
                        continue
                raise Busy
            except (psycopg.Error, OSError) as error:
                self._disconnect_quietly()
                log.warning("outposts.database_away", reason=type(error).__name__)
                raise DatabaseAway from None

    def _disconnect(self) -> None:
        with self._working:
            self._disconnect_quietly()

    def _disconnect_quietly(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None


class _Writing:
    """One upload, from the position that the database has."""

    def __init__(self, store: OutpostStore, tenant_id: TenantId, outpost_id: UUID, upload: Upload) -> None:
        self._store = store
        self._tenant_id = tenant_id
        self._outpost_id = outpost_id
        self._upload = upload
        self._position = store.position()
        self._rejected: list[Rejected] = []
        self._rows = 0

    def all(self) -> Stored:
        """Raises `SequenceGap`, `Overtaken`, `psycopg.Error`."""
        first, expected = self._upload.sequence, self._position + 1
        if first > expected:
            raise SequenceGap(expected)
        fresh = self._upload.entries[expected - first :]
        if fresh:
            self._write(self._numbered(fresh, expected), self._position + len(fresh))
        return Stored(next_sequence=self._position + 1, stored=self._rows, rejected=sorted(self._rejected))

    def _numbered(self, entries: Iterable[Any], first: int) -> list[Numbered]:
        """Those that can be stored."""
        budgets, found = self._store.budgets(), []
        for sequence, entry in enumerate(entries, first):
            try:
                payload = notice(entry) or fit(entry, self._tenant_id, budgets)
                found.append(Numbered(sequence, payload))
            except Unfit as fault:
                self._rejected.append(Rejected(sequence, str(fault)))
        return found

    def _write(self, records: Sequence[Numbered], last: int) -> None:
        """`last` is the number up to which everything is handed in then, whether it could be stored or not."""
        try:
            prepared = self._prepared(records)
            self._transaction(prepared, last)
        except BadRecord:
            if len(records) == 1:
                self._rejected.append(Rejected(records[0].sequence, "the database does not take it, or has it already"))
                self._write([], last)
            else:
                # Which one is bad shows in batches half as large, and at last alone.
                middle = len(records) // 2
                self._write(records[:middle], records[middle].sequence - 1)
                self._write(records[middle:], last)
            return
        self._rows += len(records)
        self._position = last
        self._store.note_used_keys(prepared.used_keys)

    def _prepared(self, records: Sequence[Numbered]) -> Prepared:
        lines = [Line(self._outpost_id, 0, number, line) for number, line in records if isinstance(line, bytes)]
        entries, unreadable = decoded(Batch(lines))
        if unreadable:
            raise BadRecord("not an entry")
        over = any(isinstance(payload, Ended) for _, payload in records)
        # Of one journal at a time: another one of the outpost's may have a process that lives.
        journal_id = self._upload.journal_id
        left_open = self._store.left_open([journal_id]) if over else {}
        try:
            finished = (self._outpost_id,) if over else ()
            prepared = prepare(entries, finished, left_open, outpost_id=self._outpost_id)
        except Exception as error:
            # What nobody has thought of is one record's fault, and must not keep the others back for ever.
            raise BadRecord(type(error).__name__) from error
        prepared.opened = {stream: (journal_id, line) for stream, (_, line) in prepared.opened.items()}
        # Only streams that this journal has opened are its to end.
        if prepared.ended:
            own = left_open or self._store.left_open([journal_id])
            prepared.ended = [stream for stream in prepared.ended if stream in own]
        for sequence, payload in records:
            if isinstance(payload, Lost):
                prepared.say(str(self._tenant_id), self._lost(sequence, payload))
            elif isinstance(payload, Operated):
                prepared.say(str(self._tenant_id), self._operated(payload))
        return prepared

    def _operated(self, call: Operated) -> AuditEvent:
        return AuditEvent(
            id=call.id,
            timestamp=datetime.fromtimestamp(call.timestamp, UTC),
            action=audited.OPERATED,
            actor_id=str(self._outpost_id),
            actor_type=CallerKind.OUTPOST,
            resource_type="outpost",
            resource_id=str(self._outpost_id),
            ip=call.ip,
            details=audited.operator_details(call),
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
        moved = Batch(positions={journal_id: Position(0, last)})
        held = {journal_id: Position(0, self._position)}
        self._store.write(moved, held, prepared, at_last=lambda: None)

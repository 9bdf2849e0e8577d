"""All queries of the processes that forward events to SIEM receivers: they lease an organization and read its batches.

One process at a time sends for an organization. Its turn is a lease, which expires if the process is killed. Events
that the process had sent but not recorded are then sent again.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession

from gatehouse.foundation.siem import events
from gatehouse.foundation.siem.events import SiemEvent
from gatehouse.foundation.siem.sending import BACKOFF_SECONDS
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.changes.outbox import Event
from gatehouse.platform.operations.siem.sending import SealedTarget

#: Limits of a batch: audit events, events of the queue, and bytes. They bound the memory of a batch.
MAX_AUDIT_EVENTS: Final = 800
MAX_QUEUED_EVENTS: Final = 200
MAX_BATCH_BYTES: Final = 1024**2
#: Number of events of each kind in a batch to a receiver that did not accept the previous batch. Such a receiver may
#: fail for a long time, and many receivers may fail at once.
PROBE_EVENTS: Final = 50
#: Duration of a lease. It is longer than the time to send a batch, for every type of receiver.
LEASE_SECONDS: Final = 30.0

# One query covers all organizations, so no other query is made while nothing waits. The least recent turn comes first.
_TAKE: Final = text(
    "WITH due AS (SELECT c.tenant_id FROM siem_cursors c JOIN siem_forwarding f ON f.tenant_id = c.tenant_id"
    " LEFT JOIN audit_heads h ON h.tenant_id = c.tenant_id WHERE c.due_at <= now() AND (h.sequence > c.sequence"
    " OR EXISTS (SELECT FROM siem_queue q WHERE q.tenant_id = c.tenant_id))"
    " ORDER BY c.due_at LIMIT :max_rows FOR UPDATE OF c SKIP LOCKED)"
    " UPDATE siem_cursors c SET due_at = now() + make_interval(secs => :lease), claims = claims + 1"
    " FROM due WHERE c.tenant_id = due.tenant_id RETURNING c.tenant_id, c.claims"
)
# The head is read before the events, so that every event up to it is visible, or was removed.
_LOCK_TURN: Final = text(
    "SELECT c.sequence, c.failures, coalesce(h.sequence, 0) AS head, s.* FROM siem_cursors c"
    " JOIN siem_targets s ON s.tenant_id = c.tenant_id JOIN siem_forwarding f ON f.tenant_id = c.tenant_id"
    " LEFT JOIN audit_heads h ON h.tenant_id = c.tenant_id"
    " WHERE c.tenant_id = :tenant AND c.claims = :claim FOR UPDATE OF c"
)
_ACCEPTED: Final = text(
    "UPDATE siem_cursors SET sequence = :sequence, skipped = skipped + :skipped, failures = 0, last_error = NULL,"
    " last_sent_at = clock_timestamp() WHERE tenant_id = :tenant"
)
_UNQUEUE: Final = text(
    "DELETE FROM siem_queue WHERE tenant_id = :tenant AND position = ANY(CAST(:positions AS bigint[]))"
)
_FAILED: Final = text(
    "UPDATE siem_cursors SET failures = failures + 1, last_error = :error, last_failed_at = clock_timestamp(),"
    " due_at = clock_timestamp() + make_interval(secs => :pause) WHERE tenant_id = :tenant"
)
_SKIP: Final = text(
    "UPDATE siem_cursors SET skipped = skipped + (:head - sequence), sequence = :head WHERE tenant_id = :tenant"
)
_READ_AUDIT: Final = text(
    "SELECT tenant_id, sequence, id, timestamp, actor_id, actor_type, action, resource_type, resource_id, request_id,"
    " ip, outcome, target_provider, target_model, reason, details, prev_hash, hash FROM audit_events"
    " WHERE tenant_id = :tenant AND sequence > :sequence ORDER BY sequence LIMIT :max_rows"
)
_READ_QUEUE: Final = text(
    "SELECT position, id, kind, at, body FROM siem_queue WHERE tenant_id = :tenant ORDER BY position LIMIT :max_rows"
)
_SET_DUE: Final = text(
    "UPDATE siem_cursors SET due_at = clock_timestamp() + make_interval(secs => :seconds) WHERE tenant_id = :tenant"
)

_MEASURE_BACKLOG: Final = text(
    "SELECT coalesce(sum(greatest(coalesce(h.sequence, 0) - c.sequence, 0)), 0)"
    # At most 100,000 events of each organization are counted, because this query runs every few seconds.
    " + coalesce(sum(q.waiting), 0), count(*) FILTER (WHERE c.failures > 0)"
    " FROM siem_cursors c JOIN siem_forwarding f ON f.tenant_id = c.tenant_id"
    " LEFT JOIN audit_heads h ON h.tenant_id = c.tenant_id"
    " CROSS JOIN LATERAL (SELECT count(*) AS waiting FROM (SELECT FROM siem_queue"
    " WHERE tenant_id = c.tenant_id LIMIT 100000) few) q"
)
_ADD_EVENTS: Final = text(
    "INSERT INTO siem_queue (tenant_id, id, kind, at, body) SELECT e.tenant_id, e.id, 'event', e.at,"
    " jsonb_build_object('event_type', e.event_type, 'payload', e.payload)"
    " FROM unnest(CAST(:tenants AS uuid[]), CAST(:ids AS uuid[]), CAST(:types AS text[]), CAST(:payloads AS jsonb[]),"
    " CAST(:times AS timestamptz[])) WITH ORDINALITY AS e (tenant_id, id, event_type, payload, at, nth)"
    " JOIN siem_forwarding f ON f.tenant_id = e.tenant_id ORDER BY e.nth"
)


class ForwardingTurn(NamedTuple):
    """A lease on the forwarding of one organization. `claim` differs in each lease."""

    tenant_id: UUID
    claim: int


class EventPosition(NamedTuple):
    """The position of an event: `sequence` in the chain for an audit event, `position` in the queue for another
    event."""

    sequence: int | None = None
    position: int | None = None


class EventBatch(msgspec.Struct, frozen=True):
    """A batch to send. `after` is the sequence of the last audit event before the batch."""

    target: SealedTarget
    events: Sequence[SiemEvent]
    places: Sequence[EventPosition]
    after: int


class SendResult(msgspec.Struct, frozen=True):
    """The result of sending the first `count` events of a batch. `error` is None if the receiver accepted them."""

    work: EventBatch
    count: int
    error: str | None = None


async def take(connection: AsyncConnection, limit: int) -> list[ForwardingTurn]:
    """Lease up to `limit` turns that are due."""
    return [
        ForwardingTurn(*row) for row in await connection.execute(_TAKE, {"max_rows": limit, "lease": LEASE_SECONDS})
    ]


async def advance(
    session: AsyncSession, turn: ForwardingTurn, done: SendResult | None = None, *, go_on: bool = True
) -> EventBatch | None:
    """Record the result `done`, and return the next batch. Returns None when the turn is over: nothing waits, the
    receiver did not accept the batch, the time is up (`go_on` is False), forwarding was disabled, or another process
    has the turn."""
    key = {"tenant": turn.tenant_id}
    row = (await session.execute(_LOCK_TURN, {**key, "claim": turn.claim})).first()
    if row is None:
        return None
    sequence, failures, work = row.sequence, row.failures, None
    if done is not None and done.error is not None:
        backoff_seconds = BACKOFF_SECONDS[min(failures, len(BACKOFF_SECONDS) - 1)]
        await session.execute(_FAILED, {**key, "error": done.error, "pause": backoff_seconds})
        await session.commit()
        return None
    if done is not None:
        sequence, failures = await _record(session, key, done), 0
    if go_on:
        work = await _next(session, SealedTarget.of(row), sequence, row.head, probing=failures > 0)
    await session.execute(_SET_DUE, {**key, "seconds": 0 if work is None else LEASE_SECONDS})
    await session.commit()
    return work


async def _record(session: AsyncSession, key: dict[str, UUID], done: SendResult) -> int:
    """Record the accepted events. Returns the sequence up to which the receiver has all audit events."""
    places = done.work.places[: done.count]
    sequences = [place.sequence for place in places if place.sequence is not None]
    sequence = sequences[-1] if sequences else done.work.after
    skipped = sequence - done.work.after - len(sequences)
    await session.execute(_ACCEPTED, {**key, "sequence": sequence, "skipped": skipped})
    if positions := [place.position for place in places if place.position is not None]:
        await session.execute(_UNQUEUE, {**key, "positions": positions})
    return sequence


async def _next(
    session: AsyncSession, target: SealedTarget, sequence: int, head: int, *, probing: bool
) -> EventBatch | None:
    key: dict[str, Any] = {"tenant": target.tenant_id}
    waiting: list[tuple[EventPosition, SiemEvent]] = []
    values = {**key, "sequence": sequence, "max_rows": PROBE_EVENTS if probing else MAX_AUDIT_EVENTS}
    rows = (await session.execute(_READ_AUDIT, values)).all()
    waiting += [(EventPosition(sequence=row.sequence), events.of_audit(row)) for row in rows]
    if not rows and head > sequence:
        # All of these events were removed. This happens only if forwarding was off for a time (feature flag
        # `audit_log_streaming`): events that wait are then not kept.
        await session.execute(_SKIP, {**key, "head": head})
        sequence = head
    rows = (
        await session.execute(_READ_QUEUE, {**key, "max_rows": PROBE_EVENTS if probing else MAX_QUEUED_EVENTS})
    ).all()
    waiting += [(EventPosition(position=row.position), _of_queue(target.tenant_id, row)) for row in rows]
    size = 0
    for count, (_, event) in enumerate(waiting):
        size += len(event.body)
        if size > MAX_BATCH_BYTES and count:
            waiting = waiting[:count]
            break
    if not waiting:
        return None
    return EventBatch(target, [event for _, event in waiting], [place for place, _ in waiting], sequence)


def _of_queue(tenant_id: UUID, row: Any) -> SiemEvent:
    at: datetime = row.at
    if row.kind == "dlp":
        return events.of_dlp(tenant_id, row.body, at)
    return events.of_outbox_event(tenant_id, row.id, row.body, at)


class ForwardingBacklog(msgspec.Struct):
    """The last measurement of this process, over all organizations: the number of waiting events, and the number of
    receivers whose last batch failed."""

    events: float = 0.0
    failing: float = 0.0

    async def measure(self, tools: Tools) -> None:
        """Take a new measurement."""
        async with tools.database.service() as session:
            waiting, failing = (await session.execute(_MEASURE_BACKLOG)).one()
        self.events, self.failing = float(waiting), float(failing)


async def enqueue(session: AsyncSession, events: Sequence[Event]) -> None:
    """Add `events` to the queues of their organizations, in order. Events of organizations that do not forward are
    skipped. The caller marks the events as dispatched in the same transaction."""
    values = {
        "tenants": [event.tenant_id for event in events],
        "ids": [event.id for event in events],
        "types": [event.event_type for event in events],
        "payloads": [event.payload for event in events],
        "times": [event.created_at for event in events],
    }
    await session.execute(_ADD_EVENTS, values)

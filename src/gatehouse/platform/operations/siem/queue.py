"""Whose turn it is to be sent to, and what is next: all queries of the forwarding processes.

An organization has one turn at a time, on whatever machine: a lease, which ends by itself where the process that had it
was killed. What was sent then and not noted yet is sent again.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession

from gatehouse.foundation.siem import events
from gatehouse.foundation.siem.events import Forwarded
from gatehouse.foundation.siem.sending import BACKOFF_SECONDS
from gatehouse.platform.operations.siem.sending import SealedTarget

#: Of a batch: audit events, and those of the queue. Bounded in bytes too, for what is held in memory.
AUDIT: Final = 800
QUEUED: Final = 200
BYTES: Final = 1024**2
#: Of a batch to a receiver that has not taken the one before: it may be down for long, and many may be.
PROBE: Final = 50
#: Seconds: longer than sending a batch takes, whatever the type.
LEASE: Final = 30.0

# For all organizations at once: where nothing waits, this is all that is asked. Whose turn was longest ago is first.
_TAKE: Final = text(
    "WITH due AS (SELECT c.tenant_id FROM siem_cursors c JOIN siem_forwarding f ON f.tenant_id = c.tenant_id"
    " LEFT JOIN audit_heads h ON h.tenant_id = c.tenant_id WHERE c.due_at <= now() AND (h.sequence > c.sequence"
    " OR EXISTS (SELECT FROM siem_queue q WHERE q.tenant_id = c.tenant_id))"
    " ORDER BY c.due_at LIMIT :most FOR UPDATE OF c SKIP LOCKED)"
    " UPDATE siem_cursors c SET due_at = now() + make_interval(secs => :lease), claims = claims + 1"
    " FROM due WHERE c.tenant_id = due.tenant_id RETURNING c.tenant_id, c.claims"
)
# The head is read before the events: all up to it are there, or were removed.
_HELD: Final = text(
    "SELECT c.sequence, c.failures, coalesce(h.sequence, 0) AS head, s.* FROM siem_cursors c"
    " JOIN siem_targets s ON s.tenant_id = c.tenant_id JOIN siem_forwarding f ON f.tenant_id = c.tenant_id"
    " LEFT JOIN audit_heads h ON h.tenant_id = c.tenant_id"
    " WHERE c.tenant_id = :tenant AND c.claims = :claim FOR UPDATE OF c"
)
_TAKEN: Final = text(
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
_AUDIT: Final = text(
    "SELECT tenant_id, sequence, id, timestamp, actor_id, actor_type, action, resource_type, resource_id, request_id,"
    " ip, outcome, target_provider, target_model, reason, details, prev_hash, hash FROM audit_events"
    " WHERE tenant_id = :tenant AND sequence > :sequence ORDER BY sequence LIMIT :most"
)
_QUEUED: Final = text(
    "SELECT position, id, kind, at, body FROM siem_queue WHERE tenant_id = :tenant ORDER BY position LIMIT :most"
)
_DUE: Final = text(
    "UPDATE siem_cursors SET due_at = clock_timestamp() + make_interval(secs => :seconds) WHERE tenant_id = :tenant"
)


class Turn(NamedTuple):
    tenant_id: UUID
    claim: int


class Place(NamedTuple):
    """Where an event comes from: its sequence in the chain, or its position in the queue."""

    sequence: int | None = None
    position: int | None = None


class Work(msgspec.Struct, frozen=True):
    """A batch. `after` is the sequence before it."""

    target: SealedTarget
    events: Sequence[Forwarded]
    places: Sequence[Place]
    after: int


class Done(msgspec.Struct, frozen=True):
    """What came of the first `count` events of a batch: taken, or why not."""

    work: Work
    count: int
    error: str | None = None


async def take(connection: AsyncConnection, most: int) -> list[Turn]:
    return [Turn(*row) for row in await connection.execute(_TAKE, {"most": most, "lease": LEASE})]


async def advance(session: AsyncSession, turn: Turn, done: Done | None = None, *, go_on: bool = True) -> Work | None:
    """Notes what was done and gives what is next. None when the turn is over: nothing waits, the receiver has not taken
    it, the time is up (`go_on`), forwarding was switched off, or another process has taken the turn over."""
    key = {"tenant": turn.tenant_id}
    held = (await session.execute(_HELD, {**key, "claim": turn.claim})).first()
    if held is None:
        return None
    sequence, failures, work = held.sequence, held.failures, None
    if done is not None and done.error is not None:
        pause = BACKOFF_SECONDS[min(failures, len(BACKOFF_SECONDS) - 1)]
        await session.execute(_FAILED, {**key, "error": done.error, "pause": pause})
        await session.commit()
        return None
    if done is not None:
        sequence, failures = await _note(session, key, done), 0
    if go_on:
        work = await _next(session, SealedTarget.of(held), sequence, held.head, probing=failures > 0)
    await session.execute(_DUE, {**key, "seconds": 0 if work is None else LEASE})
    await session.commit()
    return work


async def _note(session: AsyncSession, key: dict[str, UUID], done: Done) -> int:
    """The sequence up to which the receiver has everything."""
    places = done.work.places[: done.count]
    sequences = [place.sequence for place in places if place.sequence is not None]
    sequence = sequences[-1] if sequences else done.work.after
    skipped = sequence - done.work.after - len(sequences)
    await session.execute(_TAKEN, {**key, "sequence": sequence, "skipped": skipped})
    if positions := [place.position for place in places if place.position is not None]:
        await session.execute(_UNQUEUE, {**key, "positions": positions})
    return sequence


async def _next(session: AsyncSession, target: SealedTarget, sequence: int, head: int, *, probing: bool) -> Work | None:
    key: dict[str, Any] = {"tenant": target.tenant_id}
    found: list[tuple[Place, Forwarded]] = []
    values = {**key, "sequence": sequence, "most": PROBE if probing else AUDIT}
    rows = (await session.execute(_AUDIT, values)).all()
    found += [(Place(sequence=row.sequence), events.of_audit(row)) for row in rows]
    if not rows and head > sequence:
        # Removed, all of them: only where they were not held, as while the flag was off.
        await session.execute(_SKIP, {**key, "head": head})
        sequence = head
    rows = (await session.execute(_QUEUED, {**key, "most": PROBE if probing else QUEUED})).all()
    found += [(Place(position=row.position), _of_queue(target.tenant_id, row)) for row in rows]
    size = 0
    for count, (_, event) in enumerate(found):
        size += len(event.body)
        if size > BYTES and count:
            found = found[:count]
            break
    if not found:
        return None
    return Work(target, [event for _, event in found], [place for place, _ in found], sequence)


def _of_queue(tenant_id: UUID, row: Any) -> Forwarded:
    at: datetime = row.at
    if row.kind == "dlp":
        return events.of_dlp(tenant_id, row.body, at)
    return events.of_news(tenant_id, row.id, row.body, at)

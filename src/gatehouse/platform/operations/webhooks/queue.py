"""Whose turn it is to be delivered to, and what is on record of it: all queries of the delivering processes.

A webhook has one turn at a time, on whatever machine: a lease, which ends by itself where the process that had it was
killed. What was sent then and not noted yet is sent again.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession

from gatehouse.platform.operations.webhooks.sending import Attempt, Message, Target

#: Seconds between an attempt that failed and the next (decisions 1.4).
RETRIES: Final = (1.0, 5.0)
#: Seconds between the last failure and the dead letter (reference 3, Delivery rules 1).
DEAD_AFTER: Final = 30.0
#: Deliveries that are noted together.
BATCH: Final = 50
#: Seconds. Whoever has a turn prolongs it long before (`keep`).
LEASE: Final = 8.0

# `claims` tells apart whose turn it is from whose it was.
_TAKE: Final = text(
    "WITH due AS (SELECT webhook_id FROM webhook_queues WHERE due_at <= now()"
    " AND tenant_id <> ALL(CAST(:without AS uuid[])) ORDER BY due_at LIMIT :most FOR UPDATE SKIP LOCKED)"
    " UPDATE webhook_queues q SET due_at = now() + make_interval(secs => :lease), claims = claims + 1"
    " FROM due WHERE q.webhook_id = due.webhook_id RETURNING q.webhook_id, q.tenant_id, q.claims"
)
# Locked until the transaction's end, so that the statements behind it see whatever was added before the turn ends.
_HELD: Final = text(
    "SELECT w.url, w.sealed_secret, w.enabled AND t.deleted_at IS NULL AS enabled FROM webhook_queues q"
    " JOIN webhooks w ON w.id = q.webhook_id JOIN tenants t ON t.id = w.tenant_id"
    " WHERE q.webhook_id = :webhook AND q.claims = :claim FOR UPDATE OF q"
)
_NOTE: Final = text(
    "UPDATE webhook_deliveries d SET status = r.status, attempts = d.attempts + 1,"
    " next_attempt_at = clock_timestamp() + make_interval(secs => r.retry_in),"
    " dead_at = clock_timestamp() + make_interval(secs => r.dead_in), response_status = r.response_status,"
    " response_body = r.response_body, last_error = r.error, last_attempt_at = r.at,"
    " delivered_at = CASE r.status WHEN 'delivered' THEN r.at END"
    " FROM unnest(CAST(:ids AS uuid[]), CAST(:statuses AS text[]), CAST(:retries AS float8[]), CAST(:dead AS float8[]),"
    " CAST(:answers AS int[]), CAST(:bodies AS text[]), CAST(:errors AS text[]), CAST(:ats AS timestamptz[]))"
    " AS r (id, status, retry_in, dead_in, response_status, response_body, error, at) WHERE d.id = r.id"
)
_CANCEL: Final = text(
    "UPDATE webhook_deliveries SET status = 'failed', next_attempt_at = NULL, last_error = 'the webhook was disabled'"
    " WHERE webhook_id = :webhook AND next_attempt_at IS NOT NULL"
)
_NEXT: Final = text(
    "SELECT id, event_type, payload::text, attempts, next_attempt_at <= clock_timestamp() FROM webhook_deliveries"
    " WHERE webhook_id = :webhook AND next_attempt_at IS NOT NULL ORDER BY position LIMIT :most"
)
_PROLONG: Final = text(
    "UPDATE webhook_queues SET due_at = clock_timestamp() + make_interval(secs => :lease) WHERE webhook_id = :webhook"
)
# In order, as whoever locks several rows must.
_KEEP: Final = text(
    "UPDATE webhook_queues q SET due_at = clock_timestamp() + make_interval(secs => :lease) FROM ("
    "SELECT h.webhook_id FROM webhook_queues h"
    " JOIN unnest(CAST(:webhooks AS uuid[]), CAST(:claims AS bigint[])) AS t (webhook_id, claims)"
    " ON h.webhook_id = t.webhook_id AND h.claims = t.claims ORDER BY h.webhook_id FOR UPDATE OF h) AS held"
    " WHERE q.webhook_id = held.webhook_id"
)
_GIVE_BACK: Final = text(
    "UPDATE webhook_queues q SET due_at = now(), claims = q.claims + 1"
    " FROM unnest(CAST(:webhooks AS uuid[]), CAST(:claims AS bigint[])) AS t (webhook_id, claims)"
    " WHERE q.webhook_id = t.webhook_id AND q.claims = t.claims"
)
# Another claim: whoever prolongs the turn just then must not find it.
_RELEASE: Final = text(
    "UPDATE webhook_queues SET claims = claims + 1, due_at = ("
    "SELECT next_attempt_at FROM webhook_deliveries WHERE webhook_id = :webhook"
    " AND next_attempt_at IS NOT NULL ORDER BY position LIMIT 1) WHERE webhook_id = :webhook"
)
_BURY: Final = text(
    "UPDATE webhook_deliveries SET status = 'dead_letter', dead_at = NULL WHERE id = ANY(ARRAY("
    "SELECT id FROM webhook_deliveries WHERE dead_at <= now() LIMIT 1000 FOR UPDATE SKIP LOCKED))"
    " RETURNING webhook_id"
)
# A receiver that is dead takes less than comes: the oldest make room.
_GIVE_UP: Final = text(
    "UPDATE webhook_deliveries SET status = 'dead_letter', next_attempt_at = NULL,"
    " last_error = 'given up: the receiver is too far behind' WHERE ctid = ANY(ARRAY(SELECT d.ctid FROM webhooks w,"
    " LATERAL (SELECT position AS last FROM webhook_deliveries WHERE webhook_id = w.id AND next_attempt_at IS NOT NULL"
    " ORDER BY position DESC OFFSET :waiting LIMIT 1) old,"
    " LATERAL (SELECT ctid FROM webhook_deliveries WHERE webhook_id = w.id AND next_attempt_at IS NOT NULL"
    " AND position <= old.last) d LIMIT :most)) RETURNING webhook_id"
)
# Of each webhook the last 20, which are shown, and of these none that is older than a month. What is under way stays.
_PRUNE: Final = text(
    "DELETE FROM webhook_deliveries WHERE ctid = ANY(ARRAY(SELECT d.ctid FROM webhooks w,"
    " LATERAL (SELECT coalesce((SELECT position FROM webhook_deliveries WHERE webhook_id = w.id"
    " ORDER BY position DESC OFFSET :kept LIMIT 1), 0) AS last) old,"
    " LATERAL (SELECT ctid FROM webhook_deliveries WHERE webhook_id = w.id AND next_attempt_at IS NULL"
    " AND dead_at IS NULL AND (position <= old.last OR created_at < now() - interval '30 days')) d LIMIT :most))"
)


class Turn(NamedTuple):
    webhook_id: UUID
    tenant_id: UUID
    claim: int


class Waiting(NamedTuple):
    """A delivery that is due; `attempts` were made before."""

    message: Message
    attempts: int


class Result(msgspec.Struct, frozen=True):
    """What one more attempt makes of a delivery."""

    id: UUID
    status: str
    attempt: Attempt
    #: seconds; None: there is no further attempt, no dead letter
    retry_in: float | None = None
    dead_in: float | None = None


class Work(NamedTuple):
    target: Target
    waiting: Sequence[Waiting]


def result(waiting: Waiting, attempt: Attempt) -> Result:
    """The states of a delivery (reference 3, States, Webhook delivery)."""
    message_id, before = waiting.message.id, waiting.attempts
    if attempt.taken:
        return Result(message_id, "delivered", attempt)
    if attempt.blocked:
        return Result(message_id, "failed", attempt)
    if before < len(RETRIES):
        return Result(message_id, "failed", attempt, retry_in=RETRIES[before])
    return Result(message_id, "failed", attempt, dead_in=DEAD_AFTER)


async def take(connection: AsyncConnection, most: int, without: Iterable[UUID] = ()) -> list[Turn]:
    """Turns of webhooks for which something is due, whose it was longest ago first; none of these tenants'."""
    values = {"most": most, "without": list(without), "lease": LEASE}
    return [Turn(*row) for row in await connection.execute(_TAKE, values)]


async def advance(
    session: AsyncSession, turn: Turn, results: Sequence[Result] = (), *, go_on: bool = True
) -> Work | None:
    """Notes what was done and gives what is next. None when the turn is over: nothing is due, the time is up
    (`go_on`), the webhook is gone or disabled, or another process has taken it over, which then does all of it."""
    key = {"webhook": turn.webhook_id}
    held = (await session.execute(_HELD, {**key, "claim": turn.claim})).first()
    if held is None:
        return None
    if results:
        await session.execute(_NOTE, _columns(results))
    if not held.enabled:
        await session.execute(_CANCEL, key)
    rows = (await session.execute(_NEXT, {**key, "most": BATCH})).all() if go_on else ()
    waiting: list[Waiting] = []
    for delivery_id, event_type, payload, attempts, due in rows:
        if not due:
            break
        waiting.append(Waiting(Message(delivery_id, event_type, payload), attempts))
    if waiting:
        await session.execute(_PROLONG, {**key, "lease": LEASE})
    else:
        await session.execute(_RELEASE, key)
    await session.commit()
    target = Target(turn.webhook_id, turn.tenant_id, held.url, held.sealed_secret)
    return Work(target, waiting) if waiting else None


async def keep(session: AsyncSession, turns: Collection[Turn]) -> None:
    """Prolongs what this process has, and no other has taken over."""
    await session.execute(_KEEP, {**_claims(turns), "lease": LEASE})
    await session.commit()


async def give_back(session: AsyncSession, turns: Collection[Turn]) -> None:
    """Turns that were broken off: others may have them at once."""
    await session.execute(_GIVE_BACK, _claims(turns))
    await session.commit()


async def bury(session: AsyncSession) -> Sequence[UUID]:
    """Makes dead letters of what has failed for good: the webhook of each. Left to be committed."""
    return (await session.scalars(_BURY)).all()


async def give_up(session: AsyncSession, waiting: int, most: int) -> Sequence[UUID]:
    """Makes dead letters of what waits beyond the newest `waiting` of a webhook: the webhook of each. Left to be
    committed."""
    return (await session.scalars(_GIVE_UP, {"waiting": waiting, "most": most})).all()


async def prune(session: AsyncSession, kept: int, most: int) -> int:
    """Removes what is no longer shown; how many these were."""
    pruned: Any = await session.execute(_PRUNE, {"kept": kept, "most": most})
    await session.commit()
    return int(pruned.rowcount)


def _claims(turns: Collection[Turn]) -> dict[str, Any]:
    return {"webhooks": [turn.webhook_id for turn in turns], "claims": [turn.claim for turn in turns]}


def _columns(results: Sequence[Result]) -> dict[str, Any]:
    return {
        "ids": [each.id for each in results],
        "statuses": [each.status for each in results],
        "retries": [each.retry_in for each in results],
        "dead": [each.dead_in for each in results],
        "answers": [each.attempt.status for each in results],
        "bodies": [each.attempt.body for each in results],
        "errors": [each.attempt.error for each in results],
        "ats": [each.attempt.at for each in results],
    }

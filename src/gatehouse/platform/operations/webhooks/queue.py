"""Leases and states of deliveries: all queries of the delivering processes.

One process at a time delivers to a webhook. Its turn is a lease, which expires if the process is killed. Deliveries
that the process had sent but not recorded are then sent again.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession

from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.operations.webhooks.sending import DeliveryAttempt, WebhookMessage, WebhookTarget

#: Delay before each retry.
RETRY_DELAYS_SECONDS: Final = (1.0, 5.0)
#: Time between the last failure and the dead letter.
DEAD_LETTER_DELAY_SECONDS: Final = 30.0
#: Number of deliveries that are read and recorded together.
BATCH_EVENTS: Final = 50
#: Duration of a lease. The process of a turn extends it long before it expires (`extend`).
LEASE_SECONDS: Final = 8.0

# `claims` distinguishes the current lease from earlier leases.
_TAKE: Final = text(
    "WITH due AS (SELECT webhook_id FROM webhook_queues WHERE due_at <= now()"
    " AND tenant_id <> ALL(CAST(:without AS uuid[])) ORDER BY due_at LIMIT :max_rows FOR UPDATE SKIP LOCKED)"
    " UPDATE webhook_queues q SET due_at = now() + make_interval(secs => :lease), claims = claims + 1"
    " FROM due WHERE q.webhook_id = due.webhook_id RETURNING q.webhook_id, q.tenant_id, q.claims"
)
# The row is locked until the transaction ends, so that later statements see everything that was added before the turn
# ends.
_LOCK_TURN: Final = text(
    "SELECT w.url, w.sealed_secret, w.enabled AND t.deleted_at IS NULL AS enabled FROM webhook_queues q"
    " JOIN webhooks w ON w.id = q.webhook_id JOIN tenants t ON t.id = w.tenant_id"
    " WHERE q.webhook_id = :webhook AND q.claims = :claim FOR UPDATE OF q"
)
_RECORD: Final = text(
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
    " WHERE webhook_id = :webhook AND next_attempt_at IS NOT NULL ORDER BY position LIMIT :max_rows"
)
_EXTEND: Final = text(
    "UPDATE webhook_queues SET due_at = clock_timestamp() + make_interval(secs => :lease) WHERE webhook_id = :webhook"
)
# The rows are ordered, so that transactions lock them in the same order and cannot deadlock.
_EXTEND_ALL: Final = text(
    "UPDATE webhook_queues q SET due_at = clock_timestamp() + make_interval(secs => :lease) FROM ("
    "SELECT h.webhook_id FROM webhook_queues h"
    " JOIN unnest(CAST(:webhooks AS uuid[]), CAST(:claims AS bigint[])) AS t (webhook_id, claims)"
    " ON h.webhook_id = t.webhook_id AND h.claims = t.claims ORDER BY h.webhook_id FOR UPDATE OF h) AS leased"
    " WHERE q.webhook_id = leased.webhook_id"
)
_GIVE_BACK: Final = text(
    "UPDATE webhook_queues q SET due_at = now(), claims = q.claims + 1"
    " FROM unnest(CAST(:webhooks AS uuid[]), CAST(:claims AS bigint[])) AS t (webhook_id, claims)"
    " WHERE q.webhook_id = t.webhook_id AND q.claims = t.claims"
)
# The new claim prevents a concurrent extension from matching this turn.
_RELEASE: Final = text(
    "UPDATE webhook_queues SET claims = claims + 1, due_at = ("
    "SELECT next_attempt_at FROM webhook_deliveries WHERE webhook_id = :webhook"
    " AND next_attempt_at IS NOT NULL ORDER BY position LIMIT 1) WHERE webhook_id = :webhook"
)
_MARK_DEAD_LETTERS: Final = text(
    "UPDATE webhook_deliveries SET status = 'dead_letter', dead_at = NULL WHERE id = ANY(ARRAY("
    "SELECT id FROM webhook_deliveries WHERE dead_at <= now() LIMIT 1000 FOR UPDATE SKIP LOCKED))"
    " RETURNING webhook_id"
)
# Bounds the queue of an unavailable receiver: the oldest deliveries become dead letters.
_GIVE_UP: Final = text(
    "UPDATE webhook_deliveries SET status = 'dead_letter', next_attempt_at = NULL,"
    " last_error = 'given up: the receiver is too far behind' WHERE ctid = ANY(ARRAY(SELECT d.ctid FROM webhooks w,"
    " LATERAL (SELECT position AS last FROM webhook_deliveries WHERE webhook_id = w.id AND next_attempt_at IS NOT NULL"
    " ORDER BY position DESC OFFSET :waiting LIMIT 1) old,"
    " LATERAL (SELECT ctid FROM webhook_deliveries WHERE webhook_id = w.id AND next_attempt_at IS NOT NULL"
    " AND position <= old.last) d LIMIT :max_rows)) RETURNING webhook_id"
)
# Keeps unfinished deliveries, and for 30 days the last 20 deliveries of each webhook, which are shown.
_PRUNE: Final = text(
    "DELETE FROM webhook_deliveries WHERE ctid = ANY(ARRAY(SELECT d.ctid FROM webhooks w,"
    " LATERAL (SELECT coalesce((SELECT position FROM webhook_deliveries WHERE webhook_id = w.id"
    " ORDER BY position DESC OFFSET :kept LIMIT 1), 0) AS last) old,"
    " LATERAL (SELECT ctid FROM webhook_deliveries WHERE webhook_id = w.id AND next_attempt_at IS NULL"
    " AND dead_at IS NULL AND (position <= old.last OR created_at < now() - interval '30 days')) d LIMIT :max_rows))"
)

# The query covers the outbox and the queue. A leased turn is due in the future, so it is not counted.
_MEASURE_LAG: Final = text(
    "SELECT coalesce(extract(epoch FROM now() - least((SELECT min(created_at) FROM outbox WHERE dispatched_at IS NULL),"
    " (SELECT min(due_at) FROM webhook_queues WHERE due_at <= now()))), 0)"
)


class WebhookTurn(NamedTuple):
    """A lease on the deliveries of one webhook. `claim` differs in each lease."""

    webhook_id: UUID
    tenant_id: UUID
    claim: int


class DueDelivery(NamedTuple):
    """A delivery that is due. `attempts` is the number of earlier attempts."""

    message: WebhookMessage
    attempts: int


class DeliveryResult(msgspec.Struct, frozen=True):
    """The state of a delivery after an attempt."""

    id: UUID
    status: str
    attempt: DeliveryAttempt
    #: None if there is no further attempt
    retry_in_seconds: float | None = None
    #: None if the delivery does not become a dead letter
    dead_in_seconds: float | None = None


class DeliveryBatch(NamedTuple):
    """A batch of due deliveries to one webhook."""

    target: WebhookTarget
    waiting: Sequence[DueDelivery]


def result(waiting: DueDelivery, attempt: DeliveryAttempt) -> DeliveryResult:
    """Return the state of a delivery after `attempt`. The docstring of the package describes the states."""
    message_id, attempts_before = waiting.message.id, waiting.attempts
    if attempt.taken:
        return DeliveryResult(message_id, "delivered", attempt)
    if attempt.blocked:
        return DeliveryResult(message_id, "failed", attempt)
    if attempts_before < len(RETRY_DELAYS_SECONDS):
        return DeliveryResult(message_id, "failed", attempt, retry_in_seconds=RETRY_DELAYS_SECONDS[attempts_before])
    return DeliveryResult(message_id, "failed", attempt, dead_in_seconds=DEAD_LETTER_DELAY_SECONDS)


async def take(connection: AsyncConnection, limit: int, excluded_tenants: Iterable[UUID] = ()) -> list[WebhookTurn]:
    """Lease up to `limit` turns that are due, the least recent first. Turns of `excluded_tenants` are skipped."""
    values = {"max_rows": limit, "without": list(excluded_tenants), "lease": LEASE_SECONDS}
    return [WebhookTurn(*row) for row in await connection.execute(_TAKE, values)]


async def advance(
    session: AsyncSession, turn: WebhookTurn, results: Sequence[DeliveryResult] = (), *, go_on: bool = True
) -> DeliveryBatch | None:
    """Record `results`, and return the next batch. Returns None when the turn is over: nothing is due, the time is up
    (`go_on` is False), the webhook is deleted or disabled, or another process has the turn. In the last case `results`
    are not recorded, and the other process sends these deliveries again."""
    key = {"webhook": turn.webhook_id}
    row = (await session.execute(_LOCK_TURN, {**key, "claim": turn.claim})).first()
    if row is None:
        return None
    if results:
        await session.execute(_RECORD, _columns(results))
    if not row.enabled:
        await session.execute(_CANCEL, key)
    rows = (await session.execute(_NEXT, {**key, "max_rows": BATCH_EVENTS})).all() if go_on else ()
    waiting: list[DueDelivery] = []
    for delivery_id, event_type, payload, attempts, due in rows:
        if not due:
            break
        waiting.append(DueDelivery(WebhookMessage(delivery_id, event_type, payload), attempts))
    if waiting:
        await session.execute(_EXTEND, {**key, "lease": LEASE_SECONDS})
    else:
        await session.execute(_RELEASE, key)
    await session.commit()
    target = WebhookTarget(turn.webhook_id, turn.tenant_id, row.url, row.sealed_secret)
    return DeliveryBatch(target, waiting) if waiting else None


async def extend(session: AsyncSession, turns: Collection[WebhookTurn]) -> None:
    """Extend the leases of `turns`, except those that another process has taken over."""
    await session.execute(_EXTEND_ALL, {**_claims(turns), "lease": LEASE_SECONDS})
    await session.commit()


async def give_back(session: AsyncSession, turns: Collection[WebhookTurn]) -> None:
    """End the leases of interrupted turns, so that other processes can take these turns at once."""
    await session.execute(_GIVE_BACK, _claims(turns))
    await session.commit()


async def mark_dead_letters(session: AsyncSession) -> Sequence[UUID]:
    """Turn failed deliveries into dead letters once their delay is over. Returns the webhook of each dead letter. Does
    not commit."""
    return (await session.scalars(_MARK_DEAD_LETTERS)).all()


async def give_up(session: AsyncSession, max_waiting: int, limit: int) -> Sequence[UUID]:
    """Turn the oldest waiting deliveries into dead letters, up to `limit`, so that at most `max_waiting` deliveries of
    each webhook are left. Returns the webhook of each dead letter. Does not commit."""
    return (await session.scalars(_GIVE_UP, {"waiting": max_waiting, "max_rows": limit})).all()


async def prune(session: AsyncSession, kept: int, limit: int) -> int:
    """Remove up to `limit` finished deliveries. The last `kept` deliveries of each webhook are kept, because they are
    shown. Returns the number of removed deliveries."""
    pruned: Any = await session.execute(_PRUNE, {"kept": kept, "max_rows": limit})
    await session.commit()
    return int(pruned.rowcount)


def _claims(turns: Collection[WebhookTurn]) -> dict[str, Any]:
    return {"webhooks": [turn.webhook_id for turn in turns], "claims": [turn.claim for turn in turns]}


def _columns(results: Sequence[DeliveryResult]) -> dict[str, Any]:
    return {
        "ids": [result.id for result in results],
        "statuses": [result.status for result in results],
        "retries": [result.retry_in_seconds for result in results],
        "dead": [result.dead_in_seconds for result in results],
        "answers": [result.attempt.status for result in results],
        "bodies": [result.attempt.body for result in results],
        "errors": [result.attempt.error for result in results],
        "ats": [result.attempt.at for result in results],
    }


class Lag(msgspec.Struct):
    """The last measurement of this process of the lag of deliveries."""

    #: time for which the oldest event has waited; 0 if no event waits
    seconds: float = 0.0

    async def measure(self, tools: Tools) -> None:
        """Take a new measurement."""
        async with tools.database.service() as session:
            self.seconds = float((await session.execute(_MEASURE_LAG)).scalar_one())

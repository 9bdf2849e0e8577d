"""Sends waiting deliveries. Every process that runs jobs sends to many webhooks concurrently, and to each webhook in
order.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence
from typing import Final
from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.tasks import is_running
from gatehouse.platform.background.jobs import JOBS, Tools
from gatehouse.platform.operations.portal_notices import queue as portal_notices
from gatehouse.platform.operations.webhooks import queue
from gatehouse.platform.operations.webhooks.queue import DeliveryBatch, DeliveryResult, WebhookTurn
from gatehouse.platform.operations.webhooks.sending import DeliveryAttempt, send
from gatehouse.platform.operations.webhooks.table import MAX_SHOWN_DELIVERIES

log = structlog.get_logger(__name__)

#: Maximum number of webhooks to which a process delivers concurrently, in total and of one organization. The limit for
#: one organization prevents many unavailable receivers of it from delaying other organizations.
MAX_CONCURRENT: Final = 256
MAX_CONCURRENT_PER_TENANT: Final = 64
#: Number of turns leased by one query.
_TURNS_PER_QUERY: Final = 32
#: Time after which the turn of a webhook ends, so that other webhooks get theirs.
TURN_SECONDS: Final = 5.0
#: Interval at which leases are extended. Several extensions fit into a lease, so that one of them may fail.
_EXTEND_INTERVAL_SECONDS: Final = queue.LEASE_SECONDS / 4
_POLL_INTERVAL_SECONDS: Final = 0.25
#: Number of database connections that deliveries use at the same time. The other connections of the pool stay free for
#: jobs.
_MAX_CONNECTIONS: Final = 2
#: Maximum number of deliveries that wait for one webhook.
MAX_WAITING_PER_WEBHOOK: Final = 10_000
#: Time limit for deliveries in progress when the process stops. A delivery that is not recorded by then is sent again.
_STOP_TIMEOUT_SECONDS: Final = 3.0
#: Number of deliveries that one statement removes, and the maximum number of its repetitions.
_PRUNED_PER_STATEMENT, _MAX_STATEMENTS = 10_000, 200


async def deliver(tools: Tools) -> None:
    """Deliver until cancelled. Raises the database's errors; the caller starts it again."""
    await Deliveries(tools).run()


async def mark_dead_letters(tools: Tools) -> None:
    """Turn failed deliveries into dead letters once their delay is over."""
    async with tools.database.service() as session:
        await _report_dead_letters(tools, session, await queue.mark_dead_letters(session))


@JOBS.scheduled("webhooks.prune", every_seconds=300)
async def prune(tools: Tools) -> None:
    """Bound the number of waiting deliveries, and remove finished deliveries that are no longer shown."""
    for _ in range(_MAX_STATEMENTS):
        async with tools.database.service() as session:
            given_up = await queue.give_up(session, MAX_WAITING_PER_WEBHOOK, _PRUNED_PER_STATEMENT)
            await _report_dead_letters(tools, session, given_up)
        if len(given_up) < _PRUNED_PER_STATEMENT:
            break
    for _ in range(_MAX_STATEMENTS):
        async with tools.database.service() as session:
            if await queue.prune(session, MAX_SHOWN_DELIVERIES, _PRUNED_PER_STATEMENT) < _PRUNED_PER_STATEMENT:
                break


async def _report_dead_letters(tools: Tools, session: AsyncSession, webhooks: Sequence[UUID]) -> None:
    """Count the dead letters, queue notices if there is a portal, and commit. `webhooks` has the webhook of each dead
    letter."""
    if not webhooks:
        return
    if tools.settings.portal_public_url:
        await portal_notices.add(session, webhooks)
    await session.commit()
    tools.notifications.add(("webhook", "dead_letter"), len(webhooks))


def _outcome(attempt: DeliveryAttempt) -> str:
    """Return the label `result` of the metric for an attempt."""
    if attempt.taken:
        return "delivered"
    return "blocked" if attempt.blocked else "failed"


class Deliveries:
    """The deliveries of one process."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._turns: dict[asyncio.Task[None], WebhookTurn] = {}
        self._database = asyncio.Semaphore(_MAX_CONNECTIONS)
        self._stopping = False

    async def run(self) -> None:
        extending = asyncio.create_task(self._extend_leases())
        try:
            while True:
                if await self.take() < _TURNS_PER_QUERY:
                    await asyncio.sleep(_POLL_INTERVAL_SECONDS)
        finally:
            await self._stop()
            extending.cancel()
            await asyncio.gather(extending, return_exceptions=True)

    async def _stop(self) -> None:
        self._stopping = True
        if self._turns:
            await asyncio.wait(self._turns, timeout=_STOP_TIMEOUT_SECONDS)
        interrupted = dict(self._turns)
        for task in interrupted:
            task.cancel()
        await asyncio.gather(*interrupted, return_exceptions=True)
        if interrupted:
            # If the database is unavailable, the leases expire.
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_STOP_TIMEOUT_SECONDS), self._tools.database.service() as session:
                    await queue.give_back(session, interrupted.values())

    async def _extend_leases(self) -> None:
        """Extend the leases at intervals. Leases are short, so that those of a killed process expire soon."""
        logged = False
        while is_running():
            await asyncio.sleep(_EXTEND_INTERVAL_SECONDS)
            if not self._turns:
                continue
            try:
                async with self._tools.database.service() as session:
                    await queue.extend(session, self._turns.values())
                logged = False
            except Exception as error:
                if not logged:
                    log.warning("webhooks.turns_not_kept", reason=type(error).__name__)
                logged = True

    async def take(self) -> int:
        """Start the turns that are due, within the limits. Returns their number."""
        limit = min(_TURNS_PER_QUERY, MAX_CONCURRENT - len(self._turns))
        if limit <= 0:
            return 0
        turns_by_tenant = Counter(turn.tenant_id for turn in self._turns.values())
        busy = [tenant for tenant, count in turns_by_tenant.items() if count >= MAX_CONCURRENT_PER_TENANT]
        # The query takes a single round trip, because usually nothing is due.
        async with self._database, self._tools.database.at_once() as connection:
            turns = await queue.take(connection, limit, busy)
        for turn in turns:
            task = asyncio.create_task(self._run_turn(turn))
            self._turns[task] = turn
            task.add_done_callback(self._turns.pop)
        return len(turns)

    async def _run_turn(self, turn: WebhookTurn) -> None:
        try:
            await self._deliver(turn)
        except Exception as error:
            # The error most likely comes from the database. The turn is due again when its lease expires.
            log.warning("webhooks.turn_failed", webhook=str(turn.webhook_id), reason=type(error).__name__)

    async def _deliver(self, turn: WebhookTurn) -> None:
        turn_ends = self._tools.clock.monotonic() + TURN_SECONDS
        work = await self._advance(turn, [], go_on=True)
        while work is not None:
            results = await self._send(work, turn_ends)
            work = await self._advance(turn, results, go_on=not self._over(turn_ends))

    async def _advance(self, turn: WebhookTurn, results: list[DeliveryResult], *, go_on: bool) -> DeliveryBatch | None:
        async with self._database, self._tools.database.service() as session:
            return await queue.advance(session, turn, results, go_on=go_on)

    async def _send(self, work: DeliveryBatch, turn_ends: float) -> list[DeliveryResult]:
        """Send the deliveries one after the other. Stops at a delivery that must be retried, and at the end of the
        turn."""
        results: list[DeliveryResult] = []
        for waiting in work.waiting:
            attempt = await send(self._tools.receivers, self._tools.sealer, work.target, waiting.message)
            result = queue.result(waiting, attempt)
            self._tools.notifications.add(("webhook", _outcome(attempt)))
            results.append(result)
            if result.retry_in_seconds is not None or self._over(turn_ends):
                break
        return results

    def _over(self, turn_ends: float) -> bool:
        return self._stopping or self._tools.clock.monotonic() >= turn_ends

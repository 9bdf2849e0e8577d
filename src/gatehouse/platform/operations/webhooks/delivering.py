"""Sends waiting deliveries, to each webhook in order."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.tasks import is_running
from gatehouse.platform.background.jobs import JOBS, Tools
from gatehouse.platform.background.queue_runner import QueueRunner
from gatehouse.platform.operations.portal_notices import queue as portal_notices
from gatehouse.platform.operations.webhooks import queue
from gatehouse.platform.operations.webhooks.queue import DeliveryBatch, DeliveryResult, WebhookTurn
from gatehouse.platform.operations.webhooks.sending import DeliveryAttempt, send
from gatehouse.platform.operations.webhooks.table import MAX_SHOWN_DELIVERIES

log = structlog.get_logger(__name__)

#: Time after which the turn of a webhook ends, so that other webhooks get theirs.
TURN_SECONDS: Final = 5.0
#: Interval at which leases are extended. Several extensions fit into a lease, so that one of them may fail.
_EXTEND_INTERVAL_SECONDS: Final = queue.LEASE_SECONDS / 4
#: Maximum number of deliveries that wait for one webhook.
MAX_WAITING_DELIVERIES_PER_WEBHOOK: Final = 10_000
#: Time limit for deliveries in progress when the process stops. A delivery that is not recorded by then is sent again.
_STOP_TIMEOUT_SECONDS: Final = 3.0
#: Number of deliveries that one statement removes, and the maximum number of its repetitions.
_PRUNED_PER_STATEMENT, _MAX_STATEMENTS = 10_000, 200


async def deliver(tools: Tools) -> None:
    """Deliver until cancelled. Raises the database's errors, after which the caller calls this function again."""
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
            dead_letters = await queue.give_up(session, MAX_WAITING_DELIVERIES_PER_WEBHOOK, _PRUNED_PER_STATEMENT)
            await _report_dead_letters(tools, session, dead_letters)
        if len(dead_letters) < _PRUNED_PER_STATEMENT:
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


class Deliveries(QueueRunner[WebhookTurn]):
    """The deliveries of one process."""

    max_concurrent = 256
    max_concurrent_per_tenant = 64
    poll_interval_seconds = 0.25
    stop_timeout_seconds = _STOP_TIMEOUT_SECONDS
    max_connections = 2
    # A turn with an error is due again when its lease expires.
    failure_event = "webhooks.turn_failed"

    async def run(self) -> None:
        extending = asyncio.create_task(self._extend_leases())
        try:
            await super().run()
        finally:
            extending.cancel()
            await asyncio.gather(extending, return_exceptions=True)

    async def give_back(self, interrupted: Sequence[WebhookTurn]) -> None:
        # If the database is unavailable, the leases expire.
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_STOP_TIMEOUT_SECONDS), self.tools.database.service() as session:
                await queue.give_back(session, interrupted)

    async def _extend_leases(self) -> None:
        """Extend the leases at intervals. Leases are short, so that those of a killed process expire soon."""
        logged = False
        while is_running():
            await asyncio.sleep(_EXTEND_INTERVAL_SECONDS)
            if not self.running:
                continue
            try:
                async with self.tools.database.service() as session:
                    await queue.extend(session, self.running.values())
                logged = False
            except Exception as error:
                if not logged:
                    log.warning("webhooks.turns_not_kept", reason=type(error).__name__)
                logged = True

    async def claim(self, limit: int, busy_tenants: Sequence[UUID]) -> Sequence[WebhookTurn]:
        # The query takes a single round trip, because usually nothing is due.
        async with self.connections, self.tools.database.at_once() as connection:
            return await queue.take(connection, limit, busy_tenants)

    def log_fields(self, piece: WebhookTurn) -> Mapping[str, str]:
        return {"webhook": str(piece.webhook_id)}

    async def work(self, piece: WebhookTurn) -> None:
        turn_ends = self.tools.clock.monotonic() + TURN_SECONDS
        batch = await self._advance(piece, [], go_on=True)
        while batch is not None:
            results = await self._send(batch, turn_ends)
            batch = await self._advance(piece, results, go_on=not self._over(turn_ends))

    async def _advance(self, turn: WebhookTurn, results: list[DeliveryResult], *, go_on: bool) -> DeliveryBatch | None:
        async with self.connections, self.tools.database.service() as session:
            return await queue.advance(session, turn, results, go_on=go_on)

    async def _send(self, work: DeliveryBatch, turn_ends: float) -> list[DeliveryResult]:
        """Send the deliveries one after the other. Stops at a delivery that must be retried, and at the end of the
        turn."""
        results: list[DeliveryResult] = []
        for waiting in work.waiting:
            attempt = await send(self.tools.receivers, self.tools.sealer, work.target, waiting.message)
            result = queue.result(waiting, attempt)
            self.tools.notifications.add(("webhook", _outcome(attempt)))
            results.append(result)
            if result.retry_in_seconds is not None or self._over(turn_ends):
                break
        return results

    def _over(self, turn_ends: float) -> bool:
        return self.is_stopping or self.tools.clock.monotonic() >= turn_ends

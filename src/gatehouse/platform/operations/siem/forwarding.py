"""Forwards waiting events to SIEM systems. The events of one organization are sent in order."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from gatehouse.foundation.siem.senders.sender import BatchRefused
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.background.queue_runner import QueueRunner
from gatehouse.platform.operations.siem import queue
from gatehouse.platform.operations.siem.queue import EventBatch, ForwardingTurn, SendResult
from gatehouse.platform.operations.siem.sending import SealedSenders

#: Time after which the turn of an organization ends, so that other organizations get theirs.
TURN_SECONDS: Final = 5.0
#: Time limit for one batch, whatever the type of the receiver. It is well below the duration of a lease.
_SEND_TIMEOUT_SECONDS: Final = 20.0


async def forward(tools: Tools) -> None:
    """Forward until cancelled. Raises the database's errors, after which the caller calls this function again."""
    await Forwarding(tools).run()


class Forwarding(QueueRunner[ForwardingTurn]):
    """The forwarding by one process. Each organization has one batch in memory, which is small if its receiver
    fails."""

    max_concurrent = 128
    #: an organization has one turn at a time
    max_concurrent_per_tenant = 1
    poll_interval_seconds = 0.5
    # The leases of cancelled turns expire.
    stop_timeout_seconds = 0.0
    # A turn with an error is due again when its lease expires.
    failure_event = "siem.turn_failed"

    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self._senders = SealedSenders(tools.receivers, tools.sealer, tools.settings.gatehouse_home)

    async def claim(self, limit: int, busy_tenants: Sequence[UUID]) -> Sequence[ForwardingTurn]:
        # The query takes a single round trip, because usually nothing is due. It skips leased turns.
        async with self.connections, self.tools.database.at_once() as connection:
            return await queue.take(connection, limit)

    def log_fields(self, piece: ForwardingTurn) -> Mapping[str, str]:
        return {"tenant_id": str(piece.tenant_id)}

    async def work(self, piece: ForwardingTurn) -> None:
        turn_ends = self.tools.clock.monotonic() + TURN_SECONDS
        batch = await self._advance(piece, None, go_on=True)
        while batch is not None:
            done = await self._send(batch)
            batch = await self._advance(piece, done, go_on=self.tools.clock.monotonic() < turn_ends)

    async def _advance(self, turn: ForwardingTurn, done: SendResult | None, *, go_on: bool) -> EventBatch | None:
        async with self.connections, self.tools.database.service() as session:
            return await queue.advance(session, turn, done, go_on=go_on)

    async def _send(self, work: EventBatch) -> SendResult:
        """Send the batch. If the receiver finds it too large, halves it, down to one event."""
        count = len(work.events)
        try:
            async with asyncio.timeout(_SEND_TIMEOUT_SECONDS):
                while True:
                    try:
                        await self._senders.send(work.target, work.events[:count])
                    except BatchRefused as error:
                        if not error.too_large or count == 1:
                            return SendResult(work, count, error.reason)
                        count //= 2
                    else:
                        return SendResult(work, count)
        except TimeoutError:
            return SendResult(work, count, f"not accepted within {_SEND_TIMEOUT_SECONDS:g} s")

"""Forwards waiting events to SIEM systems. Every process that runs jobs forwards for many organizations concurrently.
The events of one organization are sent in order."""

import asyncio
from typing import Final

import structlog

from gatehouse.foundation.siem.senders.sender import BatchRefused
from gatehouse.platform.background.jobs import Tools
from gatehouse.platform.operations.siem import queue
from gatehouse.platform.operations.siem.queue import EventBatch, ForwardingTurn, SendResult
from gatehouse.platform.operations.siem.sending import SealedSenders

log = structlog.get_logger(__name__)

#: Maximum number of organizations for which a process sends concurrently. Each has one batch in memory, which is small
#: if its receiver fails.
MAX_CONCURRENT: Final = 128
#: Number of turns leased by one query.
_TURNS_PER_QUERY: Final = 32
#: Time after which the turn of an organization ends, so that other organizations get theirs.
TURN_SECONDS: Final = 5.0
_POLL_INTERVAL_SECONDS: Final = 0.5
#: Time limit for one batch, whatever the type of the receiver. It is well below the duration of a lease.
_SEND_TIMEOUT_SECONDS: Final = 20.0


async def forward(tools: Tools) -> None:
    """Forward until cancelled. Raises the database's errors; the caller starts it again."""
    await Forwarding(tools).run()


class Forwarding:
    """The forwarding by one process."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._senders = SealedSenders(tools.receivers, tools.sealer, tools.settings.gatehouse_home)
        self._turns: set[asyncio.Task[None]] = set()
        # The lock limits forwarding to one database connection at a time, so that the others stay free for other work.
        self._database = asyncio.Lock()

    async def run(self) -> None:
        try:
            while True:
                if await self.take() < _TURNS_PER_QUERY:
                    await asyncio.sleep(_POLL_INTERVAL_SECONDS)
        finally:
            # The leases of the cancelled turns expire.
            for turn in self._turns:
                turn.cancel()
            await asyncio.gather(*self._turns, return_exceptions=True)

    async def take(self) -> int:
        """Start the turns that are due, within the limit. Returns their number."""
        limit = min(_TURNS_PER_QUERY, MAX_CONCURRENT - len(self._turns))
        if limit <= 0:
            return 0
        # The query takes a single round trip, because usually nothing is due.
        async with self._database, self._tools.database.at_once() as connection:
            turns = await queue.take(connection, limit)
        for turn in turns:
            task = asyncio.create_task(self._run_turn(turn))
            self._turns.add(task)
            task.add_done_callback(self._turns.discard)
        return len(turns)

    async def _run_turn(self, turn: ForwardingTurn) -> None:
        try:
            await self._forward(turn)
        except Exception as error:
            # The error most likely comes from the database. The turn is due again when its lease expires.
            log.warning("siem.turn_failed", tenant_id=str(turn.tenant_id), reason=type(error).__name__)

    async def _forward(self, turn: ForwardingTurn) -> None:
        turn_ends = self._tools.clock.monotonic() + TURN_SECONDS
        work = await self._advance(turn, None, go_on=True)
        while work is not None:
            done = await self._send(work)
            work = await self._advance(turn, done, go_on=self._tools.clock.monotonic() < turn_ends)

    async def _advance(self, turn: ForwardingTurn, done: SendResult | None, *, go_on: bool) -> EventBatch | None:
        async with self._database, self._tools.database.service() as session:
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

"""Sends what waits: on every process that works on jobs, many organizations at once, each in its own order."""

import asyncio
from typing import Final

import structlog

from gatehouse.foundation.siem.senders.sender import NotTaken
from gatehouse.platform.jobs import Tools
from gatehouse.platform.operations.siem import queue
from gatehouse.platform.operations.siem.queue import Done, Turn, Work
from gatehouse.platform.operations.siem.sending import SealedSenders

log = structlog.get_logger(__name__)

#: Organizations that a process sends for at once. Each holds one batch, that of a dead receiver a small one.
AT_ONCE: Final = 128
#: Turns that are taken together.
_TAKEN: Final = 32
#: Seconds of an organization's turn, after which others that wait have theirs.
SLICE: Final = 5.0
#: Seconds between two looks for turns.
_PAUSE: Final = 0.5
#: Seconds for a batch, whatever its type does: well within the lease.
_SECONDS: Final = 20.0


async def forward(tools: Tools) -> None:
    """Until it is cancelled. Raises what the database raises: whoever called it begins anew."""
    await Forwarding(tools).run()


class Forwarding:
    """One process's."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._senders = SealedSenders(tools.receivers, tools.sealer, tools.settings.gatehouse_home)
        self._turns: set[asyncio.Task[None]] = set()
        # Of the pool's few connections, one: the rest is for others.
        self._database = asyncio.Lock()

    async def run(self) -> None:
        try:
            while True:
                if await self.take() < _TAKEN:
                    await asyncio.sleep(_PAUSE)
        finally:
            # Their leases end by themselves.
            for turn in self._turns:
                turn.cancel()
            await asyncio.gather(*self._turns, return_exceptions=True)

    async def take(self) -> int:
        """Begins turns that are due, as many as may be; how many these were."""
        most = min(_TAKEN, AT_ONCE - len(self._turns))
        if most <= 0:
            return 0
        # There is nothing, most of the time: then one round trip must do.
        async with self._database, self._tools.database.at_once() as connection:
            turns = await queue.take(connection, most)
        for turn in turns:
            task = asyncio.create_task(self._have(turn))
            self._turns.add(task)
            task.add_done_callback(self._turns.discard)
        return len(turns)

    async def _have(self, turn: Turn) -> None:
        try:
            await self._forward(turn)
        except Exception as error:
            # The database's, most likely. The lease ends, and then it is somebody's turn again.
            log.warning("siem.turn_failed", tenant_id=str(turn.tenant_id), reason=type(error).__name__)

    async def _forward(self, turn: Turn) -> None:
        ends = self._tools.clock.monotonic() + SLICE
        work = await self._advance(turn, None, go_on=True)
        while work is not None:
            done = await self._send(work)
            work = await self._advance(turn, done, go_on=self._tools.clock.monotonic() < ends)

    async def _advance(self, turn: Turn, done: Done | None, *, go_on: bool) -> Work | None:
        async with self._database, self._tools.database.service() as session:
            return await queue.advance(session, turn, done, go_on=go_on)

    async def _send(self, work: Work) -> Done:
        """What is too large is tried with half as many, down to one."""
        count = len(work.events)
        try:
            async with asyncio.timeout(_SECONDS):
                while True:
                    try:
                        await self._senders.send(work.target, work.events[:count])
                    except NotTaken as error:
                        if not error.too_large or count == 1:
                            return Done(work, count, error.reason)
                        count //= 2
                    else:
                        return Done(work, count)
        except TimeoutError:
            return Done(work, count, f"not taken within {_SECONDS:g} s")

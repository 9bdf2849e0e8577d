"""Delivers what waits: on every process that works on jobs, many webhooks at once, each in its own order."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence
from typing import Final
from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.tasks import wanted
from gatehouse.platform.jobs import Tools, scheduled
from gatehouse.platform.operations.portal_notices import queue as portal_notices
from gatehouse.platform.operations.webhooks import queue
from gatehouse.platform.operations.webhooks.queue import Result, Turn, Work
from gatehouse.platform.operations.webhooks.sending import Attempt, send
from gatehouse.platform.operations.webhooks.table import SHOWN

log = structlog.get_logger(__name__)

#: Webhooks that are delivered to at once: by a process, and of them an organization's, so that one with many dead
#: receivers does not take the others' turns.
AT_ONCE: Final = 256
A_TENANTS: Final = 64
#: Turns that are taken together.
_TAKEN: Final = 32
#: Seconds of a webhook's turn, after which others that wait have theirs.
SLICE: Final = 5.0
#: Seconds after which turns are prolonged: often enough for one that fails.
_KEEP: Final = queue.LEASE / 4
#: Seconds between two looks for turns.
_PAUSE: Final = 0.25
#: Connections of the pool's few that deliveries use; the rest is for jobs.
_CONNECTIONS: Final = 2
#: Deliveries that may wait for one webhook.
WAITING: Final = 10_000
#: Seconds that deliveries on their way are waited for at the end: whatever is not noted then is sent again.
_LAST: Final = 3.0
#: Deliveries that one statement removes, and how often it is repeated at most.
_MOST, _ROUNDS = 10_000, 200


async def deliver(tools: Tools) -> None:
    """Until it is cancelled. Raises what the database raises: whoever called it begins anew."""
    await Deliveries(tools).run()


async def bury(tools: Tools) -> None:
    async with tools.database.service() as session:
        await _tell_dead(tools, session, await queue.bury(session))


@scheduled("webhooks.prune", "*/5 * * * *")
async def prune(tools: Tools) -> None:
    for _ in range(_ROUNDS):
        async with tools.database.service() as session:
            given_up = await queue.give_up(session, WAITING, _MOST)
            await _tell_dead(tools, session, given_up)
        if len(given_up) < _MOST:
            break
    for _ in range(_ROUNDS):
        async with tools.database.service() as session:
            if await queue.prune(session, SHOWN, _MOST) < _MOST:
                break


async def _tell_dead(tools: Tools, session: AsyncSession, webhooks: Sequence[UUID]) -> None:
    """Dead letters, by their webhooks: counted, and noted for the portal where there is one."""
    if not webhooks:
        return
    if tools.settings.portal_public_url:
        await portal_notices.add(session, webhooks)
    await session.commit()
    tools.notifications.add(("webhook", "dead_letter"), len(webhooks))


def _counted(attempt: Attempt) -> str:
    if attempt.taken:
        return "delivered"
    return "blocked" if attempt.blocked else "failed"


class Deliveries:
    """One process's deliveries."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._turns: dict[asyncio.Task[None], Turn] = {}
        self._database = asyncio.Semaphore(_CONNECTIONS)
        self._ending = False

    async def run(self) -> None:
        keeping = asyncio.create_task(self._keep())
        try:
            while True:
                if await self.take() < _TAKEN:
                    await asyncio.sleep(_PAUSE)
        finally:
            await self._end()
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    async def _end(self) -> None:
        self._ending = True
        if self._turns:
            await asyncio.wait(self._turns, timeout=_LAST)
        broken_off = dict(self._turns)
        for task in broken_off:
            task.cancel()
        await asyncio.gather(*broken_off, return_exceptions=True)
        if broken_off:
            # Where the database is away their leases end by themselves.
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_LAST), self._tools.database.service() as session:
                    await queue.give_back(session, broken_off.values())

    async def _keep(self) -> None:
        """Short leases, prolonged again and again: those of a killed process end soon."""
        told = False
        while wanted():
            await asyncio.sleep(_KEEP)
            if not self._turns:
                continue
            try:
                async with self._tools.database.service() as session:
                    await queue.keep(session, self._turns.values())
                told = False
            except Exception as error:
                if not told:
                    log.warning("webhooks.turns_not_kept", reason=type(error).__name__)
                told = True

    async def take(self) -> int:
        """Begins turns that are due, as many as may be; how many these were."""
        most = min(_TAKEN, AT_ONCE - len(self._turns))
        if most <= 0:
            return 0
        had = Counter(turn.tenant_id for turn in self._turns.values())
        busy = [tenant for tenant, turns in had.items() if turns >= A_TENANTS]
        # There is nothing, most of the time: then one round trip must do.
        async with self._database, self._tools.database.at_once() as connection:
            turns = await queue.take(connection, most, busy)
        for turn in turns:
            task = asyncio.create_task(self._have(turn))
            self._turns[task] = turn
            task.add_done_callback(self._turns.pop)
        return len(turns)

    async def _have(self, turn: Turn) -> None:
        try:
            await self._deliver(turn)
        except Exception as error:
            # The database's, most likely. The lease ends, and then it is somebody's turn again.
            log.warning("webhooks.turn_failed", webhook=str(turn.webhook_id), reason=type(error).__name__)

    async def _deliver(self, turn: Turn) -> None:
        ends = self._tools.clock.monotonic() + SLICE
        work = await self._advance(turn, [], go_on=True)
        while work is not None:
            results = await self._send(work, ends)
            work = await self._advance(turn, results, go_on=not self._over(ends))

    async def _advance(self, turn: Turn, results: list[Result], *, go_on: bool) -> Work | None:
        async with self._database, self._tools.database.service() as session:
            return await queue.advance(session, turn, results, go_on=go_on)

    async def _send(self, work: Work, ends: float) -> list[Result]:
        """One after the other, as far as the order, and the time, allow."""
        results: list[Result] = []
        for waiting in work.waiting:
            attempt = await send(self._tools.receivers, self._tools.sealer, work.target, waiting.message)
            done = queue.result(waiting, attempt)
            self._tools.notifications.add(("webhook", _counted(attempt)))
            results.append(done)
            if done.retry_in is not None or self._over(ends):
                break
        return results

    def _over(self, ends: float) -> bool:
        return self._ending or self._tools.clock.monotonic() >= ends

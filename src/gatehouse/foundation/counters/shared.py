"""Counting in Redis, for all workers together (reference 1, Rate limiting on the platform, 2).

Redis never costs a request its answer, and at most 50 ms. What Redis cannot count is counted in this process: each
worker then lets `limit` through by itself, and what was counted meanwhile is forgotten when Redis is back.
"""

import asyncio
import random
from contextlib import suppress
from typing import Any, Final

import hiredis
import structlog

from gatehouse.foundation.clock import SYSTEM_CLOCK, Clock
from gatehouse.foundation.counters import WINDOW, Claim, Taken, told
from gatehouse.foundation.counters.memory import MemoryCounters
from gatehouse.foundation.counters.redis_line import Address, LineLost, RedisLine
from gatehouse.foundation.counters.script import Script

_log = structlog.get_logger(__name__)

#: Seconds between two tries to reach Redis, and at most for one.
PAUSE: Final = 1.0
CONNECT: Final = 1.0


class RedisCounters:
    """Shape of `engine.ports.Counters`; keys are `rl:{client_key}`. Call `start` before and `close` after use, on the
    loop that takes.

    The first call that goes wrong opens the circuit: no request asks Redis any more, and a task of its own tries, at
    once and then each second, until Redis takes a probe within `timeout`. For metrics: `degraded` is 1 while the
    circuit is open, `degraded_total` how many takes were counted in this process.
    """

    def __init__(
        self,
        redis_url: str,
        fallback: MemoryCounters,
        clock: Clock = SYSTEM_CLOCK,
        timeout: float = 0.05,
        *,
        window: float = WINDOW,
    ) -> None:
        self._address = Address.parse(redis_url)
        self._fallback = fallback
        self._clock = clock
        self._timeout = timeout
        self._script = Script(window)
        self._line: RedisLine | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._reached = asyncio.Event()
        self.degraded_total = 0

    @property
    def degraded(self) -> int:
        return int(self._line is None)

    async def start(self) -> None:
        """Returns when Redis is reached, or after a second without it: the search goes on then."""
        self._keeper = asyncio.create_task(self._keep(), name="redis-counters")
        with suppress(TimeoutError):
            async with asyncio.timeout(CONNECT):
                await self._reached.wait()

    async def close(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.wait([keeper])

    async def take(self, key: str, limit: int) -> Taken:
        """Counts one request of `key` against `limit` in the last 60 seconds, if it fits."""
        return await self.take_all((key, limit))

    async def take_all(self, *claims: Claim) -> Taken:
        """Counts one request against every claim, or against none if one has no room. At least one claim."""
        line = self._line
        if line is not None:
            try:
                return self._read(await self._ask(line, claims), claims)
            except LineLost:
                self._give_up(line)
        self.degraded_total += 1
        return self._fallback.take_now(*claims)

    async def _ask(self, line: RedisLine, claims: tuple[Claim, ...]) -> Any:
        arguments: list[str | int] = [len(claims)]
        arguments += [f"rl:{key}" for key, _ in claims]
        arguments += [limit for _, limit in claims]
        answer = await line.send("EVALSHA", self._script.sha, *arguments)
        if isinstance(answer, hiredis.ReplyError):
            if not str(answer).startswith("NOSCRIPT"):
                raise LineLost(str(answer))
            # Redis was told to forget its scripts; this loads it again.
            answer = await line.call("EVAL", self._script.source, *arguments)
        return answer

    def _read(self, answer: Any, claims: tuple[Claim, ...]) -> Taken:
        try:
            allowed, claim, used, wait = map(int, answer)
            limit = claims[claim][1]
        except (TypeError, ValueError, IndexError):
            raise LineLost("an answer that no script of ours gives") from None
        now = self._clock.now()
        return told(allowed=allowed == 1, claim=claim, limit=limit, used=used, wait=wait / 1_000_000, now=now)

    def _give_up(self, line: RedisLine) -> None:
        if self._line is line:
            self._line = None
        line.close()

    async def _keep(self) -> None:
        """Holds a line for as long as this runs."""
        loop = asyncio.get_running_loop()
        said: str | None = None
        while True:
            began = loop.time()
            try:
                async with asyncio.timeout(CONNECT):
                    line = await self._reach()
            except (OSError, LineLost, TimeoutError) as error:
                if said != (said := type(error).__name__):
                    _log.warning("counters_degraded", reason=str(error) or said)
            else:
                if said is not None:
                    _log.info("counters_restored")
                    said = None
                self._line = line
                self._reached.set()
                try:
                    await line.lost
                finally:
                    self._give_up(line)
            # At once after a line that held; with some spread, for the workers lost theirs together.
            pause = PAUSE * random.uniform(0.8, 1.2)  # noqa: S311
            await asyncio.sleep(max(0.0, began + pause - loop.time()))

    async def _reach(self) -> RedisLine:
        line = await RedisLine.connect(self._address, self._timeout)
        try:
            await line.call("SCRIPT", "LOAD", self._script.source)
            # The probe writes: a replica, or a Redis out of memory, must not pass for one that counts.
            self._read(await self._ask(line, (("probe", 1_000_000_000),)), (("probe", 1_000_000_000),))
        except BaseException:
            line.close()
            raise
        return line

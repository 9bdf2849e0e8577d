"""Counting in Redis, for all workers together (reference 1, Rate limiting on the platform, 2).

Redis never costs a request its answer, and at most 50 ms. What Redis cannot count is counted in this process: each
worker then lets `limit` through by itself, and what was counted meanwhile is forgotten when Redis is back.
"""

from typing import Any

import hiredis

from gatehouse.foundation.clock import SYSTEM_CLOCK, Clock
from gatehouse.foundation.counters import WINDOW, Claim, Taken, told
from gatehouse.foundation.counters.memory import MemoryCounters
from gatehouse.foundation.counters.script import Script
from gatehouse.foundation.redis.kept import KeptLine
from gatehouse.foundation.redis.line import LineLost, RedisLine


class RedisCounters:
    """Shape of `engine.ports.Counters`; keys are `rl:{client_key}`. Call `start` before and `close` after use, on the
    loop that takes.

    The first call that goes wrong opens the circuit (`KeptLine`): no request asks Redis any more. For metrics:
    `degraded` is 1 while it is open, `degraded_total` how many takes were counted in this process.
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
        self._redis = KeptLine(redis_url, timeout, name="counters", prove=self._prove)
        self._fallback = fallback
        self._clock = clock
        self._script = Script(window)
        self.start = self._redis.start
        self.close = self._redis.close
        self.degraded_total = 0

    @property
    def degraded(self) -> int:
        return int(self._redis.line is None)

    async def take(self, key: str, limit: int) -> Taken:
        """Counts one request of `key` against `limit` in the last 60 seconds, if it fits."""
        return await self.take_all((key, limit))

    async def take_all(self, *claims: Claim) -> Taken:
        """Counts one request against every claim, or against none if one has no room. At least one claim."""
        line = self._redis.line
        if line is not None:
            try:
                return self._read(await self._ask(line, claims), claims)
            except LineLost:
                self._redis.give_up(line)
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

    async def _prove(self, line: RedisLine) -> None:
        """The probe writes: a replica, or a Redis out of memory, must not pass for one that counts."""
        await line.call("SCRIPT", "LOAD", self._script.source)
        self._read(await self._ask(line, (("probe", 1_000_000_000),)), (("probe", 1_000_000_000),))

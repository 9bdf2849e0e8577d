"""Counts requests in Redis for all workers (docs/rate-limits.md).

If Redis fails, requests do not fail, and are delayed by at most 50 ms. While Redis cannot count, each worker counts its
own requests, so each worker admits up to `limit` requests. These counts are dropped when Redis is available again.
"""

from typing import Any

import hiredis

from gatehouse.foundation.clock import SYSTEM_CLOCK, Clock
from gatehouse.foundation.counters import WINDOW_SECONDS, Claim, RateDecision, decision
from gatehouse.foundation.counters.memory import MemoryCounters
from gatehouse.foundation.counters.script import Script
from gatehouse.foundation.redis.kept import ReconnectingLine
from gatehouse.foundation.redis.line import LineLost, RedisLine


class RedisCounters:
    """Implements `engine.ports.Counters` with Redis keys `rl:{client_key}`. Call `start` before the first use and
    `close` after the last, on the event loop of the requests.

    The first failed call opens the circuit (`ReconnectingLine`): requests no longer wait for Redis. Two attributes are
    for metrics: `degraded` is 1 while the circuit is open, and `degraded_total` is the number of requests that this
    process has counted in its own memory.
    """

    def __init__(
        self,
        redis_url: str,
        fallback: MemoryCounters,
        clock: Clock = SYSTEM_CLOCK,
        timeout: float = 0.05,
        *,
        window: float = WINDOW_SECONDS,
    ) -> None:
        self._redis = ReconnectingLine(redis_url, timeout, name="counters", prove=self._prove)
        self._fallback = fallback
        self._clock = clock
        self._script = Script(window)
        self.start = self._redis.start
        self.close = self._redis.close
        self.degraded_total = 0

    @property
    def degraded(self) -> int:
        return int(self._redis.line is None)

    async def take(self, key: str, limit: int, *, own_limit: int | None = None) -> RateDecision:
        """Counts one request of `key` if fewer than `limit` were admitted in the last 60 seconds. While Redis is
        unavailable, `own_limit` applies instead."""
        return await self._take(((key, limit),), ((key, limit if own_limit is None else own_limit),))

    async def take_all(self, *claims: Claim) -> RateDecision:
        """Counts one request against every claim, or against none if one of them is full. Needs at least one claim."""
        return await self._take(claims, claims)

    async def _take(self, claims: tuple[Claim, ...], own_claims: tuple[Claim, ...]) -> RateDecision:
        """Counts a request against `claims`, or against `own_claims` in this process if Redis is unavailable."""
        line = self._redis.line
        if line is not None:
            try:
                return self._read(await self._run_script(line, claims), claims)
            except LineLost:
                self._redis.give_up(line)
        self.degraded_total += 1
        return self._fallback.take_now(*own_claims)

    async def _run_script(self, line: RedisLine, claims: tuple[Claim, ...]) -> Any:
        arguments: list[str | int] = [len(claims)]
        arguments += [f"rl:{key}" for key, _ in claims]
        arguments += [limit for _, limit in claims]
        answer = await line.send("EVALSHA", self._script.sha, *arguments)
        if isinstance(answer, hiredis.ReplyError):
            if not str(answer).startswith("NOSCRIPT"):
                raise LineLost(str(answer))
            # Redis's script cache was flushed. EVAL loads the script again.
            answer = await line.call("EVAL", self._script.source, *arguments)
        return answer

    def _read(self, answer: Any, claims: tuple[Claim, ...]) -> RateDecision:
        try:
            allowed, claim, used, wait = map(int, answer)
            limit = claims[claim][1]
        except (TypeError, ValueError, IndexError):
            raise LineLost("unexpected result of the counting script") from None
        now = self._clock.now()
        return decision(allowed=allowed == 1, claim=claim, limit=limit, used=used, wait=wait / 1_000_000, now=now)

    async def _prove(self, line: RedisLine) -> None:
        """Checks that Redis can count, with a request of the key `probe`. Raises `LineLost` for a Redis that does not
        accept writes, such as a replica or a Redis without free memory."""
        await line.call("SCRIPT", "LOAD", self._script.source)
        self._read(await self._run_script(line, (("probe", 1_000_000_000),)), (("probe", 1_000_000_000),))

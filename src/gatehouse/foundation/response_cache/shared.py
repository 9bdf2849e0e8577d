"""Answers kept in Redis, for all workers together.

Redis never costs a request its answer, and at most 50 ms: where it is away, slow or full, nothing is found and nothing
kept. Whoever can read it learns nothing: answers are sealed, and names are digests under a secret, so that no request
can be guessed and tried.
"""

import asyncio
import hashlib
from collections import OrderedDict
from typing import Any, Final, NamedTuple

from gatehouse.foundation.clock import SYSTEM_CLOCK, Clock
from gatehouse.foundation.redis.kept import KeptLine
from gatehouse.foundation.redis.line import LineLost, RedisLine
from gatehouse.foundation.sealing import CannotOpen, Sealer

_PREFIX: Final = b"rc:"


class _Put(NamedTuple):
    size: int
    until: float


class RedisCache:
    """`secret` (32 bytes) seals; another one finds nothing. This process has at most `max_bytes` in Redis: the oldest
    of its own go first. Call `start` before and `close` after use, on the loop that asks."""

    def __init__(
        self, redis_url: str, secret: bytes, max_bytes: int, clock: Clock = SYSTEM_CLOCK, timeout: float = 0.05
    ) -> None:
        # A connection of its own: behind large answers nobody waits who is only counted.
        self._redis = KeptLine(redis_url, timeout, name="response_cache", prove=lambda line: line.call("PING"))
        self._secret = secret
        self._sealer = Sealer({"1": secret}, "1")
        self._max = max_bytes
        self._clock = clock
        self._own: OrderedDict[bytes, _Put] = OrderedDict()
        self.start = self._redis.start
        self.close = self._redis.close
        self.bytes = 0

    async def get(self, key: bytes) -> bytes | None:
        line = self._redis.line
        if line is None:
            return None
        name = self._name(key)
        try:
            sealed = await line.send("GET", name)
        except LineLost:
            self._redis.give_up(line)
            return None
        if not isinstance(sealed, bytes):
            return None
        try:
            return self._sealer.open(sealed.decode("ascii"), context=name)
        except (CannotOpen, UnicodeDecodeError):
            return None

    def put(self, key: bytes, value: bytes, seconds: int) -> None:
        """Does not wait for Redis."""
        line = self._redis.line
        if line is None:
            return
        name = self._name(key)
        sealed = self._sealer.seal(value, context=name)
        size = len(sealed)
        if size > self._max:
            return
        self._forget(name)
        self._make_room(line, size)
        self._own[name] = _Put(size, self._clock.monotonic() + seconds)
        self.bytes += size
        self._send(line, "SET", name, sealed, "EX", seconds)

    def _make_room(self, line: RedisLine, size: int) -> None:
        now = self._clock.monotonic()
        while self._own and (self.bytes + size > self._max or next(iter(self._own.values())).until <= now):
            name, put = self._own.popitem(last=False)
            self.bytes -= put.size
            if put.until > now:
                self._send(line, "DEL", name)

    def _forget(self, name: bytes) -> None:
        put = self._own.pop(name, None)
        if put is not None:
            self.bytes -= put.size

    def _send(self, line: RedisLine, *command: str | int | bytes) -> None:
        def answered(answer: "asyncio.Future[Any]") -> None:
            if answer.exception() is not None:
                self._redis.give_up(line)

        # Errors of Redis itself (no memory left) come as values: then nothing was kept.
        line.send(*command).add_done_callback(answered)

    def _name(self, key: bytes) -> bytes:
        return _PREFIX + hashlib.blake2b(key, key=self._secret, digest_size=32).hexdigest().encode()

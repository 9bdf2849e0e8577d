"""A response cache in Redis for all workers.

If Redis fails, requests do not fail, and are delayed by at most 50 ms. While Redis is unavailable, slow or full, the
cache finds and stores nothing. Entries are encrypted, and their keys are keyed digests. So a person who can read Redis
can neither read answers nor test guesses of requests.
"""

import asyncio
import hashlib
from collections import OrderedDict
from typing import Any, Final, NamedTuple

from gatehouse.foundation.clock import SYSTEM_CLOCK, Clock
from gatehouse.foundation.redis.kept import ReconnectingLine
from gatehouse.foundation.redis.line import LineLost, RedisLine
from gatehouse.foundation.secrets.sealing import CannotOpen, Sealer

_PREFIX: Final = b"rc:"


class _StoredEntry(NamedTuple):
    size: int
    expires_at: float


class RedisCache:
    """A response cache in Redis. Entries are encrypted with `secret` (32 bytes), and a cache with another secret does
    not find them. This process stores at most `max_bytes` in Redis and removes its oldest entries first. Call `start`
    before the first use and `close` after the last, on the event loop of the calls."""

    def __init__(
        self, redis_url: str, secret: bytes, max_bytes: int, clock: Clock = SYSTEM_CLOCK, timeout: float = 0.05
    ) -> None:
        # The cache has a connection of its own, so that the rate-limit counters do not wait for large answers.
        self._redis = ReconnectingLine(redis_url, timeout, name="response_cache", prove=lambda line: line.call("PING"))
        self._secret = secret
        self._sealer = Sealer({"1": secret}, "1")
        self._max_bytes = max_bytes
        self._clock = clock
        self._stored: OrderedDict[bytes, _StoredEntry] = OrderedDict()
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
        """Stores a value for `seconds`, without waiting for Redis."""
        line = self._redis.line
        if line is None:
            return
        name = self._name(key)
        sealed = self._sealer.seal(value, context=name)
        size = len(sealed)
        if size > self._max_bytes:
            return
        self._forget(name)
        self._make_room(line, size)
        self._stored[name] = _StoredEntry(size, self._clock.monotonic() + seconds)
        self.bytes += size
        self._send(line, "SET", name, sealed, "EX", seconds)

    def _make_room(self, line: RedisLine, size: int) -> None:
        now = self._clock.monotonic()
        while self._stored and (
            self.bytes + size > self._max_bytes or next(iter(self._stored.values())).expires_at <= now
        ):
            name, entry = self._stored.popitem(last=False)
            self.bytes -= entry.size
            if entry.expires_at > now:
                self._send(line, "DEL", name)

    def _forget(self, name: bytes) -> None:
        entry = self._stored.pop(name, None)
        if entry is not None:
            self.bytes -= entry.size

    def _send(self, line: RedisLine, *command: str | int | bytes) -> None:
        def on_reply(reply: "asyncio.Future[Any]") -> None:
            if reply.exception() is not None:
                self._redis.give_up(line)

        # An error reply of Redis, for example if it is out of memory, raises no exception. The entry is then not
        # stored.
        line.send(*command).add_done_callback(on_reply)

    def _name(self, key: bytes) -> bytes:
        return _PREFIX + hashlib.blake2b(key, key=self._secret, digest_size=32).hexdigest().encode()

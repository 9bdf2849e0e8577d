"""A connection to Redis that reconnects in the background, so that requests never wait for a connection."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import structlog

from gatehouse.foundation.redis.line import Address, LineLost, RedisLine

_log = structlog.get_logger(__name__)

#: interval between two attempts to connect
RECONNECT_INTERVAL_SECONDS: Final = 1.0
CONNECT_TIMEOUT_SECONDS: Final = 1.0


class ReconnectingLine:
    """A connection with a circuit breaker. `line` is None while the circuit is open.

    After a failed call, the caller opens the circuit with `give_up`. A task then tries to connect, immediately and then
    every second, until `prove` succeeds. `timeout` limits the wait for each reply of Redis, in seconds. Call `start`
    before the first use and `close` after the last, on the event loop of the calls. `name` names the user of the
    connection in log events.
    """

    def __init__(
        self, redis_url: str, timeout: float, *, name: str, prove: Callable[[RedisLine], Awaitable[object]]
    ) -> None:
        self._address = Address.parse(redis_url)
        self._timeout = timeout
        self._name = name
        self._prove = prove
        self._task: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()
        self.line: RedisLine | None = None

    async def start(self) -> None:
        """Starts the task. Returns when Redis is connected, or after one second. In the second case the task continues
        to try."""
        self._task = asyncio.create_task(self._keep_connected(), name=f"redis-{self._name}")
        with suppress(TimeoutError):
            async with asyncio.timeout(CONNECT_TIMEOUT_SECONDS):
                await self._connected.wait()

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def give_up(self, line: RedisLine) -> None:
        if self.line is line:
            self.line = None
        line.close()

    async def _keep_connected(self) -> None:
        """Connects, and connects again after each loss, until the task is cancelled."""
        loop = asyncio.get_running_loop()
        logged_error: str | None = None
        while True:
            started = loop.time()
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_SECONDS):
                    line = await self._connect()
            except (OSError, LineLost, TimeoutError) as error:
                if logged_error != (logged_error := type(error).__name__):
                    _log.warning(f"{self._name}_degraded", reason=str(error) or logged_error)
            else:
                if logged_error is not None:
                    _log.info(f"{self._name}_restored")
                    logged_error = None
                self.line = line
                self._connected.set()
                try:
                    await line.lost
                finally:
                    self.give_up(line)
            # After the loss of a connection that was open for longer than the interval, connect immediately. The
            # interval is random, because all workers lose their connections at the same time.
            interval = RECONNECT_INTERVAL_SECONDS * random.uniform(0.8, 1.2)  # noqa: S311
            await asyncio.sleep(max(0.0, started + interval - loop.time()))

    async def _connect(self) -> RedisLine:
        line = await RedisLine.connect(self._address, self._timeout)
        try:
            await self._prove(line)
        except BaseException:
            line.close()
            raise
        return line

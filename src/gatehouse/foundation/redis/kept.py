"""A line to Redis that is found again when it was lost, and never waited for."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import structlog

from gatehouse.foundation.redis.line import Address, LineLost, RedisLine

_log = structlog.get_logger(__name__)

#: Seconds between two tries to reach Redis, and at most for one.
PAUSE: Final = 1.0
CONNECT: Final = 1.0


class KeptLine:
    """`line` is None while the circuit is open: the first call that goes wrong opens it (`give_up`), and a task of its
    own tries, at once and then each second, until Redis passes `prove` within `timeout`. Call `start` before and
    `close` after use, on the loop that calls. `name` says in the log what goes without Redis meanwhile."""

    def __init__(
        self, redis_url: str, timeout: float, *, name: str, prove: Callable[[RedisLine], Awaitable[object]]
    ) -> None:
        self._address = Address.parse(redis_url)
        self._timeout = timeout
        self._name = name
        self._prove = prove
        self._keeper: asyncio.Task[None] | None = None
        self._reached = asyncio.Event()
        self.line: RedisLine | None = None

    async def start(self) -> None:
        """Returns when Redis is reached, or after a second without it: the search goes on then."""
        self._keeper = asyncio.create_task(self._keep(), name=f"redis-{self._name}")
        with suppress(TimeoutError):
            async with asyncio.timeout(CONNECT):
                await self._reached.wait()

    async def close(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            await asyncio.wait([keeper])

    def give_up(self, line: RedisLine) -> None:
        if self.line is line:
            self.line = None
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
                    _log.warning(f"{self._name}_degraded", reason=str(error) or said)
            else:
                if said is not None:
                    _log.info(f"{self._name}_restored")
                    said = None
                self.line = line
                self._reached.set()
                try:
                    await line.lost
                finally:
                    self.give_up(line)
            # At once after a line that held; with some spread, for the workers lost theirs together.
            pause = PAUSE * random.uniform(0.8, 1.2)  # noqa: S311
            await asyncio.sleep(max(0.0, began + pause - loop.time()))

    async def _reach(self) -> RedisLine:
        line = await RedisLine.connect(self._address, self._timeout)
        try:
            await self._prove(line)
        except BaseException:
            line.close()
            raise
        return line

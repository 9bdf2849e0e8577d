"""Names and their addresses, kept for a while: every one judged by the guard before it is kept."""

import asyncio
from collections import OrderedDict
from typing import Final, NamedTuple, TypeAlias

from gatehouse.foundation.egress import Address, EgressGuard, HostNotFound, UnsafeUrl
from gatehouse.foundation.egress_policy import EgressPolicy

#: Seconds for which an address is taken as it is; then it is looked up anew, beside the calls that go on with it.
FRESH: Final = 30.0
#: Seconds for which it may be used at all while its name cannot be looked up.
USABLE: Final = 300.0
_MOST: Final = 1024


#: A host, and what its addresses are judged by.
_Name: TypeAlias = tuple[str, EgressPolicy]


class _Known(NamedTuple):
    addresses: tuple[Address, ...]
    at: float


class Names:
    def __init__(self, guard: EgressGuard) -> None:
        self._guard = guard
        self._known: OrderedDict[_Name, _Known] = OrderedDict()
        self._looking: dict[_Name, asyncio.Task[tuple[Address, ...]]] = {}

    async def addresses(self, host: str, port: int, bounds: EgressPolicy) -> tuple[Address, ...]:
        """Raises `UnsafeUrl`: `HostNotFound`, or `BlockedAddress` if a single one may not be called."""
        now = asyncio.get_running_loop().time()
        name = (host, bounds)
        known = self._known.get(name)
        if known is not None and now - known.at < USABLE:
            if now - known.at >= FRESH:
                self._look(name, port)
            return known.addresses
        # A caller that leaves takes the answer from nobody else.
        return await asyncio.shield(self._look(name, port))

    def forget(self, host: str, bounds: EgressPolicy) -> None:
        """None of its addresses could be reached."""
        self._known.pop((host, bounds), None)

    def close(self) -> None:
        for looking in self._looking.values():
            looking.cancel()
        self._known.clear()

    def _look(self, name: _Name, port: int) -> asyncio.Task[tuple[Address, ...]]:
        looking = self._looking.get(name)
        if looking is None:
            looking = self._looking[name] = asyncio.create_task(self._found(name, port))
            looking.add_done_callback(lambda task: self._looked(name, task))
        return looking

    async def _found(self, name: _Name, port: int) -> tuple[Address, ...]:
        host, bounds = name
        try:
            addresses = await self._guard.addresses(host, port, bounds=bounds)
        except HostNotFound:
            raise
        except UnsafeUrl:
            # It leads out of bounds now.
            self.forget(host, bounds)
            raise
        self._known[name] = _Known(addresses, asyncio.get_running_loop().time())
        self._known.move_to_end(name)
        if len(self._known) > _MOST:
            self._known.popitem(last=False)
        return addresses

    def _looked(self, name: _Name, task: asyncio.Task[tuple[Address, ...]]) -> None:
        if self._looking.get(name) is task:
            del self._looking[name]
        if not task.cancelled():
            # Nobody may be waiting for a look-up that only refreshes.
            task.exception()

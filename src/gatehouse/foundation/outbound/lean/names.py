"""A cache of the addresses of host names. The egress guard checks every address before it is cached."""

import asyncio
from collections import OrderedDict
from typing import Final, NamedTuple, TypeAlias

from gatehouse.foundation.egress.guard import (
    Address,
    EgressGuard,
    HostNotFound,
    UnsafeUrl,
)
from gatehouse.foundation.settings import EgressPolicy

#: age from which an entry is refreshed in the background while calls still use it
FRESH_SECONDS: Final = 30.0
#: age up to which an entry may be used while its name cannot be resolved
USABLE_SECONDS: Final = 300.0
_MAX_NAMES: Final = 1024


#: a host, and the policy for its addresses
_Name: TypeAlias = tuple[str, EgressPolicy]


class _CacheEntry(NamedTuple):
    addresses: tuple[Address, ...]
    resolved_at: float


class AddressCache:
    """Resolves names and caches their addresses."""

    def __init__(self, guard: EgressGuard) -> None:
        self._guard = guard
        self._entries: OrderedDict[_Name, _CacheEntry] = OrderedDict()
        self._lookups: dict[_Name, asyncio.Task[tuple[Address, ...]]] = {}

    async def addresses(self, host: str, port: int, bounds: EgressPolicy) -> tuple[Address, ...]:
        """Returns the host's addresses. Raises `HostNotFound`, or `BlockedAddress` if any address is refused."""
        now = asyncio.get_running_loop().time()
        name = (host, bounds)
        entry = self._entries.get(name)
        if entry is not None and now - entry.resolved_at < USABLE_SECONDS:
            if now - entry.resolved_at >= FRESH_SECONDS:
                self._look_up(name, port)
            return entry.addresses
        # The shield is needed because other callers may wait for the same look-up: a caller that is cancelled must not
        # cancel it.
        return await asyncio.shield(self._look_up(name, port))

    def forget(self, host: str, bounds: EgressPolicy) -> None:
        """Removes a name from the cache after none of its addresses could be reached."""
        self._entries.pop((host, bounds), None)

    def close(self) -> None:
        for lookup in self._lookups.values():
            lookup.cancel()
        self._entries.clear()

    def _look_up(self, name: _Name, port: int) -> asyncio.Task[tuple[Address, ...]]:
        lookup = self._lookups.get(name)
        if lookup is None:
            lookup = self._lookups[name] = asyncio.create_task(self._resolve(name, port))
            lookup.add_done_callback(lambda task: self._lookup_done(name, task))
        return lookup

    async def _resolve(self, name: _Name, port: int) -> tuple[Address, ...]:
        host, bounds = name
        try:
            addresses = await self._guard.addresses(host, port, bounds=bounds)
        except HostNotFound:
            raise
        except UnsafeUrl:
            # The name now has an address that the guard refuses.
            self.forget(host, bounds)
            raise
        self._entries[name] = _CacheEntry(addresses, asyncio.get_running_loop().time())
        self._entries.move_to_end(name)
        if len(self._entries) > _MAX_NAMES:
            self._entries.popitem(last=False)
        return addresses

    def _lookup_done(self, name: _Name, task: asyncio.Task[tuple[Address, ...]]) -> None:
        if self._lookups.get(name) is task:
            del self._lookups[name]
        if not task.cancelled():
            # Retrieve the exception, because no caller waits for a background refresh.
            task.exception()

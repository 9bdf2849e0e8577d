"""Wakes long polls when data of their organization has changed."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from uuid import UUID


class ChangeNotifications:
    """The change notifications of one worker. To miss no change, call `seen` before reading, and pass its result to
    `after` to wait for later changes."""

    def __init__(self) -> None:
        #: number of changes of each organization
        self._counts: dict[UUID, int] = {}
        #: number of changes that concern all organizations
        self._global_count = 0
        self._events: dict[UUID, asyncio.Event] = {}
        self.closed = False

    def seen(self, tenant_id: UUID) -> int:
        """Return the number of changes of the organization so far."""
        return self._counts.get(tenant_id, 0) + self._global_count

    async def after(self, seen: int, tenant_id: UUID, seconds: float) -> None:
        """Wait for changes. Returns when there is a change after `seen`, when `seconds` are over, or when `close` is
        called."""
        if self.closed or self.seen(tenant_id) != seen:
            return
        event = self._events.setdefault(tenant_id, asyncio.Event())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()

    def tell(self, tenant_ids: Iterable[UUID]) -> None:
        """Count a change in each of these organizations, and wake their waiting long polls."""
        for tenant_id in tenant_ids:
            self._counts[tenant_id] = self._counts.get(tenant_id, 0) + 1
            event = self._events.pop(tenant_id, None)
            if event is not None:
                event.set()

    def tell_all(self) -> None:
        """Count a change in all organizations, and wake all waiting long polls."""
        self._global_count += 1
        self.tell(tuple(self._events))

    def close(self) -> None:
        """Wake all long polls, and let no new one wait, because the worker is stopping."""
        self.closed = True
        self.tell_all()

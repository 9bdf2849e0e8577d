"""Tells those who wait that something of their organization has changed."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from uuid import UUID


class News:
    """One worker's. `seen` before reading, `after` to wait for what has changed since: nothing in between is missed."""

    def __init__(self) -> None:
        #: how often each organization had news
        self._counts: dict[UUID, int] = {}
        self._of_all = 0
        self._waited_for: dict[UUID, asyncio.Event] = {}
        self.closed = False

    def seen(self, tenant_id: UUID) -> int:
        return self._counts.get(tenant_id, 0) + self._of_all

    async def after(self, seen: int, tenant_id: UUID, seconds: float) -> None:
        """Returns when there are news, the time is up, or nobody shall wait any more."""
        if self.closed or self.seen(tenant_id) != seen:
            return
        event = self._waited_for.setdefault(tenant_id, asyncio.Event())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()

    def tell(self, tenant_ids: Iterable[UUID]) -> None:
        for tenant_id in tenant_ids:
            self._counts[tenant_id] = self._counts.get(tenant_id, 0) + 1
            event = self._waited_for.pop(tenant_id, None)
            if event is not None:
                event.set()

    def tell_all(self) -> None:
        self._of_all += 1
        self.tell(tuple(self._waited_for))

    def close(self) -> None:
        """From now on nobody waits: the worker is ending."""
        self.closed = True
        self.tell_all()

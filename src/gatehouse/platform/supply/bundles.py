"""What an organization's outposts are sent, gathered from the database and kept until something of it may have
changed."""

import asyncio
from collections import OrderedDict
from typing import Final

import msgspec
from sqlalchemy.exc import SQLAlchemyError

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.live.state import Replica
from gatehouse.platform.organization.system_config import bundle as system_config
from gatehouse.platform.publish import PolicyUnavailable, gather
from gatehouse.platform.supply import rows
from gatehouse.policy import wire
from gatehouse.policy.wire import Contents

#: Organizations whose contents a worker keeps.
KEPT: Final = 50


class _Held(msgspec.Struct, frozen=True):
    #: news of the organization that were known before the contents were read
    seen: int
    contents: Contents


class Bundles:
    def __init__(self, database: Database, replica: Replica) -> None:
        self._database = database
        self._replica = replica
        self._held: OrderedDict[TenantId, _Held] = OrderedDict()
        self._loading: dict[TenantId, asyncio.Task[_Held]] = {}

    async def contents(self, tenant_id: TenantId, at_least: int = 0) -> Contents:
        """With all news that this worker has heard of when it is called, and of a revision that is `at_least` this one:
        another worker may have heard of a change before, and an outpost takes no older version.

        Raises `PolicyUnavailable`.
        """
        seen = self._replica.news.seen(tenant_id)
        held = self._held.get(tenant_id)
        # Twice: a load that others wait for already may have begun too early.
        for _ in range(2):
            if held is None or held.seen < seen or held.contents.version < at_least:
                held = await self._shared(tenant_id)
        assert held is not None
        self._held[tenant_id] = held
        self._held.move_to_end(tenant_id)
        if len(self._held) > KEPT:
            self._held.popitem(last=False)
        return held.contents

    async def _shared(self, tenant_id: TenantId) -> _Held:
        """Many outposts hear of one change at once, and wait for one load."""
        task = self._loading.get(tenant_id)
        if task is None:
            task = self._loading[tenant_id] = asyncio.create_task(self._load(tenant_id))
            task.add_done_callback(lambda _: self._loading.pop(tenant_id, None))
        return await asyncio.shield(task)

    async def _load(self, tenant_id: TenantId) -> _Held:
        seen = self._replica.news.seen(tenant_id)
        try:
            async with self._database.service() as session:
                records = await gather(session, tenant_id)
                if records is None:
                    raise PolicyUnavailable
                configured = await system_config.records(session, tenant_id)
                known = await rows.callers(session, tenant_id)
                stopped = await rows.switched_off(session, tenant_id)
        except (SQLAlchemyError, OSError):
            raise PolicyUnavailable from None
        # In a thread: an organization may have a thousand rules.
        sent = configured["outpost_provider_credentials"] == "sealed"
        return _Held(seen, await asyncio.to_thread(wire.contents, records, known, stopped, with_credentials=sent))

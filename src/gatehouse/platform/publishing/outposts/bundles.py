"""Caches the contents of the bundles of an organization. An entry is valid until a change may affect it."""

import asyncio
from collections import OrderedDict
from typing import Final

import msgspec
import structlog
from sqlalchemy.exc import SQLAlchemyError

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.live.replica.state import Replica
from gatehouse.platform.organization.system_config import policy_records as system_config
from gatehouse.platform.publishing.outposts import rows
from gatehouse.platform.publishing.snapshots import PolicyUnavailable, gather
from gatehouse.policy.bundles import contents as bundle_contents
from gatehouse.policy.bundles.contents import BundleContents

log = structlog.get_logger(__name__)

#: Maximum number of organizations in the cache of a worker.
MAX_CACHED_BUNDLES: Final = 50


class _CachedContents(msgspec.Struct, frozen=True):
    #: result of `ChangeNotifications.seen` for the organization before the contents were read
    change_count: int
    contents: BundleContents


class BundlePublisher:
    """The cache of bundle contents of one worker."""

    def __init__(self, database: Database, replica: Replica) -> None:
        self._database = database
        self._replica = replica
        self._cache: OrderedDict[TenantId, _CachedContents] = OrderedDict()
        self._loading: dict[TenantId, asyncio.Task[_CachedContents]] = {}

    async def contents(self, tenant_id: TenantId, at_least: int = 0) -> BundleContents:
        """Return contents that include all changes that this worker has applied. Raises `PolicyUnavailable`.

        Their version is at least `at_least`. Another worker may have sent that version to the outpost, and an outpost
        refuses an older one.
        """
        change_count = self._replica.news.seen(tenant_id)
        cached = self._cache.get(tenant_id)
        # Two attempts, because the first load may be a shared one that began before the latest change.
        for _ in range(2):
            if cached is None or cached.change_count < change_count or cached.contents.version < at_least:
                cached = await self._load_shared(tenant_id)
        assert cached is not None
        self._cache[tenant_id] = cached
        self._cache.move_to_end(tenant_id)
        if len(self._cache) > MAX_CACHED_BUNDLES:
            self._cache.popitem(last=False)
        return cached.contents

    async def _load_shared(self, tenant_id: TenantId) -> _CachedContents:
        """Load the contents, or wait for the load in progress, because many outposts fetch the same change at once."""
        task = self._loading.get(tenant_id)
        if task is None:
            task = self._loading[tenant_id] = asyncio.create_task(self._load(tenant_id))
            task.add_done_callback(lambda _: self._loading.pop(tenant_id, None))
        return await asyncio.shield(task)

    async def _load(self, tenant_id: TenantId) -> _CachedContents:
        change_count = self._replica.news.seen(tenant_id)
        try:
            async with self._database.service() as session:
                records = await gather(session, tenant_id)
                if records is None:
                    raise PolicyUnavailable
                settings = await system_config.records(session, tenant_id)
                callers = await rows.callers(session, tenant_id)
                switched_off = await rows.switched_off(session, tenant_id)
        except (SQLAlchemyError, OSError):
            raise PolicyUnavailable from None
        # Runs in a thread, because an organization may have a thousand rules.
        with_credentials = settings["outpost_provider_credentials"] == "sealed"
        contents = await asyncio.to_thread(
            bundle_contents.contents, records, callers, switched_off, with_credentials=with_credentials
        )
        if contents.left_out:
            log.warning("outposts.mcp_servers_left_out", tenant_id=str(tenant_id), servers=contents.left_out)
        return _CachedContents(change_count, contents)

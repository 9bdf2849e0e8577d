"""Builds policy snapshots from rows: reads the policy records of all families, compiles them in a thread, and replaces
the snapshot by one assignment.

    find -name policy_records.py      lists everything that can change the gateway's behaviour

A worker caches the snapshots of the tenants that make calls, and evicts the least recently used ones. If a snapshot
cannot be compiled, the old one stays active and `status` contains the faults.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final
from uuid import UUID

import msgspec
import structlog
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.access.groups import policy_records as groups
from gatehouse.platform.access.model_access import policy_records as model_access
from gatehouse.platform.governance.compliance_bundles import policy_records as compliance_bundles
from gatehouse.platform.governance.content_filters import policy_records as content_filters
from gatehouse.platform.governance.dlp_customization import policy_records as dlp_customization
from gatehouse.platform.governance.dlp_rules import policy_records as dlp_rules
from gatehouse.platform.governance.model_registry import policy_records as model_registry
from gatehouse.platform.governance.policies import policy_records as policies
from gatehouse.platform.mcp.servers import policy_records as mcp_servers
from gatehouse.platform.organization.dlp_sampling import policy_records as dlp_sampling
from gatehouse.platform.organization.ip_allowlist import policy_records as ip_allowlist
from gatehouse.platform.organization.request_fields import policy_records as request_fields
from gatehouse.platform.organization.system_config import policy_records as system_config
from gatehouse.platform.routing.budgets import policy_records as budgets
from gatehouse.platform.routing.cost_routing import policy_records as cost_routing
from gatehouse.platform.routing.model_aliases import policy_records as model_aliases
from gatehouse.platform.routing.model_catalog import policy_records as model_catalog
from gatehouse.platform.routing.providers import policy_records as providers
from gatehouse.policy.catalog import TenantRecords
from gatehouse.policy.compile import compile_policy
from gatehouse.policy.governance import GovernanceRecords
from gatehouse.policy.snapshot import Snapshot

log = structlog.get_logger(__name__)

#: Maximum number of snapshots in the cache of a worker.
MAX_SNAPSHOTS: Final = 2_000

_TENANT = text(
    "SELECT feature_flags, ip_allowlist, request_fields, dlp_sampling, timezone, monthly_request_limit FROM tenants"
    " WHERE id = :tenant AND deleted_at IS NULL"
)
_REVISION = text("SELECT revision FROM revision_head")
_ACTIVE = text(
    "SELECT id FROM tenants WHERE deleted_at IS NULL ORDER BY id = :first DESC, updated_at DESC LIMIT :limit"
)


class PolicyUnavailable(Unavailable):
    code = "policy_unavailable"
    message = "The organization's policy cannot be loaded. Try again later."


class PublishedPolicyStatus(msgspec.Struct):
    """The Unix times of the steps of the last load of a tenant's policy, and its faults if it failed."""

    requested: float = 0.0
    fetched: float = 0.0
    activated: float = 0.0
    failed: float | None = None
    faults: list[str] = []


async def gather(session: AsyncSession, tenant_id: TenantId) -> TenantRecords | None:
    """Return all records of a tenant's policy, or None if the tenant does not exist."""
    # The revision is read first, so that a change committed in the meantime is loaded twice instead of missed.
    revision = (await session.execute(_REVISION)).scalar_one()
    tenant = (await session.execute(_TENANT, {"tenant": tenant_id})).first()
    if tenant is None:
        return None
    cidrs, bypass_for_mfa = ip_allowlist.record(tenant.ip_allowlist)
    return TenantRecords(
        tenant_id=tenant_id,
        revision=revision,
        providers=await providers.records(session, tenant_id),
        models=await model_catalog.records(session, tenant_id),
        feature_flags=tenant.feature_flags,
        governance=await _governance(session, tenant_id),
        model_access=await model_access.records(session, tenant_id),
        ip_allowlist=cidrs,
        ip_bypass_for_mfa=bypass_for_mfa,
        timezone=tenant.timezone,
        budgets=await budgets.records(session, tenant_id, tenant.monthly_request_limit),
        routing_policies=await cost_routing.records(session, tenant_id),
        model_aliases=await model_aliases.records(session, tenant_id),
        allowed_fields=request_fields.record(tenant.request_fields),
        mcp_servers=await mcp_servers.records(session, tenant_id),
        sample_share=dlp_sampling.share(tenant.dlp_sampling),
    )


async def _governance(session: AsyncSession, tenant_id: TenantId) -> GovernanceRecords:
    settings = await system_config.records(session, tenant_id)
    own_rules = await dlp_rules.records(session, tenant_id)
    return GovernanceRecords(
        dlp_rules=own_rules + await dlp_customization.records(session, tenant_id),
        suppressions=await dlp_customization.suppressions(session, tenant_id),
        overrides=await groups.overrides(session, tenant_id),
        bundles=await compliance_bundles.records(session, tenant_id),
        filters=await content_filters.records(session, tenant_id),
        policy_rules=await policies.records(session, tenant_id),
        registry=await model_registry.records(session, tenant_id),
        unregistered_model_tier=settings["unregistered_model_tier"],
        registry_enforcement=model_registry.enforcement(settings["registry_enforcement"]),
        governance_enabled=settings["governance_enabled"] == "true",
    )


class Publisher:
    """The snapshot cache of one worker. Implements the engine's port `PolicySource`."""

    def __init__(self, database: Database, activated: Callable[[Snapshot], None] = lambda _: None) -> None:
        """Create an empty cache. `activated` is called with each snapshot that becomes active."""
        self._database = database
        self._activated = activated
        self._snapshots: OrderedDict[TenantId, Snapshot] = OrderedDict()
        self._loading: dict[TenantId, asyncio.Task[Snapshot]] = {}
        self._preloading: set[TenantId] = set()
        self.status: dict[TenantId, PublishedPolicyStatus] = {}

    async def current(self, tenant_id: TenantId) -> Snapshot:
        snapshot = self._snapshots.get(tenant_id)
        if snapshot is not None:
            self._snapshots.move_to_end(tenant_id)
            return snapshot
        # Concurrent first requests share one load.
        task = self._loading.get(tenant_id)
        if task is None:
            task = self._loading[tenant_id] = asyncio.create_task(self._load(tenant_id))
            task.add_done_callback(lambda _: self._loading.pop(tenant_id, None))
        return await asyncio.shield(task)

    async def changed(self, tenant_ids: set[str]) -> None:
        """Recompile the policies of these tenants that this worker has cached. Other policies are loaded on demand.

        Exceptions of the database propagate. The feed then does not confirm the revision, and tries these tenants
        again.
        """
        for text_id in tenant_ids:
            tenant_id = TenantId(UUID(text_id))
            if tenant_id in self._snapshots or tenant_id in self._loading or tenant_id in self._preloading:
                try:
                    await self._fetch(tenant_id)
                except PolicyUnavailable:
                    self._warn(tenant_id)

    async def preload(self, first: TenantId, limit: int = 200) -> None:
        """Compile policies in advance, so that these tenants are served even if the database fails right after the
        start.

        Call this after the feed has started, because the feed reloads policies that change during a load.
        """
        async with self._database.service() as session:
            tenants = (await session.execute(_ACTIVE, {"first": first, "limit": limit})).scalars().all()
        self._preloading.update(TenantId(tenant_id) for tenant_id in tenants)
        for tenant_id in map(TenantId, tenants):
            try:
                await self._fetch(tenant_id)
            except PolicyUnavailable:
                # The faults of one organization must not stop the worker from serving the others.
                self._warn(tenant_id)
        self._preloading.clear()

    async def _load(self, tenant_id: TenantId) -> Snapshot:
        try:
            return await self._fetch(tenant_id)
        except (SQLAlchemyError, OSError):
            raise PolicyUnavailable from None

    async def _fetch(self, tenant_id: TenantId) -> Snapshot:
        status = self.status.setdefault(tenant_id, PublishedPolicyStatus())
        status.requested = time.time()
        try:
            async with self._database.service() as session:
                records = await gather(session, tenant_id)
        except (SQLAlchemyError, OSError) as error:
            status.failed, status.faults = time.time(), [f"database: {type(error).__name__}"]
            raise
        return await self._activate(tenant_id, records)

    async def _activate(self, tenant_id: TenantId, records: TenantRecords | None) -> Snapshot:
        status = self.status.setdefault(tenant_id, PublishedPolicyStatus())
        status.fetched = time.time()
        if records is None:
            self._snapshots.pop(tenant_id, None)
            raise PolicyUnavailable
        # Runs in a thread, because compiling a thousand patterns takes long and requests must be served meanwhile.
        compiled = await asyncio.to_thread(compile_policy, records, self._snapshots.get(tenant_id))
        if isinstance(compiled, list):
            status.failed, status.faults = time.time(), [str(fault) for fault in compiled]
            raise PolicyUnavailable
        current = self._snapshots.get(tenant_id)
        # A load that began before a change may end after the load that the change caused, so the snapshot with the
        # newer revision is kept.
        if current is None or current.revision <= compiled.revision:
            self._snapshots[tenant_id] = compiled
            self._snapshots.move_to_end(tenant_id)
            self._activated(compiled)
        status.activated, status.failed, status.faults = time.time(), None, []
        while len(self._snapshots) > MAX_SNAPSHOTS:
            evicted, _ = self._snapshots.popitem(last=False)
            self.status.pop(evicted, None)
        return self._snapshots[tenant_id]

    def _warn(self, tenant_id: TenantId) -> None:
        log.warning("policy.not_activated", tenant_id=str(tenant_id), faults=self.status[tenant_id].faults)

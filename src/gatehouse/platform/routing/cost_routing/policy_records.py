"""The routing policies' part of a tenant's policy."""

from typing import Any

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId
from gatehouse.policy.catalog import RoutingPolicyRecord

_QUERY = text(
    "SELECT id, name, strategy, group_ids, model_filters, fallback_chain, cost_cap_usd, cost_cap_action,"
    " latency_budget_ms, cache_ttl_seconds FROM cost_routing_policies"
    " WHERE tenant_id = :tenant AND enabled ORDER BY created_at, id"
)


async def records(session: AsyncSession, tenant_id: TenantId) -> tuple[RoutingPolicyRecord, ...]:
    """Return the tenant's enabled policies, the oldest first."""
    return tuple(map(record, await session.execute(_QUERY, {"tenant": tenant_id})))


def record(row: Any) -> RoutingPolicyRecord:
    """Return the record of a row with the table's columns."""
    cap = None
    if row.cost_cap_usd is not None:
        cap = {"max_cost_per_request_usd": row.cost_cap_usd, "action_on_exceed": row.cost_cap_action}
    fields = {
        "id": row.id,
        "name": row.name,
        "strategy": row.strategy,
        "group_ids": row.group_ids,
        "model_filters": row.model_filters,
        "fallback_chain": row.fallback_chain,
        "cost_cap": cap,
        "latency_budget_ms": row.latency_budget_ms,
        "cache_ttl_seconds": row.cache_ttl_seconds,
    }
    return msgspec.convert(fields, RoutingPolicyRecord)

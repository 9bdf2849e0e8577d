"""Rows and queries of routing policies."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import Select, Uuid, func, select, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import OptionalWindow, containing, count_query, sorted_by
from gatehouse.foundation.storage.locks import ScopedLock, acquire_scoped
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.policy.catalog import Strategy


class RoutingPolicyRow(TenantRow):
    __tablename__ = "cost_routing_policies"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    description: Mapped[str | None]
    enabled: Mapped[bool]
    strategy: Mapped[str]
    group_ids: Mapped[list[UUID]] = mapped_column(ARRAY(Uuid))
    model_filters: Mapped[dict[str, Any]] = mapped_column(JSONB)
    fallback_chain: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    cost_cap_usd: Mapped[Decimal | None]
    cost_cap_action: Mapped[str | None]
    latency_budget_ms: Mapped[int | None]
    cache_ttl_seconds: Mapped[int | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class ModelUsage(NamedTuple):
    """A model's usage in a period. If `provider` is None, the usage of the requests that no model answered."""

    provider: str | None
    model_id: str | None
    requests: int
    cost_usd: Decimal
    fallbacks: int
    cost_cap_blocks: int
    #: whether tokens were used and no price is known
    unpriced: bool


_GROUPS: Final = text("SELECT id FROM groups WHERE tenant_id = :tenant AND id = ANY(:ids)")
_PROVIDERS: Final = text("SELECT id FROM providers WHERE tenant_id = :tenant AND id = ANY(:ids)")
_MODELS: Final = text(
    "SELECT provider || '/' || model_id FROM model_configs WHERE tenant_id = :tenant"
    " AND (model_id = ANY(:names) OR provider || '/' || model_id = ANY(:names))"
    " UNION SELECT model_id FROM model_configs WHERE tenant_id = :tenant AND model_id = ANY(:names)"
)
_USAGE_BY_MODEL: Final = text(
    "SELECT provider, model_id, sum(requests)::bigint, sum(cost_usd), sum(fallbacks)::bigint,"
    " sum(cost_cap_blocks)::bigint, sum(cost_usd) = 0 AND sum(input_tokens + output_tokens) > 0 AND NOT EXISTS ("
    "  SELECT FROM model_configs m WHERE m.tenant_id = :tenant AND m.provider = routing_days.provider"
    "  AND m.model_id = routing_days.model_id AND m.cost_per_input_token IS NOT NULL) FROM routing_days"
    " WHERE tenant_id = :tenant AND day > (now() AT TIME ZONE 'UTC')::date - CAST(:days AS int)"
    " AND (CAST(:policy AS text) IS NULL OR routing_policy_id = :policy)"
    " AND (CAST(:group AS uuid) IS NULL OR group_id = :group)"
    " GROUP BY provider, model_id ORDER BY 3 DESC, 1, 2"
)


def list_query(
    *, search: str | None, enabled: bool | None, group_id: UUID | None, strategy: Strategy | None, sort: str
) -> Select[RoutingPolicyRow]:
    """Return the query of policies by part of the name or the description, state, group and strategy."""
    query = containing(select(RoutingPolicyRow), search, RoutingPolicyRow.name, RoutingPolicyRow.description)
    if enabled is not None:
        query = query.where(RoutingPolicyRow.enabled == enabled)
    if group_id is not None:
        query = query.where(RoutingPolicyRow.group_ids.contains([group_id]))
    if strategy is not None:
        query = query.where(RoutingPolicyRow.strategy == strategy)
    columns = {
        "name": RoutingPolicyRow.name,
        "strategy": RoutingPolicyRow.strategy,
        "created_at": RoutingPolicyRow.created_at,
    }
    return sorted_by(query, sort, columns, unique=RoutingPolicyRow.id)


async def fetch_window(
    session: AsyncSession, query: Select[RoutingPolicyRow], window: OptionalWindow
) -> tuple[Sequence[RoutingPolicyRow], int]:
    """Return a page of the policies, and the number of all policies of the query."""
    total = (await session.execute(count_query(query))).scalar_one()
    return (await session.scalars(window.apply(query))).all(), total


async def lock(session: AsyncSession) -> None:
    """Serialize changes of the organization's policies until the end of the transaction."""
    await acquire_scoped(session, ScopedLock.ROUTING_POLICIES, str(session.info["tenant_id"]))


async def count_policies(session: AsyncSession) -> int:
    return (await session.execute(select(func.count()).select_from(RoutingPolicyRow))).scalar_one()


async def conflicting(session: AsyncSession, policy_id: UUID, group_ids: Sequence[UUID]) -> RoutingPolicyRow | None:
    """Return another enabled policy of one of the groups, or without groups the enabled default. Call it under the
    `lock`."""
    groups = RoutingPolicyRow.group_ids
    overlaps = groups.overlap(list(group_ids)) if group_ids else func.cardinality(groups) == 0
    query = select(RoutingPolicyRow).where(RoutingPolicyRow.enabled, RoutingPolicyRow.id != policy_id, overlaps)
    return (await session.scalars(query.order_by(RoutingPolicyRow.created_at).limit(1))).one_or_none()


async def existing_groups(session: AsyncSession, ids: Sequence[UUID]) -> set[UUID]:
    values = {"tenant": session.info["tenant_id"], "ids": list(ids)}
    return set((await session.execute(_GROUPS, values)).scalars())


async def existing_providers(session: AsyncSession, ids: Sequence[str]) -> set[str]:
    values = {"tenant": session.info["tenant_id"], "ids": list(ids)}
    return set((await session.execute(_PROVIDERS, values)).scalars())


async def existing_models(session: AsyncSession, names: Sequence[str]) -> set[str]:
    """Return those of `names` that are in the catalog. A name is `provider/model-id` or a bare model id."""
    values = {"tenant": session.info["tenant_id"], "names": list(names)}
    return set((await session.execute(_MODELS, values)).scalars())


async def usage_by_model(
    session: AsyncSession, days: int, *, policy_id: UUID | None, group_id: UUID | None
) -> list[ModelUsage]:
    """Return the usage by model of the last `days` days (UTC), including today, the most used first."""
    values = {
        "tenant": session.info["tenant_id"],
        "days": days,
        "policy": None if policy_id is None else str(policy_id),
        "group": group_id,
    }
    return [ModelUsage(*row) for row in await session.execute(_USAGE_BY_MODEL, values)]

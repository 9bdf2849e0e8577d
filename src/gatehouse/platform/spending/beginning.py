"""Starts the current period of a new budget with the recorded usage of its scope."""

from datetime import UTC, datetime
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.policy.budgets import Period, ScopeType
from gatehouse.policy.periods import span

_BEGIN: Final = text(
    "SELECT gatehouse_begin_budget(CAST(:budget AS uuid), CAST(:tenant AS uuid), :scope_type, CAST(:scope AS uuid),"
    " CAST(:begins AS timestamptz), CAST(:ends AS timestamptz), CAST(:requests AS bigint))"
)


async def begin_budget(
    session: AsyncSession,
    budget_id: UUID,
    *,
    tenant_id: UUID,
    scope_type: ScopeType,
    scope_id: UUID,
    period: Period,
    zone: ZoneInfo,
) -> None:
    """Count the usage of the scope since the start of the current period toward a new budget."""
    current = span(period, utc_now().timestamp(), zone)
    values = {
        "budget": budget_id, "tenant": tenant_id, "scope_type": scope_type, "scope": scope_id, "requests": None,
        "begins": datetime.fromtimestamp(current.start, UTC), "ends": datetime.fromtimestamp(current.end, UTC),
    }  # fmt: skip
    await session.execute(_BEGIN, values)


async def begin_plan(session: AsyncSession, tenant_id: UUID, monthly_request_limit: int) -> None:
    """Count the usage of the organization in the current month (UTC) toward the new limit of a plan."""
    current = span("month", utc_now().timestamp(), ZoneInfo("UTC"))
    values = {
        "budget": tenant_id, "tenant": tenant_id, "scope_type": "tenant", "scope": tenant_id,
        "requests": monthly_request_limit, "begins": datetime.fromtimestamp(current.start, UTC),
        "ends": datetime.fromtimestamp(current.end, UTC),
    }  # fmt: skip
    await session.execute(_BEGIN, values)

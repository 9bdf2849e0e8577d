"""Starts a new budget's current period with the recorded usage of its scope."""

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
    """Count what the scope has used since the current period's start toward a new budget."""
    current = span(period, utc_now().timestamp(), zone)
    values = {
        "budget": budget_id, "tenant": tenant_id, "scope_type": scope_type, "scope": scope_id, "requests": None,
        "begins": datetime.fromtimestamp(current.start, UTC), "ends": datetime.fromtimestamp(current.end, UTC),
    }  # fmt: skip
    await session.execute(_BEGIN, values)


async def begin_plan(session: AsyncSession, tenant_id: UUID, monthly_request_limit: int) -> None:
    """Count what the organization has used in the current month (UTC) toward a plan's new limit."""
    current = span("month", utc_now().timestamp(), ZoneInfo("UTC"))
    values = {
        "budget": tenant_id, "tenant": tenant_id, "scope_type": "tenant", "scope": tenant_id,
        "requests": monthly_request_limit, "begins": datetime.fromtimestamp(current.start, UTC),
        "ends": datetime.fromtimestamp(current.end, UTC),
    }  # fmt: skip
    await session.execute(_BEGIN, values)

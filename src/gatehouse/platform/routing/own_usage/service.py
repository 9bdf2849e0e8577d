"""The summary of a user's own usage."""

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import Caller
from gatehouse.platform.organization.feature_flags.table import flag
from gatehouse.platform.records.hot import visible_since
from gatehouse.platform.routing.budgets import service as budgets
from gatehouse.platform.routing.budgets.schemas import Budget
from gatehouse.platform.routing.budgets.table import BudgetRow, RecordedSpending, spent
from gatehouse.platform.routing.own_usage import table
from gatehouse.platform.routing.own_usage.schemas import (
    BudgetLeft,
    UsageDay,
    UsageModel,
    UsagePeriod,
    UsageSummary,
    UsageTotals,
)
from gatehouse.platform.routing.own_usage.table import Organization, TotalsRow
from gatehouse.policy.periods import span

_DAYS: Final[Mapping[UsagePeriod, int]] = {"day": 1, "week": 7, "month": 30}


async def summary(session: AsyncSession, caller: Caller, period: UsagePeriod) -> UsageSummary:
    """Return the usage of the caller, who is a user."""
    assert caller.user_id is not None
    organization = await table.organization(session)
    zone = ZoneInfo(organization.timezone)
    today = utc_now().astimezone(zone).date()
    days = [today - timedelta(days=ago) for ago in reversed(range(_DAYS[period]))]
    since = datetime.combine(days[0], time(), zone)
    hot = await visible_since(session)
    rows = await table.totals(session, caller.user_id, max(since, hot or since), organization.timezone)
    by_day = {row.day: row for row in rows if row.by_day}
    return UsageSummary(
        since=since.astimezone(UTC),
        time_zone=organization.timezone,
        total=UsageTotals(**_amounts(next((row for row in rows if not row.by_day and not row.by_model), None))),
        days=[UsageDay(day=day, **_amounts(by_day.get(day))) for day in days],
        models=[
            UsageModel(provider=row.provider, model_id=row.model_id, **_amounts(row)) for row in rows if row.by_model
        ],
        budgets=await _budgets_left(session, caller, organization),
    )


def _amounts(row: TotalsRow | None) -> dict[str, Any]:
    return {name: 0 if row is None else getattr(row, name) for name in UsageTotals.model_fields}


async def _budgets_left(session: AsyncSession, caller: Caller, organization: Organization) -> list[BudgetLeft]:
    assert caller.user_id is not None
    names = {row.id: row.scope_name for row in await table.budgets_of(session, caller.user_id, caller.groups)}
    rows = (await session.scalars(select(BudgetRow).where(BudgetRow.id.in_(names)))).all()
    shown = {budget.id: budget for budget in await budgets.shown(session, rows)}
    enforced = await flag(session, "budget_enforcement")
    left = [_left(shown[budget_id], name, enforced=enforced) for budget_id, name in names.items()]
    if organization.monthly_request_limit is not None:
        left.append(await _plan_left(session, organization.name, organization.monthly_request_limit, enforced=enforced))
    return left


def _left(budget: Budget, name: str | None, *, enforced: bool) -> BudgetLeft:
    current = budget.current
    return BudgetLeft(
        scope_type=budget.scope_type,
        scope_name=name,
        period=budget.period,
        period_end=current.period_end,
        blocks=enforced and budget.action == "block",
        limit_usd=budget.limit_usd,
        limit_requests=budget.limit_requests,
        limit_tokens=budget.limit_tokens,
        remaining_usd=None if budget.limit_usd is None else max(budget.limit_usd - current.spent_usd, Decimal(0)),
        remaining_requests=_difference(budget.limit_requests, current.spent_requests),
        remaining_tokens=_difference(budget.limit_tokens, current.spent_tokens),
    )


async def _plan_left(session: AsyncSession, name: str, limit: int, *, enforced: bool) -> BudgetLeft:
    """Return what is left of the plan's monthly requests, which are counted as a budget with the tenant's id."""
    tenant_id = session.info["tenant_id"]
    month = span("month", utc_now().timestamp(), ZoneInfo("UTC"))
    recorded = (await spent(session, [(tenant_id, month.start)])).get(tenant_id, RecordedSpending())
    return BudgetLeft(
        scope_type="plan", scope_name=name, period="month", period_end=datetime.fromtimestamp(month.end, UTC),
        blocks=enforced, limit_usd=None, limit_requests=limit, limit_tokens=None, remaining_usd=None,
        remaining_requests=_difference(limit, recorded.requests), remaining_tokens=None,
    )  # fmt: skip


def _difference(limit: int | None, spent_amount: int) -> int | None:
    return None if limit is None else max(limit - spent_amount, 0)

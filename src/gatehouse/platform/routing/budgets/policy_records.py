"""The budgets' part of a tenant's policy."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId
from gatehouse.policy.budgets import BudgetRecord

_QUERY = text(
    "SELECT id, scope_type, scope_id, period, limit_usd, limit_requests, limit_tokens, action FROM budgets"
    " WHERE tenant_id = :tenant ORDER BY created_at, id"
)


async def records(
    session: AsyncSession, tenant_id: TenantId, monthly_request_limit: int | None
) -> tuple[BudgetRecord, ...]:
    """Return the organization's budgets, and the monthly request limit of its plan as a further budget."""
    budgets = [BudgetRecord(**row._mapping) for row in await session.execute(_QUERY, {"tenant": tenant_id})]
    if monthly_request_limit is not None:
        budgets.append(
            BudgetRecord(
                id=tenant_id,
                scope_type="tenant",
                scope_id=tenant_id,
                period="month",
                limit_requests=monthly_request_limit,
                plan=True,
            )
        )
    return tuple(budgets)

"""Rows and queries of budgets."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import BigInteger, Select, func, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import sorted_by
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.policy.budgets import ScopeType


class BudgetRow(TenantRow):
    __tablename__ = "budgets"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    scope_type: Mapped[str]
    scope_id: Mapped[UUID]
    period: Mapped[str]
    limit_usd: Mapped[Decimal | None]
    limit_requests: Mapped[int | None] = mapped_column(BigInteger)
    limit_tokens: Mapped[int | None] = mapped_column(BigInteger)
    action: Mapped[str]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class RecordedSpending(NamedTuple):
    """The recorded usage of a budget in a period."""

    usd: Decimal = Decimal(0)
    requests: int = 0
    tokens: int = 0


_SPENT: Final = text(
    "SELECT budget_id, sum(recorded_usd), sum(recorded_requests)::bigint, sum(recorded_tokens)::bigint"
    " FROM budget_leases JOIN unnest(CAST(:budgets AS uuid[]), CAST(:starts AS timestamptz[]))"
    " AS k (budget_id, period_start) USING (budget_id, period_start) WHERE tenant_id = :tenant GROUP BY 1"
)
#: Maps each type of scope to the query that returns a row if the organization has the scope.
_SCOPE_QUERIES: Final[Mapping[str, Any]] = {
    "group": text("SELECT FROM groups WHERE id = :id AND tenant_id = :tenant"),
    "user": text("SELECT FROM users WHERE id = :id AND tenant_id = :tenant"),
    "api_key": text("SELECT FROM api_keys WHERE id = :id AND tenant_id = :tenant"),
    "oauth_client": text("SELECT FROM oauth_clients WHERE client_id = :id AND tenant_id = :tenant"),
}
_TIMEZONE: Final = text("SELECT timezone FROM tenants WHERE id = :tenant")


def matching(scope_type: ScopeType | None, scope_id: UUID | None, sort: str) -> Select[BudgetRow]:
    """Return the query for budgets of a type of scope or of one scope."""
    query = select(BudgetRow)
    if scope_type is not None:
        query = query.where(BudgetRow.scope_type == scope_type)
    if scope_id is not None:
        query = query.where(BudgetRow.scope_id == scope_id)
    names = ("scope_type", "period", "limit_usd", "limit_requests", "limit_tokens", "created_at")
    columns = {name: getattr(BudgetRow, name) for name in names}
    return sorted_by(query, sort, columns, unique=BudgetRow.id)


async def count_budgets(session: AsyncSession) -> int:
    return (await session.execute(select(func.count()).select_from(BudgetRow))).scalar_one()


async def has_scope(session: AsyncSession, scope_type: str, scope_id: UUID) -> bool:
    """Return whether the organization has this group, user, key or client."""
    values = {"id": scope_id, "tenant": session.info["tenant_id"]}
    return (await session.execute(_SCOPE_QUERIES[scope_type], values)).first() is not None


async def timezone(session: AsyncSession) -> str:
    return str((await session.execute(_TIMEZONE, {"tenant": session.info["tenant_id"]})).scalar_one())


async def spent(session: AsyncSession, periods: Sequence[tuple[UUID, int]]) -> dict[UUID, RecordedSpending]:
    """Return what is recorded, by budget. `periods` are ids of budgets with the starts of their periods (Unix time)."""
    values = {
        "tenant": session.info["tenant_id"],
        "budgets": [budget_id for budget_id, _ in periods],
        "starts": [datetime.fromtimestamp(start, UTC) for _, start in periods],
    }
    return {budget_id: RecordedSpending(*sums) for budget_id, *sums in await session.execute(_SPENT, values)}

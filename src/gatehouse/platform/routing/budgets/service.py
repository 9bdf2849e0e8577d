"""Creates, changes and deletes budgets."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.conflicts import unique
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.changes.change import Change
from gatehouse.platform.routing.budgets import table
from gatehouse.platform.routing.budgets.schemas import Budget, BudgetUpdate, Current, NewBudget
from gatehouse.platform.routing.budgets.table import BudgetRow, RecordedSpending
from gatehouse.platform.spending.beginning import begin_budget
from gatehouse.policy.periods import span

#: Maximum number of budgets of an organization.
MAX_BUDGETS: Final = 10_000
_LIMITS: Final = ("limit_usd", "limit_requests", "limit_tokens")
_FIXED: Final = ("scope_type", "scope_id", "period")
_NO_LIMIT: Final = "one of limit_usd, limit_requests and limit_tokens is needed"


class BudgetNotFound(NotFound):
    message = "Budget not found"


class BudgetExists(Conflict):
    code = "budget_exists"
    message = "A budget with this scope and period already exists. Change that budget."


class TooManyBudgets(Conflict):
    code = "too_many_budgets"
    message = "The organization has the maximum number of budgets. Remove some first."


class InvalidBudgetField(Unprocessable):
    def __init__(self, field: str, fault: str) -> None:
        super().__init__(faults=[FieldFault(field, fault)])


async def shown(session: AsyncSession, rows: Sequence[BudgetRow]) -> list[Budget]:
    """Return the budgets with what is recorded for their current periods."""
    zone = ZoneInfo(await table.timezone(session))
    now = utc_now().timestamp()
    spans = {row.id: span(row.period, now, zone) for row in rows}  # type: ignore[arg-type]
    spent = await table.spent(session, [(budget_id, period.start) for budget_id, period in spans.items()])
    budgets = []
    for row in rows:
        usd, requests, tokens = spent.get(row.id, RecordedSpending())
        current = Current(
            period_start=datetime.fromtimestamp(spans[row.id].start, UTC),
            period_end=datetime.fromtimestamp(spans[row.id].end, UTC),
            spent_usd=usd,
            spent_requests=requests,
            spent_tokens=tokens,
        )
        fields = {name: getattr(row, name) for name in Budget.model_fields if hasattr(row, name)}
        budgets.append(Budget.model_validate({**fields, "current": current}))
    return budgets


async def create(change: Change, new: NewBudget) -> BudgetRow:
    """Create a budget. Raises `InvalidBudgetField`, `BudgetExists`, `TooManyBudgets`."""
    session, values = change.session, new.model_dump()
    if all(values[name] is None for name in _LIMITS):
        raise InvalidBudgetField("limit_usd", _NO_LIMIT)
    if new.scope_type == "tenant":
        if new.scope_id not in (None, change.tenant_id):
            raise InvalidBudgetField("scope_id", "is not for the scope tenant")
        values["scope_id"] = change.tenant_id
    elif new.scope_id is None:
        raise InvalidBudgetField("scope_id", "is required")
    elif not await table.has_scope(session, new.scope_type, new.scope_id):
        raise InvalidBudgetField("scope_id", f"is no {new.scope_type} of this organization")
    await require_room(session, ScopedLock.BUDGETS, table.count_budgets, limit=MAX_BUDGETS, full=TooManyBudgets)
    now = utc_now()
    row = BudgetRow(id=new_id(), tenant_id=change.tenant_id, created_at=now, updated_at=now, **values)
    session.add(row)
    with unique(BudgetExists):
        await session.flush()
    await begin_budget(
        session, row.id, tenant_id=change.tenant_id, scope_type=new.scope_type, scope_id=row.scope_id,
        period=new.period, zone=ZoneInfo(await table.timezone(session)),
    )  # fmt: skip
    _record(change, "budget.created", row, budget=values)
    return row


async def update(change: Change, row: BudgetRow, body: BudgetUpdate) -> BudgetRow:
    """Change limits and action. What is already spent counts toward the new limits. Raises `InvalidBudgetField`."""
    sent = body.sent()
    for name in _FIXED:
        if sent.pop(name, None) not in (None, getattr(row, name)):
            raise InvalidBudgetField(name, "cannot change: make another budget")
    if all(sent.get(name, getattr(row, name)) is None for name in _LIMITS):
        raise InvalidBudgetField(next(name for name in _LIMITS if name in sent), _NO_LIMIT)
    changed = row.differing(sent)
    if changed:
        row.assign(changed)
        _record(change, "budget.updated", row, changed=changed)
    return row


async def delete(change: Change, row: BudgetRow) -> None:
    await change.session.delete(row)
    _record(change, "budget.deleted", row)


def _record(change: Change, action: str, row: BudgetRow, **details: Any) -> None:
    """Record the change, and make workers compile the organization's policy again."""
    details = {"scope_type": row.scope_type, "scope_id": row.scope_id, "period": row.period, **details}
    change.record(action, "budget", row.id, **details)
    change.touch("policy", change.tenant_id, urgent=True)

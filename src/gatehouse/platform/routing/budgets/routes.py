"""The budgets' endpoints (docs/budgets.md)."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends

from gatehouse.foundation.http.bodies import Id
from gatehouse.foundation.http.lists import PageWindow, count_query, page_window, sort_parameter
from gatehouse.platform.request.callers import RESPONSES, Admin, AdminReader
from gatehouse.platform.request.injected import Changing, Session, loaded
from gatehouse.platform.routing.budgets import service
from gatehouse.platform.routing.budgets.schemas import Budget, BudgetPage, BudgetUpdate, NewBudget, Sort
from gatehouse.platform.routing.budgets.service import BudgetNotFound
from gatehouse.platform.routing.budgets.table import BudgetRow, matching
from gatehouse.policy.budgets import ScopeType

router = APIRouter(prefix="/api/admin/budgets", tags=["Budgets"], responses=RESPONSES)

LoadedBudget = Annotated[BudgetRow, Depends(loaded(BudgetRow, "budget_id", BudgetNotFound))]
Window = Annotated[PageWindow, Depends(page_window(default=50, maximum=200))]
_CREATE_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    409: {"description": "A budget with this scope and period exists, or there are too many."}
}


@router.get("", response_model=BudgetPage)
async def list_budgets(
    caller: AdminReader,
    session: Session,
    window: Window,
    *,
    scope_type: ScopeType | None = None,
    scope_id: Id | None = None,
    sort: Annotated[Sort, sort_parameter()] = "-created_at",
) -> object:
    """Lists the organization's budgets with what is spent of them, by default newest first."""
    query = matching(scope_type, scope_id, sort)
    total = await session.scalar(count_query(query)) or 0
    rows = (await session.scalars(window.apply(query))).all()
    return window.envelope("items", await service.shown(session, rows), total)


@router.post("", status_code=201, response_model=Budget, responses=_CREATE_RESPONSES)
async def create_budget(caller: Admin, body: NewBudget, change: Changing) -> object:
    """Creates a budget. It starts with the amount that its scope has used in the current period.

    It applies to calls that start after the response, on every worker.
    """
    row = await service.create(change, body)
    return (await service.shown(change.session, [row]))[0]


@router.get("/{budget_id}", response_model=Budget)
async def read_budget(caller: AdminReader, budget: LoadedBudget, session: Session) -> object:
    """Returns one budget, with what is spent of it."""
    return (await service.shown(session, [budget]))[0]


@router.put("/{budget_id}", response_model=Budget)
async def update_budget(caller: Admin, budget: LoadedBudget, body: BudgetUpdate, change: Changing) -> object:
    """Changes limits and action. What is already spent in the current period counts toward the new limits."""
    await service.update(change, budget, body)
    return (await service.shown(change.session, [budget]))[0]


@router.delete("/{budget_id}", status_code=204)
async def delete_budget(caller: Admin, budget: LoadedBudget, change: Changing) -> None:
    """Removes a budget, which then neither counts nor refuses anything."""
    await service.delete(change, budget)

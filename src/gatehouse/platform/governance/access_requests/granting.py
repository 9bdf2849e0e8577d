"""Grants the model or limit of an approved request: a membership in a group whose rule allows the model, or a budget of
the requester."""

from typing import Any, Final
from uuid import UUID

from gatehouse.foundation.storage.locks import ScopedLock, acquire_scoped
from gatehouse.platform.access.groups import service as groups
from gatehouse.platform.access.groups.schemas import NewGroup
from gatehouse.platform.access.groups.table import GroupRow, find_member
from gatehouse.platform.access.model_access import service as model_access
from gatehouse.platform.access.model_access.schemas import NewRule
from gatehouse.platform.access.model_access.table import find_rule
from gatehouse.platform.changes.change import Change
from gatehouse.platform.governance.access_requests import table
from gatehouse.platform.governance.access_requests.errors import (
    DeniedByGroup,
    GroupWithoutRule,
    InvalidRequestField,
    ModelNotInCatalog,
)
from gatehouse.platform.governance.access_requests.schemas import LIMIT_NAMES, AccessApproval, NewAccessRequest
from gatehouse.platform.governance.access_requests.table import AccessRequestRow
from gatehouse.platform.routing.budgets import service as budgets
from gatehouse.platform.routing.budgets.schemas import BudgetUpdate, NewBudget
from gatehouse.platform.routing.budgets.table import BudgetRow

MAX_GROUP_NAME_CHARACTERS: Final = 255


async def grant_model(change: Change, row: AccessRequestRow, group_id: UUID | None) -> dict[str, Any]:
    """Add the requester to the group, or without `group_id` to the model's own group. Return the granted fields.

    Raises `ModelNotInCatalog`, `DeniedByGroup`, `InvalidRequestField`, `GroupWithoutRule`, `TooManyGroups`,
    `TooManyAccessRules`.
    """
    session, model = change.session, row.model
    assert model is not None
    if await table.find_catalog_entry(session, model) is None:
        raise ModelNotInCatalog(model)
    denying_group = await table.find_denying_group(session, row.user_id, model)
    if denying_group is not None:
        raise DeniedByGroup(model, denying_group)
    group = await (_own_group(change, model) if group_id is None else _chosen_group(change, model, group_id))
    if await find_member(session, group.id, row.user_id) is None:
        await groups.add_member(change, group, row.user_id)
    return {"group_id": str(group.id), "group_name": group.name}


async def _chosen_group(change: Change, model: str, group_id: UUID) -> GroupRow:
    group = await table.lock_group(change.session, GroupRow.id == group_id)
    if group is None:
        raise InvalidRequestField("group_id", "is not a group of this organization")
    if not await _allows(change, group, model):
        raise InvalidRequestField("group_id", f"has no rule that allows {model}")
    if group.external_group_id is not None:
        fault = "belongs to the directory, which would remove the person at the next sign-in: choose another group"
        raise InvalidRequestField("group_id", fault)
    return group


async def _own_group(change: Change, model: str) -> GroupRow:
    """Return the group that was created for the model, locked. The first approval creates it."""
    name = f"Access to {model}"[:MAX_GROUP_NAME_CHARACTERS]
    # The lock makes two concurrent first approvals create one group.
    await acquire_scoped(change.session, ScopedLock.GROUPS, str(change.tenant_id))
    group = await table.lock_group(change.session, GroupRow.name == name)
    if group is not None:
        if not await _allows(change, group, model):
            raise GroupWithoutRule(model, name)
        return group
    description = f"Made for approved requests for {model}."
    created = await groups.create(change, NewGroup(name=name, description=description))
    group = await table.lock_group(change.session, GroupRow.id == created.id)
    assert group is not None
    await model_access.create(change, group, NewRule(model_id=model, access_type="ALLOW"))
    return group


async def _allows(change: Change, group: GroupRow, model: str) -> bool:
    rule = await find_rule(change.session, group.id, model)
    return rule is not None and rule.access_type == "ALLOW"


async def grant_limit(change: Change, row: AccessRequestRow, limits: dict[str, Any]) -> dict[str, Any]:
    """Create or raise the requester's budget of the period, and return the granted fields. `limits` has the new limits
    by name. Raises `InvalidRequestField`, `BudgetExists`, `TooManyBudgets`."""
    assert row.period is not None
    budget = await table.find_budget(change.session, row.user_id, row.period, lock=True)
    check_limits(budget, limits)
    if budget is None:
        new = NewBudget.model_validate({"scope_type": "user", "scope_id": row.user_id, "period": row.period, **limits})
        budget = await budgets.create(change, new)
    else:
        await budgets.update(change, budget, BudgetUpdate(**limits))
    granted = {name: getattr(budget, name) for name in LIMIT_NAMES}
    # The column `granted` is JSON, which cannot store a `Decimal`.
    granted["limit_usd"] = None if budget.limit_usd is None else str(budget.limit_usd)
    return granted


def limits_of(body: NewAccessRequest | AccessRequestRow, approval: AccessApproval | None = None) -> dict[str, Any]:
    """Return the limits of a request by name, without those that are null. Limits in the approval replace those of the
    request."""
    limits = {name: getattr(body, name) for name in LIMIT_NAMES}
    if approval is not None:
        limits.update({name: value for name, value in approval.sent().items() if name in LIMIT_NAMES})
    return {name: value for name, value in limits.items() if value is not None}


def check_limits(budget: BudgetRow | None, limits: dict[str, Any]) -> None:
    """Check that the limits do not lower the requester's budget. Raises `InvalidRequestField`."""
    if not limits:
        raise InvalidRequestField("limit_usd", "one of limit_usd, limit_requests and limit_tokens is needed")
    if budget is None:
        return
    for name, value in limits.items():
        current = getattr(budget, name)
        if current is None:
            raise InvalidRequestField(name, "is unlimited in the present budget of this period, so leave it out")
        if value < current:
            raise InvalidRequestField(name, f"is less than the present limit of {current}")

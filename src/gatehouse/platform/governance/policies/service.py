"""Creates, changes, deletes and validates policy rules."""

from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, FieldFault, NotFound, Unprocessable
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.conflicts import unique
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.changes.change import Change
from gatehouse.platform.governance.policies.schemas import MAX_RULES, NewPolicy, PolicyUpdate
from gatehouse.platform.governance.policies.table import PolicyRow, count_policies
from gatehouse.platform.routing.model_catalog.table import catalog_keys
from gatehouse.policy.governance import PolicyAction
from gatehouse.policy.rules.conditions import TOOL_CALL, BadCondition, check, compile_condition

_FIELDS: Final = tuple(NewPolicy.model_fields)


class PolicyNotFound(NotFound):
    message = "Policy not found"


class PolicyNameTaken(Conflict):
    code = "policy_exists"
    message = "The organization has a policy rule of this name."


class TooManyPolicies(Conflict):
    code = "too_many_policies"
    message = "The organization has the maximum number of policy rules. Remove some first."


class BadField(Unprocessable):
    def __init__(self, field: str, fault: str) -> None:
        super().__init__(faults=[FieldFault(field, fault)])


async def create(change: Change, new: NewPolicy) -> PolicyRow:
    """Add a rule. Raises `BadField`, `PolicyNameTaken`, `TooManyPolicies`."""
    values = new.model_dump()
    values["terminal"] = is_terminal(new)
    await _check(change.session, values)
    await require_room(change.session, ScopedLock.POLICIES, count_policies, limit=MAX_RULES, full=TooManyPolicies)
    now = utc_now()
    row = PolicyRow(id=new_id(), tenant_id=change.tenant_id, created_at=now, updated_at=now, **values)
    change.session.add(row)
    await _flush(change.session)
    _record(change, "policy.created", row, rule=values)
    return row


async def update(change: Change, row: PolicyRow, body: PolicyUpdate) -> PolicyRow:
    """Change a rule. The merged rule is validated as a whole. Raises `BadField`, `PolicyNameTaken`."""
    changes = body.sent()
    if changes.get("action", "ROUTE") != "ROUTE":
        changes.setdefault("route_to", None)
    await _check(change.session, {name: getattr(row, name) for name in _FIELDS} | changes)
    row.assign(changes)
    await _flush(change.session)
    _record(change, "policy.updated", row, changed=changes)
    return row


async def delete(change: Change, row: PolicyRow) -> None:
    await change.session.delete(row)
    _record(change, "policy.deleted", row)


def check_condition(condition: str) -> None:
    """Compile a condition. Raises `BadField` if that fails."""
    try:
        check(condition)
    except BadCondition as error:
        raise BadField("condition", str(error)) from None


def check_action(action: PolicyAction, condition: str) -> None:
    """Check that a valid condition can have the action. Raises `BadField`."""
    if action == "ROUTE" and TOOL_CALL in compile_condition(condition).variables():
        raise BadField("action", f"must not be ROUTE for a condition with {TOOL_CALL!r}: a call of a tool has no model")


def is_terminal(rule: NewPolicy) -> bool:
    return rule.action != "LOG" if rule.terminal is None else rule.terminal


def check_target(action: PolicyAction, target: str | None, *, is_known: bool) -> None:
    """Check that action and target agree. `is_known` is true if the catalog contains the target. Raises `BadField`."""
    if action != "ROUTE":
        if target is not None:
            raise BadField("route_to", "belongs to the action ROUTE")
    elif target is None:
        raise BadField("route_to", "is required for the action ROUTE")
    elif not is_known:
        raise BadField("route_to", "is not provider/model-id of a model in the catalog")


async def _check(session: AsyncSession, rule: dict[str, Any]) -> None:
    """Validate the fields of a rule. Raises `BadField`."""
    check_condition(rule["condition"])
    action, target = rule["action"], rule["route_to"]
    check_action(action, rule["condition"])
    provider, _, model_id = (target or "").partition("/")
    is_known = action == "ROUTE" and bool(target) and bool(await catalog_keys(session, [(provider, model_id)]))
    check_target(action, target, is_known=is_known)


async def _flush(session: AsyncSession) -> None:
    with unique(PolicyNameTaken):
        await session.flush()


def _record(change: Change, action: str, row: PolicyRow, **details: Any) -> None:
    """Record and publish a change."""
    change.record(action, "policy", row.id, name=row.name, **details)
    change.touch("policy", change.tenant_id, urgent=True)

"""Creates, withdraws and decides access requests. An approval grants the model or the limit in the same transaction."""

from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.http.lists import PageWindow, count_query
from gatehouse.foundation.identity import Caller
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.storage.locks import ScopedLock, require_room
from gatehouse.platform.changes.change import Change
from gatehouse.platform.governance.access_requests import granting, table
from gatehouse.platform.governance.access_requests.errors import (
    InvalidRequestField,
    RequestExists,
    RequestNotPending,
    TooManyAccessRequests,
    TooManyOwnRequests,
)
from gatehouse.platform.governance.access_requests.schemas import (
    LIMIT_NAMES,
    AccessApproval,
    Granted,
    NewAccessRequest,
    RequestableModel,
)
from gatehouse.platform.governance.access_requests.table import AccessRequestRow
from gatehouse.platform.governance.approvals.schemas import Decision
from gatehouse.platform.governance.approvals.service import MayNotApprove, check_approver

#: Maximum number of pending requests of one user, and of an organization.
MAX_PENDING_PER_USER: Final = 20
MAX_PENDING: Final = 2_000
#: Maximum number of final requests of one user that are kept. The audit log contains all of them.
MAX_FINAL_PER_USER: Final = 200

_NOT_REQUESTABLE: Final = (
    "is not a model that you can ask for: GET /api/access-requests/models lists those that are closed to you"
)


async def page_of_models(
    session: AsyncSession, caller: Caller, window: PageWindow, search: str | None
) -> dict[str, Any]:
    assert caller.user_id is not None
    query = table.requestable_models(caller.user_id, search)
    total = (await session.execute(count_query(query))).scalar_one()
    rows = (await session.scalars(window.apply(query))).all()
    models = [RequestableModel(model=f"{row.provider}/{row.model_id}", display_name=row.display_name) for row in rows]
    return window.envelope("items", models, total)


async def create(change: Change, caller: Caller, new: NewAccessRequest) -> AccessRequestRow:
    """Add a request of the caller. Raises `InvalidRequestField`, `TooManyAccessRequests`, `TooManyOwnRequests`,
    `RequestExists`."""
    session, user_id = change.session, caller.user_id
    assert user_id is not None
    _check_fields(new)
    # `require_room` takes a lock, so only one transaction at a time adds requests of the organization. No concurrent
    # request can invalidate the checks below.
    await require_room(
        session, ScopedLock.ACCESS_REQUESTS, table.count_pending, limit=MAX_PENDING, full=TooManyAccessRequests
    )
    if await table.has_pending(session, user_id, model=new.model, period=new.period):
        raise RequestExists
    if await table.count_pending(session, user_id) >= MAX_PENDING_PER_USER:
        raise TooManyOwnRequests
    if new.model is not None and not await table.is_requestable(session, user_id, new.model):
        raise InvalidRequestField("model", _NOT_REQUESTABLE)
    if new.period is not None:
        budget = await table.find_budget(session, user_id, new.period)
        granting.check_limits(budget, granting.limits_of(new))
    await table.delete_oldest_final(session, user_id, keep=MAX_FINAL_PER_USER)
    values = new.model_dump()
    row = AccessRequestRow(
        id=new_id(), tenant_id=change.tenant_id, user_id=user_id, status="pending", granted=None, created_at=utc_now(),
        decided_at=None, decided_by=None, decision_reason=None, **values,
    )  # fmt: skip
    session.add(row)
    change.record("access_request.created", "access_request", row.id, **values)
    return row


def withdraw(change: Change, row: AccessRequestRow) -> None:
    """Withdraw a pending request. Raises `RequestNotPending`."""
    _end(row, "withdrawn")
    change.record("access_request.withdrawn", "access_request", row.id, **_subject(row))


async def approve(
    change: Change, caller: Caller, row: AccessRequestRow, body: AccessApproval, *, by_machines: bool
) -> AccessRequestRow:
    """Approve the request and grant the model or the limit. With `by_machines`, API keys and OAuth clients may approve.

    Raises `MayNotApprove`, `RequestNotPending`, and the errors of `granting`.
    """
    await check_approver(change.session, caller, user_id=row.user_id, by_machines=by_machines)
    _end(row, "approved", caller, body.reason)
    foreign = set(LIMIT_NAMES) if row.kind == "model" else {"group_id"}
    for name, value in body.sent().items():
        if name in foreign and value is not None:
            raise InvalidRequestField(name, f"does not apply to a request for a {row.kind}")
    if row.kind == "model":
        granted = await granting.grant_model(change, row, body.group_id)
    else:
        granted = await granting.grant_limit(change, row, granting.limits_of(row, body))
    row.granted = {**dict.fromkeys(Granted.model_fields), **granted}
    change.record(
        "access_request.approved", "access_request", row.id, reason=body.reason, **_subject(row), granted=row.granted
    )
    return row


def deny(change: Change, caller: Caller, row: AccessRequestRow, body: Decision) -> AccessRequestRow:
    """Deny the request. Raises `RequestNotPending`."""
    _end(row, "denied", caller, body.reason)
    change.record("access_request.denied", "access_request", row.id, reason=body.reason, **_subject(row))
    return row


def record_refusal(change: Change, row: AccessRequestRow, error: MayNotApprove) -> None:
    """Record the refused attempt of a caller who may not approve the request."""
    change.record(
        "access_request.refused", "access_request", row.id, outcome="failure", reason=error.code, **_subject(row)
    )


def _check_fields(new: NewAccessRequest) -> None:
    """Check that the body has the fields of its kind and no others. Raises `InvalidRequestField`."""
    needed, others = ("model", ("period", *LIMIT_NAMES)) if new.kind == "model" else ("period", ("model",))
    if getattr(new, needed) is None:
        raise InvalidRequestField(needed, f"is required for the kind {new.kind}")
    for name in others:
        if getattr(new, name) is not None:
            raise InvalidRequestField(name, f"is not for the kind {new.kind}")


def _end(row: AccessRequestRow, status: str, caller: Caller | None = None, reason: str | None = None) -> None:
    if row.status != "pending":
        raise RequestNotPending(row.status)
    row.status, row.decided_at, row.decision_reason = status, utc_now(), reason
    row.decided_by = None if caller is None else caller.actor_id


def _subject(row: AccessRequestRow) -> dict[str, Any]:
    """Return the details of audit events that identify the requester and the requested model or limit."""
    return {
        "user_id": row.user_id, "kind": row.kind, "model": row.model, "period": row.period,
        **{name: getattr(row, name) for name in LIMIT_NAMES},
    }  # fmt: skip

"""Decides approvals: checks the approver, and changes the status."""

from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import BadRequest, Conflict, Forbidden, NotFound
from gatehouse.foundation.identity import Caller, CallerKind
from gatehouse.platform.changes.change import Change
from gatehouse.platform.governance.approvals.schemas import Decision
from gatehouse.platform.governance.approvals.table import ApprovalRow, creator_of_client, creators_of_keys


class ApprovalNotFound(NotFound):
    message = "Approval not found"


class SortsPendingOnly(BadRequest):
    code = "invalid_sort"
    message = "sort: expires_at sorts only approvals that wait. Add status=pending, or sort by created_at."


class MayNotApprove(Forbidden):
    """The caller may not approve the request. `code` is the reason."""

    def __init__(self) -> None:
        super().__init__(code=self.code)


class OwnRequest(MayNotApprove):
    code = "own_request"
    message = "You cannot approve your own request, or one of your key or OAuth client. Ask another administrator."


class PersonRequired(MayNotApprove):
    code = "person_required"
    message = "Only a signed-in user can approve a request. APPROVAL_BY_MACHINES allows keys and OAuth clients."


class NotPending(Conflict):
    """The approval is in a final state, which `status` names."""

    code = "not_pending"

    def __init__(self, status: str) -> None:
        super().__init__(f"This approval is not pending: it is {status}.", status=status)


async def approve(
    change: Change, caller: Caller, row: ApprovalRow, decision: Decision | None, *, by_machines: bool
) -> ApprovalRow:
    """Approve the request. With `by_machines`, API keys and OAuth clients may approve. Raises `MayNotApprove`,
    `NotPending`."""
    await check_approver(change.session, caller, user_id=row.user_id, client_id=row.client_id, by_machines=by_machines)
    return _decide(change, caller, row, "approved", decision)


async def check_approver(
    session: AsyncSession, caller: Caller, *, user_id: UUID | None, client_id: UUID | None = None, by_machines: bool
) -> None:
    """Check that the caller may approve a request of this user or OAuth client. Raises `MayNotApprove`."""
    if caller.kind is not CallerKind.USER and not by_machines:
        raise PersonRequired
    approvers = await _identities(session, caller.user_id, caller.client_id)
    requesters = await _identities(session, user_id, client_id)
    if not approvers.isdisjoint(requesters):
        raise OwnRequest


def deny(change: Change, caller: Caller, row: ApprovalRow, decision: Decision | None) -> ApprovalRow:
    """Deny the request. Raises `NotPending`."""
    return _decide(change, caller, row, "denied", decision)


def record_refusal(change: Change, row: ApprovalRow, error: MayNotApprove) -> None:
    """Record the refused attempt of a caller who may not approve the request."""
    change.record(
        "approval.refused",
        "approval",
        row.id,
        outcome="failure",
        reason=error.code,
        held_request_id=row.request_id,
        rule_id=row.rule_id,
    )


async def _identities(session: AsyncSession, user_id: UUID | None, client_id: UUID | None) -> set[UUID]:
    """Return the ids of the user, of the OAuth client, of the user who created the client, and of the users who created
    the user's API keys."""
    client_creator = None if client_id is None else await creator_of_client(session, client_id)
    key_creators = set() if user_id is None else await creators_of_keys(session, user_id)
    return key_creators | {identity for identity in (user_id, client_id, client_creator) if identity is not None}


def _decide(change: Change, caller: Caller, row: ApprovalRow, status: str, decision: Decision | None) -> ApprovalRow:
    now = utc_now()
    # The row may be expired but still `pending`, if its worker is suspended. The worker refuses the request when it
    # resumes.
    if row.status != "pending" or row.expires_at <= now:
        raise NotPending("expired" if row.status == "pending" else row.status)
    row.status, row.decided_at, row.decided_by = status, now, caller.actor_id
    row.decision_reason = decision.reason if decision else None
    change.record(
        f"approval.{status}",
        "approval",
        row.id,
        reason=row.decision_reason,
        # The audit event has the request id of the decision, so the id of the waiting request is a detail.
        held_request_id=row.request_id,
        rule_id=row.rule_id,
        rule_name=row.rule_name,
        direction=row.direction,
    )
    change.touch("approval", row.id)
    return row

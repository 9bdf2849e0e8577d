"""The rules of approvals."""

from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import Caller, CallerKind
from gatehouse.platform.change import Change
from gatehouse.platform.governance.approvals.errors import MayNotApprove, NotPending, OwnRequest, PeopleApprove
from gatehouse.platform.governance.approvals.schemas import Decision
from gatehouse.platform.governance.approvals.table import ApprovalRow, made_by, makers_of_keys


async def approve(
    change: Change, caller: Caller, row: ApprovalRow, decision: Decision | None, *, by_machines: bool
) -> ApprovalRow:
    """The request goes on. `by_machines`: whether keys and OAuth clients may approve. Raises `MayNotApprove`,
    `NotPending`."""
    if caller.kind is not CallerKind.USER and not by_machines:
        raise PeopleApprove
    approvers = await _identities(change.session, caller.user_id, caller.client_id)
    requesters = await _identities(change.session, row.user_id, row.client_id)
    if not approvers.isdisjoint(requesters):
        raise OwnRequest
    return _decide(change, caller, row, "approved", decision)


def deny(change: Change, caller: Caller, row: ApprovalRow, decision: Decision | None) -> ApprovalRow:
    """The request is refused. Raises `NotPending`."""
    return _decide(change, caller, row, "denied", decision)


def refused(change: Change, row: ApprovalRow, error: MayNotApprove) -> None:
    """Records that somebody tried to approve what is not theirs to approve."""
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
    """The user, the OAuth client, the user who made the client, and the users who made the user's API keys."""
    client_maker = None if client_id is None else await made_by(session, client_id)
    key_makers = set() if user_id is None else await makers_of_keys(session, user_id)
    return key_makers | {identity for identity in (user_id, client_id, client_maker) if identity is not None}


def _decide(change: Change, caller: Caller, row: ApprovalRow, status: str, decision: Decision | None) -> ApprovalRow:
    now = utc_now()
    # A worker that sleeps has not said so itself yet, and will refuse the request when it wakes.
    if row.status != "pending" or row.expires_at <= now:
        raise NotPending("expired" if row.status == "pending" else row.status)
    row.status, row.decided_at, row.decided_by = status, now, caller.actor_id
    row.decision_reason = decision.reason if decision else None
    change.record(
        f"approval.{status}",
        "approval",
        row.id,
        reason=row.decision_reason,
        # The change's own request id is the decision's.
        held_request_id=row.request_id,
        rule_id=row.rule_id,
        rule_name=row.rule_name,
        direction=row.direction,
    )
    change.touch("approval", row.id)
    return row

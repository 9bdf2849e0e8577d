"""The rules of approvals."""

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.identity import Caller
from gatehouse.platform.change import Change
from gatehouse.platform.governance.approvals.errors import NotPending
from gatehouse.platform.governance.approvals.schemas import Decision
from gatehouse.platform.governance.approvals.table import ApprovalRow


def approve(change: Change, caller: Caller, row: ApprovalRow, decision: Decision | None) -> ApprovalRow:
    """The request goes on. Raises `NotPending`."""
    return _decide(change, caller, row, "approved", decision)


def deny(change: Change, caller: Caller, row: ApprovalRow, decision: Decision | None) -> ApprovalRow:
    """The request is refused. Raises `NotPending`."""
    return _decide(change, caller, row, "denied", decision)


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

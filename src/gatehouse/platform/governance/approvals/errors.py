"""Errors of the approvals family."""

from gatehouse.foundation.errors import BadRequest, Conflict, Forbidden, NotFound


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

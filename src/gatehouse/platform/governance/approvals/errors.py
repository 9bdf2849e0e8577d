"""What can go wrong with approvals."""

from gatehouse.foundation.errors import Conflict, Forbidden, NotFound


class ApprovalNotFound(NotFound):
    message = "Approval not found"


class MayNotApprove(Forbidden):
    """This caller may not approve the request. `code` says why."""

    def __init__(self) -> None:
        super().__init__(code=self.code)


class OwnRequest(MayNotApprove):
    code = "own_request"
    message = "Nobody approves their own request, or that of their key or OAuth client: another administrator has to."


class PeopleApprove(MayNotApprove):
    code = "person_required"
    message = "Only a signed-in person approves a held request. APPROVAL_BY_MACHINES lets keys and OAuth clients do so."


class NotPending(Conflict):
    """Somebody has decided, or nobody waits any more. `status` says which."""

    code = "not_pending"

    def __init__(self, status: str) -> None:
        super().__init__(f"This approval is not pending: it is {status}.", status=status)

"""What can go wrong with approvals."""

from gatehouse.foundation.errors import Conflict, NotFound


class ApprovalNotFound(NotFound):
    message = "Approval not found"


class NotPending(Conflict):
    """Somebody has decided, or nobody waits any more. `status` says which."""

    code = "not_pending"

    def __init__(self, status: str) -> None:
        super().__init__(f"This approval is not pending: it is {status}.", status=status)

"""What can go wrong with a trial. A malformed body is 400, as all below `dlp-rules`."""

from gatehouse.foundation.errors import NotFound, TooManyRequests


class OrganizationNotFound(NotFound):
    message = "Organization not found"


class GroupNotFound(NotFound):
    message = "Group not found"


class UserNotFound(NotFound):
    message = "User not found"


class ReplayRunning(TooManyRequests):
    """A replay takes up to half of a worker's time: one is enough."""

    code = "replay_running"
    message = "A replay is running on this worker. Try again when it is done."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "10"})

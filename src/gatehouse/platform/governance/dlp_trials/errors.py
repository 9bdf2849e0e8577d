"""What can go wrong with a trial. A malformed body is 400, as all below `dlp-rules`."""

from gatehouse.foundation.errors import NotFound


class OrganizationNotFound(NotFound):
    message = "Organization not found"


class GroupNotFound(NotFound):
    message = "Group not found"


class UserNotFound(NotFound):
    message = "User not found"

"""Errors of trials. A malformed body is 400, as on all paths below `dlp-rules`."""

from gatehouse.foundation.errors import NotFound


class OrganizationNotFound(NotFound):
    message = "Organization not found"


class GroupNotFound(NotFound):
    message = "Group not found"


class UserNotFound(NotFound):
    message = "User not found"

"""Errors of trials. The status of a malformed body is 400, as on all paths below `dlp-rules`."""

from gatehouse.foundation.errors import NotFound


class TrialOrganizationNotFound(NotFound):
    message = "Organization not found"


class TrialGroupNotFound(NotFound):
    message = "Group not found"


class TrialUserNotFound(NotFound):
    message = "User not found"

"""Errors of members."""

from gatehouse.foundation.errors import Conflict, NotFound


class PortalMemberNotFound(NotFound):
    message = "Member not found"


class AlreadyPortalMember(Conflict):
    message = "email: a member or an invitation has this address already."


class LastPortalAdmin(Conflict):
    message = "This is the organization's last administrator: make another member an administrator first."

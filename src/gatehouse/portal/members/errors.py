"""Errors of members."""

from gatehouse.foundation.errors import Conflict, NotFound


class PortalMemberNotFound(NotFound):
    message = "Member not found"


class AlreadyPortalMember(Conflict):
    message = "email: a member or an invitation has this address."


class LastPortalAdmin(Conflict):
    message = "This is the organization's last administrator: make another one first."

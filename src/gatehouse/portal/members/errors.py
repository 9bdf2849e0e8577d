"""Errors of members."""

from gatehouse.foundation.errors import Conflict, NotFound


class MemberNotFound(NotFound):
    message = "Member not found"


class AlreadyMember(Conflict):
    message = "email: a member or an invitation has this address."


class LastAdmin(Conflict):
    message = "This is the organization's last administrator: make another one first."

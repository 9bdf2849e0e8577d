"""Errors of single sign-on."""

from gatehouse.foundation.errors import Conflict, Forbidden, NotFound, Unauthenticated


class NotAMember(Forbidden):
    message = "You are not a member of this organization."


class SignInAgain(Unauthenticated):
    message = "You signed in too long ago. Sign in again."


class RefreshedTooLong(Unauthenticated):
    message = "The series of this token began a year ago. Issue a new token with the portal's admin key."


class InvitationNotFound(NotFound):
    message = "The invitation does not exist, has expired, was used, or was withdrawn."


class AnothersInvitation(Forbidden):
    message = "The invitation is for another address than that of your account."


class AddressUnproven(Forbidden):
    message = (
        "Your address is not verified: the organization at which you sign in has not verified its domain on the"
        " platform."
    )


class MemberAlready(Conflict):
    message = "You are already a member of this organization."

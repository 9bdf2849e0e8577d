"""Errors of single sign-on."""

from gatehouse.foundation.errors import Conflict, Forbidden, NotFound, Unauthenticated


class NotAMember(Forbidden):
    message = "You are not a member of this organization."


class SignInAgain(Unauthenticated):
    message = "You signed in too long ago. Sign in again."


class RefreshedTooLong(Unauthenticated):
    message = "The first of these tokens was issued a year ago. Issue another one with the portal's admin key."


class InvitationNotFound(NotFound):
    message = "There is no such invitation: it has expired, was used, or was withdrawn."


class AnothersInvitation(Forbidden):
    message = "The invitation is for another address than the one you have signed in with."


class AddressUnproven(Forbidden):
    message = (
        "Nothing proves that this address is yours: the organization in which you sign in has not proven its domain on"
        " the platform."
    )


class MemberAlready(Conflict):
    message = "You are a member of this organization already."

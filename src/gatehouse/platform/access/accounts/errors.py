"""Errors of a user's own account."""

from gatehouse.foundation.errors import Forbidden


class RegistrationClosed(Forbidden):
    code = "registration_closed"
    message = "Registration needs an invitation, or an address of a domain that is open for it."
    form = "error_message"


class WrongPassword(Forbidden):
    code = "wrong_password"
    message = "current_password: this is not your password."

"""Errors of a user's own account."""

from gatehouse.foundation.errors import Conflict, Forbidden


class RegistrationClosed(Forbidden):
    code = "registration_closed"
    message = "Registration needs an invitation, or an address of a domain with self-registration."
    error_format = "error_message"


class MailNotConfigured(Conflict):
    code = "mail_not_configured"
    message = "The platform sends no mail. Ask an administrator of your organization for a link to set a new password."
    error_format = "error_message"


class WrongPassword(Forbidden):
    code = "wrong_password"
    message = "current_password: this is not your password."

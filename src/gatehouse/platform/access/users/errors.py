"""Errors of users."""

from gatehouse.foundation.errors import BadRequest, Conflict, Forbidden, NotFound


class UserNotFound(NotFound):
    message = "User not found"


class EmailTaken(Conflict):
    code = "email_taken"
    message = "email: a user of this organization has this address."


class UsernameTaken(Conflict):
    code = "username_taken"
    message = "username: a user of this organization has this name."


class LastAdmin(Conflict):
    code = "last_admin"
    message = "This is the organization's last active administrator. Make another user an administrator first."


class LastOperator(Conflict):
    code = "last_operator"
    message = "This is the platform's last active operator. Make another user an operator first."


class NoPassword(Conflict):
    code = "service_account"
    message = "A service account has no password."


class MailNotPossible(Conflict):
    code = "mail_not_possible"
    message = "delivery: mail is not configured (SMTP_URL), or the user has no address."


class CannotBeOperator(Conflict):
    code = "cannot_be_operator"
    message = "An operator is an active administrator of the organization default, and a person."


class CannotGrant(Forbidden):
    """The caller tried to grant rights that it lacks."""

    message = (
        "Your credential cannot create or act as a user with these rights: it lacks scopes that the user would have."
    )


class OperatorsOnly(Forbidden):
    message = "Only an operator can create, change or remove an operator."


class BadOneTimeToken(BadRequest):
    code = "invalid_token"
    message = "The token is not valid, was used already, or has expired."

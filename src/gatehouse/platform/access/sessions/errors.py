"""Errors of sign-in and sessions.

`LoginFailed` has one message for every cause, so that it does not reveal which accounts exist. The other errors of a
sign-in are raised only after the password was checked.
"""

from gatehouse.foundation.errors import BadRequest, Forbidden, NotFound, Unauthenticated


class LoginFailed(Unauthenticated):
    code = "login_failed"
    message = "The e-mail address, the user name or the password is wrong."


class AddressNotConfirmed(Forbidden):
    """The password is right, so the caller may learn the state of the account."""

    code = "address_not_confirmed"
    message = "Confirm your e-mail address first: open the link in the confirmation e-mail."
    error_format = "error_message"


class TenantRequired(BadRequest):
    """The password matches several accounts, so the caller may learn their organizations."""

    code = "tenant_required"
    error_format = "error_message"

    def __init__(self, tenants: list[str]) -> None:
        super().__init__(
            "Several organizations have an account with this name and password. Set `tenant` to one of:"
            f" {', '.join(tenants)}.",
            tenants=tenants,
        )
        self.tenants = tenants


class InvalidRefreshToken(Unauthenticated):
    code = "invalid_refresh_token"
    message = "The refresh token is not valid. Sign in again."


class SessionNotFound(NotFound):
    message = "Session not found"

"""What can go wrong with sessions. A failed sign-in says the same whatever was wrong."""

from gatehouse.foundation.errors import BadRequest, NotFound, Unauthenticated


class LoginFailed(Unauthenticated):
    code = "login_failed"
    message = "The e-mail address, the user name or the password is wrong."


class TenantNeeded(BadRequest):
    """The password is that of several accounts, so whoever shows it may know where they are."""

    code = "tenant_required"
    form = "error_message"

    def __init__(self, tenants: list[str]) -> None:
        super().__init__(
            f"Several organizations have an account with this name and password. Send tenant: {', '.join(tenants)}.",
            tenants=tenants,
        )
        self.tenants = tenants


class InvalidRefreshToken(Unauthenticated):
    code = "invalid_refresh_token"
    message = "The refresh token is not valid. Sign in again."


class SessionNotFound(NotFound):
    message = "Session not found"

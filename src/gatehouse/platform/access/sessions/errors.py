"""What can go wrong with sessions. A failed sign-in says the same whatever was wrong."""

from gatehouse.foundation.errors import NotFound, Unauthenticated


class LoginFailed(Unauthenticated):
    code = "login_failed"
    message = "The e-mail address, the user name or the password is wrong."


class InvalidRefreshToken(Unauthenticated):
    code = "invalid_refresh_token"
    message = "The refresh token is not valid. Sign in again."


class SessionNotFound(NotFound):
    message = "Session not found"

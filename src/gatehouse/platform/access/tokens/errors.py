"""Errors of token requests (RFC 6749, 5.2). They are rendered as `error` and `error_description` and never cached. The
descriptions repeat no text that the caller sent.
"""

from typing import Any

from gatehouse.foundation.errors import BadRequest, Unauthenticated, Unavailable

NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}


class InvalidTokenRequest(BadRequest):
    code = "invalid_request"

    def __init__(self, message: str | None = None, **extra: Any) -> None:
        super().__init__(message, headers=NO_STORE, **extra)


class UnsupportedGrantType(InvalidTokenRequest):
    code = "unsupported_grant_type"
    message = "grant_type: client_credentials or authorization_code."


class InvalidGrant(InvalidTokenRequest):
    """The code is refused. The response is the same for every reason, so that guessing codes reveals nothing."""

    code = "invalid_grant"
    message = "The code is not valid, was used already, has expired, or was issued for another request."


class InvalidScope(InvalidTokenRequest):
    code = "invalid_scope"
    message = "scope: the client does not have all requested scopes."


class InvalidTarget(InvalidTokenRequest):
    """The platform issues no tokens for the requested resource (RFC 8707, 2)."""

    code = "invalid_target"
    message = "resource: not an address of this platform for which tokens are issued."


class InvalidClient(Unauthenticated):
    """Authentication failed. The response is the same for every reason, so that it does not reveal which clients
    exist."""

    code = "invalid_client"
    message = "The client is unknown or disabled, or its secret is wrong."

    def __init__(self) -> None:
        super().__init__(headers={**NO_STORE, "WWW-Authenticate": 'Basic realm="gatehouse", charset="UTF-8"'})


class TokensBusy(Unavailable):
    message = "Too many token requests at once; try again in a moment."

    def __init__(self) -> None:
        super().__init__(headers={**NO_STORE, "Retry-After": "1"})

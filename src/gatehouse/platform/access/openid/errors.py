"""Errors of `/oauth/authorize` before the redirect URI is verified, and errors of userinfo.

Later errors are reported to the application by the redirect (RFC 6749, 4.1.2.1).
"""

from gatehouse.foundation.errors import BadRequest, NotFound, Unauthenticated


class BadAuthorizationRequest(BadRequest):
    message = "The application sent you here with a request that is not valid. Go back to it and try again."


class NoPublicAddress(NotFound):
    code = "no_public_url"
    message = "Signing in to other applications is not set up here. The operator of this service has to set PUBLIC_URL."


class BadAccessToken(Unauthenticated):
    code = "invalid_token"
    message = "The access token is not valid, has expired, or its session has ended."

    def __init__(self) -> None:
        super().__init__(headers={"WWW-Authenticate": 'Bearer error="invalid_token"'})

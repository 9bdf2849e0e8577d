"""Reads the credential of a request, and defines the errors for a missing or rejected credential, for all hosts."""

from gatehouse.engine.exchange import Received
from gatehouse.foundation.errors import Unauthenticated


class MissingCredential(Unauthenticated):
    code = "missing_credential"
    message = "Send a credential: Authorization: Bearer <key or token>, or X-API-Key: <key>."


class InvalidApiKey(Unauthenticated):
    code = "invalid_api_key"
    message = "The API key is not valid."


class ExpiredApiKey(Unauthenticated):
    code = "expired_api_key"
    message = "The API key has expired."


def credential_of(received: Received) -> str | None:
    """Return the bearer token, or the header `X-API-Key` if there is no bearer token, or None if there is neither."""
    authorization = received.headers.get("authorization")
    if authorization is not None and authorization[:7].lower() == "bearer ":
        return authorization[7:].strip() or None
    return received.headers.get("x-api-key") or None

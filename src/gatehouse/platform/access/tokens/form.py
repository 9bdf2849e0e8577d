"""Reads the form and the client credentials of a token request (RFC 6749, 2.3.1 and 4.4.2).

All functions raise `InvalidTokenRequest`."""

import binascii
from base64 import b64decode
from typing import Final
from urllib.parse import unquote_plus
from uuid import UUID

import msgspec
from starlette.requests import Request

from gatehouse.foundation.http import forms
from gatehouse.foundation.http.forms import BadForm
from gatehouse.platform.access.tokens.errors import InvalidClient, InvalidTarget, InvalidTokenRequest
from gatehouse.platform.live import resources

#: Maximum size of the form, many times the size of a usual token request.
_MAX_BYTES: Final = 16 * 1024


class ClientSecret(msgspec.Struct, frozen=True):
    """The unverified credentials of a client. Without a secret, only a public client is accepted, and only for a
    request that PKCE authenticates."""

    client_id: UUID
    secret: str | None

    def __repr__(self) -> str:
        return f"ClientSecret({self.client_id})"


async def read(request: Request) -> dict[str, str]:
    """Return the form's fields. Empty fields are treated as absent. Repeated fields are an error (RFC 6749, 3.2)."""
    if not forms.is_form(request.headers.get("content-type", "")):
        raise InvalidTokenRequest(f"Send a form: Content-Type {forms.MEDIA_TYPE}.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BYTES:
            raise InvalidTokenRequest(f"The form is longer than {_MAX_BYTES} bytes.")
    try:
        fields = forms.parse_form(bytes(body))
    except BadForm as error:
        raise InvalidTokenRequest(str(error)) from None
    return {name: value for name, value in fields.items() if value}


def audience(fields: dict[str, str], issuer: str) -> str | None:
    """Return the audience of the token: the resource that the form names, or None for the whole platform. Raises
    `InvalidTarget`."""
    resource = fields.get("resource")
    if resource is None or resource.rstrip("/") == issuer.rstrip("/"):
        return None
    try:
        path = resources.path_of(issuer, resource)
    except ValueError:
        raise InvalidTarget from None
    return None if path is None else resources.identifier(issuer, path)


def required_fields(fields: dict[str, str], *names: str) -> list[str]:
    """Return the values of required fields."""
    for name in names:
        if name not in fields:
            raise InvalidTokenRequest(f"{name}: missing.")
    return [fields[name] for name in names]


def client_credentials(request: Request, fields: dict[str, str], *, allow_public: bool = False) -> ClientSecret:
    """Return id and secret from the form or from HTTP Basic. With `allow_public` the id alone is sufficient.

    Raises `InvalidClient` if they are malformed.
    """
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        return _basic_credentials(credentials.strip(), fields)
    required_fields(fields, "client_id", *(() if allow_public else ("client_secret",)))
    return ClientSecret(_uuid(fields["client_id"]), fields.get("client_secret"))


def _basic_credentials(credentials: str, fields: dict[str, str]) -> ClientSecret:
    if "client_secret" in fields:
        raise InvalidTokenRequest("The client's secret is in the form and in the header; send it once.")
    try:
        user, colon, password = b64decode(credentials, validate=True).decode("utf-8").partition(":")
    except (binascii.Error, ValueError):
        raise InvalidClient from None
    if not colon:
        raise InvalidClient
    client = ClientSecret(_uuid(unquote_plus(user)), unquote_plus(password))
    # Some clients repeat the id in the form, which is not treated as a second authentication method.
    if "client_id" in fields and _uuid(fields["client_id"]) != client.client_id:
        raise InvalidTokenRequest("The client's id in the form is not the one in the header.")
    return client


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidClient from None

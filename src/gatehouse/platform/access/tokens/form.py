"""Reads a token request: its form, and who sent it (RFC 6749, 2.3.1 and 4.4.2). Raises `InvalidTokenRequest`."""

import binascii
from base64 import b64decode
from typing import Final
from urllib.parse import unquote_plus
from uuid import UUID

import msgspec
from starlette.requests import Request

from gatehouse.foundation.http import forms
from gatehouse.foundation.http.forms import BadForm
from gatehouse.platform.access.tokens.errors import InvalidClient, InvalidTokenRequest

#: Many times what a token request needs.
_MAX_BYTES: Final = 16 * 1024


class ClientSecret(msgspec.Struct, frozen=True):
    """What a client says of itself; nothing of it is believed yet. Without a secret only a public client is believed,
    and only where its request proves itself otherwise (PKCE)."""

    client_id: UUID
    secret: str | None

    def __repr__(self) -> str:
        return f"ClientSecret({self.client_id})"


async def read(request: Request) -> dict[str, str]:
    """The form's fields. Those without a value count as absent, and no field stands there twice (RFC 6749, 3.2)."""
    if not forms.is_form(request.headers.get("content-type", "")):
        raise InvalidTokenRequest(f"Send a form: Content-Type {forms.MEDIA_TYPE}.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BYTES:
            raise InvalidTokenRequest(f"The form is longer than {_MAX_BYTES} bytes.")
    try:
        fields = forms.parsed(bytes(body))
    except BadForm as error:
        raise InvalidTokenRequest(str(error)) from None
    return {name: value for name, value in fields.items() if value}


def needed(fields: dict[str, str], *names: str) -> list[str]:
    """The values of fields that must be there."""
    for name in names:
        if name not in fields:
            raise InvalidTokenRequest(f"{name}: missing.")
    return [fields[name] for name in names]


def client_of(request: Request, fields: dict[str, str], *, or_public: bool = False) -> ClientSecret:
    """Id and secret, from the form or from HTTP Basic; `or_public`: the id alone is enough.

    Raises `InvalidClient` where they cannot be anybody's.
    """
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        return _by_basic(credentials.strip(), fields)
    needed(fields, "client_id", *(() if or_public else ("client_secret",)))
    return ClientSecret(_uuid(fields["client_id"]), fields.get("client_secret"))


def _by_basic(credentials: str, fields: dict[str, str]) -> ClientSecret:
    if "client_secret" in fields:
        raise InvalidTokenRequest("The client's secret is in the form and in the header; send it once.")
    try:
        user, colon, password = b64decode(credentials, validate=True).decode("utf-8").partition(":")
    except (binascii.Error, ValueError):
        raise InvalidClient from None
    if not colon:
        raise InvalidClient
    client = ClientSecret(_uuid(unquote_plus(user)), unquote_plus(password))
    # Some clients repeat the id in the form; that is no second way to say who they are.
    if "client_id" in fields and _uuid(fields["client_id"]) != client.client_id:
        raise InvalidTokenRequest("The client's id in the form is not the one in the header.")
    return client


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidClient from None

"""Reads a token request: its form, and who sent it (RFC 6749, 2.3.1 and 4.4.2). Raises `InvalidTokenRequest`."""

import binascii
from base64 import b64decode
from typing import Final
from urllib.parse import parse_qsl, unquote_plus
from uuid import UUID

import msgspec
from starlette.requests import Request

from gatehouse.platform.access.tokens.errors import InvalidClient, InvalidTokenRequest

MEDIA_TYPE: Final = "application/x-www-form-urlencoded"
#: Many times what a token request needs.
_MAX_BYTES: Final = 16 * 1024
_MAX_FIELDS: Final = 20


class ClientSecret(msgspec.Struct, frozen=True):
    """What a client says of itself; nothing of it is believed yet."""

    client_id: UUID
    secret: str

    def __repr__(self) -> str:
        return f"ClientSecret({self.client_id})"


async def read(request: Request) -> dict[str, str]:
    """The form's fields. Those without a value count as absent, and no field stands there twice (RFC 6749, 3.2)."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != MEDIA_TYPE:
        raise InvalidTokenRequest(f"Send a form: Content-Type {MEDIA_TYPE}.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BYTES:
            raise InvalidTokenRequest(f"The form is longer than {_MAX_BYTES} bytes.")
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, encoding="utf-8", errors="strict", max_num_fields=_MAX_FIELDS
        )
    except ValueError:  # UnicodeDecodeError is one
        raise InvalidTokenRequest("The form cannot be read.") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise InvalidTokenRequest("A field stands in the form twice.")
    return {name: value for name, value in fields.items() if value}


def client_of(request: Request, fields: dict[str, str]) -> ClientSecret:
    """Id and secret, from the form or from HTTP Basic. Raises `InvalidClient` where they cannot be anybody's."""
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        return _by_basic(credentials.strip(), fields)
    for name in ("client_id", "client_secret"):
        if name not in fields:
            raise InvalidTokenRequest(f"{name}: missing.")
    return _client(fields["client_id"], fields["client_secret"])


def _by_basic(credentials: str, fields: dict[str, str]) -> ClientSecret:
    if "client_secret" in fields:
        raise InvalidTokenRequest("The client's secret is in the form and in the header; send it once.")
    try:
        user, colon, password = b64decode(credentials, validate=True).decode("utf-8").partition(":")
    except (binascii.Error, ValueError):
        raise InvalidClient from None
    client = _client(unquote_plus(user), unquote_plus(password)) if colon else None
    if client is None:
        raise InvalidClient
    # Some clients repeat the id in the form; that is no second way to say who they are.
    if "client_id" in fields and _uuid(fields["client_id"]) != client.client_id:
        raise InvalidTokenRequest("The client's id in the form is not the one in the header.")
    return client


def _client(client_id: str, secret: str) -> ClientSecret:
    return ClientSecret(_uuid(client_id), secret)


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidClient from None

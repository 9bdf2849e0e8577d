"""Parses and checks an application's authorization request (OpenID Connect Core, 3.1.2.1; RFC 7636)."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit
from uuid import UUID

import msgspec
from starlette.responses import RedirectResponse

from gatehouse.foundation.errors import BadRequest
from gatehouse.foundation.http import forms
from gatehouse.foundation.http.forms import BadForm
from gatehouse.platform.access.tokens.claims import BY_SCOPE
from gatehouse.platform.access.tokens.codes import CodeGrant
from gatehouse.platform.access.tokens.table import Client

PATH: Final = "/oauth/authorize"
_MAX_QUERY_CHARACTERS: Final = 8192
_MAX_VALUE_CHARACTERS: Final = 1024
_match_challenge: Final = re.compile(r"[A-Za-z0-9_-]{43}").fullmatch
_match_seconds: Final = re.compile(r"[0-9]{1,9}").fullmatch


class BadAuthorizationRequest(BadRequest):
    message = "The application sent you here with a request that is not valid. Go back to it and try again."


class AuthorizationError(Exception):
    """An error that the redirect reports to the application."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(error)
        self.error = error
        self.description = description


class AuthorizationRequest(msgspec.Struct, frozen=True):
    """An authorization request. Empty fields are treated as absent. Unknown fields are ignored."""

    query: str
    client_id: UUID
    redirect_uri: str
    fields: dict[str, str]

    @classmethod
    def parse(cls, query: str) -> "AuthorizationRequest":
        """Return the request in a query string. Raises `BadAuthorizationRequest` without client id or redirect URI."""
        if len(query) > _MAX_QUERY_CHARACTERS:
            raise BadAuthorizationRequest
        try:
            fields = {name: value for name, value in forms.parse_form(query).items() if value}
            return cls(query, UUID(fields["client_id"]), fields["redirect_uri"], fields)
        except (BadForm, KeyError, ValueError):
            raise BadAuthorizationRequest from None

    @property
    def prompts(self) -> set[str]:
        return set(self.fields.get("prompt", "").split())

    @property
    def max_age(self) -> int | None:
        return int(self.fields["max_age"]) if "max_age" in self.fields else None

    @property
    def requested_scopes(self) -> set[str]:
        return set(self.fields.get("scope", "").split())

    def grant(self, client: Client) -> CodeGrant:
        """Return what the authorization code will grant. It contains the requested scopes that OpenID Connect defines,
        and those that the client may use on behalf of users (`user_scopes`). Other scopes are ignored (OpenID Connect
        Core, 3.1.2.1)."""
        scopes = [scope for scope in (*BY_SCOPE, *client.user_scopes) if scope in self.requested_scopes]
        challenge, nonce = self.fields["code_challenge"], self.fields.get("nonce")
        return CodeGrant(self.client_id, self.redirect_uri, challenge, nonce, " ".join(scopes))

    def check(self) -> None:
        """Check all rules. Raises `AuthorizationError` for the first rule that is broken."""
        for holds, error, description in self._rules():
            if not holds:
                raise AuthorizationError(error, description)

    def _rules(self) -> Iterator[tuple[bool, str, str]]:
        fields = self.fields
        for name in ("request", "request_uri"):
            yield name not in fields, f"{name}_not_supported", f"{name}: not supported."
        yield fields.get("response_type") == "code", "unsupported_response_type", "response_type: only code."
        yield fields.get("response_mode", "query") == "query", "invalid_request", "response_mode: only query."
        yield "openid" in self.requested_scopes, "invalid_scope", "scope: openid is missing."
        has_challenge = fields.get("code_challenge_method") == "S256" and _match_challenge(
            fields.get("code_challenge", "")
        )
        yield (
            bool(has_challenge),
            "invalid_request",
            "code_challenge, code_challenge_method: PKCE with S256 is required.",
        )
        yield bool(_match_seconds(fields.get("max_age", "0"))), "invalid_request", "max_age: a number of seconds."
        yield (
            "none" not in self.prompts or len(self.prompts) == 1,
            "invalid_request",
            "prompt: none cannot be combined with another value.",
        )
        for name in ("state", "nonce"):
            value = fields.get(name, "")
            is_valid = len(value) <= _MAX_VALUE_CHARACTERS and "\0" not in value
            yield is_valid, "invalid_request", f"{name}: at most {_MAX_VALUE_CHARACTERS} characters."

    def response(self, issuer: str, **parameters: str) -> RedirectResponse:
        """Return the redirect to the application, with the request's `state` and this platform's issuer (RFC 9207)."""
        if "state" in self.fields:
            parameters["state"] = self.fields["state"]
        separator = "&" if "?" in self.redirect_uri else "?"
        location = f"{self.redirect_uri}{separator}{urlencode({**parameters, 'iss': issuer})}"
        # With 303 the browser fetches that URL with GET and does not send it the posted form.
        return RedirectResponse(location, 303, {"Referrer-Policy": "no-referrer"})

    def retry_url(self, requested_at: str) -> str:
        """Return the URL to which the browser returns after the sign-in, in order to repeat this request.
        `requested_at` is the signed time of this request."""
        pairs = [pair for pair in parse_qsl(self.query, keep_blank_values=True) if pair[0] != "asked_at"]
        return f"{PATH}?{urlencode([*pairs, ('asked_at', requested_at)])}"


def url_of_form(form: bytes) -> str:
    """Return the GET URL for a form's fields. Raises `BadAuthorizationRequest`."""
    try:
        query = urlencode(forms.parse_form(form))
    except BadForm:
        raise BadAuthorizationRequest from None
    return f"{PATH}?{AuthorizationRequest.parse(query).query}"


def request_of_path(path: str) -> AuthorizationRequest | None:
    """Return the request in a path of this platform; None if the path is not a valid authorization request."""
    parts = urlsplit(path)
    if parts.path != PATH:
        return None
    try:
        return AuthorizationRequest.parse(parts.query)
    except BadAuthorizationRequest:
        return None

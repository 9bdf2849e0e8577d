"""An application's request to sign someone in, as it stands in the address (OpenID Connect Core, 3.1.2.1; RFC 7636)."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit
from uuid import UUID

import msgspec
from starlette.responses import RedirectResponse

from gatehouse.foundation.http import forms
from gatehouse.foundation.http.forms import BadForm
from gatehouse.platform.access.openid.errors import BadAuthorizationRequest
from gatehouse.platform.access.tokens.claims import BY_SCOPE

PATH: Final = "/oauth/authorize"
_MAX_QUERY_CHARS: Final = 8192
_MAX_VALUE_CHARS: Final = 1024
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}").fullmatch
_SECONDS: Final = re.compile(r"[0-9]{1,9}").fullmatch


class Fault(Exception):
    """What the application is told, by the redirect."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(error)
        self.error = error
        self.description = description


class Asked(msgspec.Struct, frozen=True):
    """The request's fields; empty ones count as absent, unknown ones are ignored."""

    query: str
    client_id: UUID
    redirect_uri: str
    fields: dict[str, str]

    @classmethod
    def read(cls, query: str) -> "Asked":
        """Raises `BadAuthorizationRequest` where it is not known who asks, or where to answer."""
        if len(query) > _MAX_QUERY_CHARS:
            raise BadAuthorizationRequest
        try:
            fields = {name: value for name, value in forms.parsed(query).items() if value}
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
    def scope(self) -> str:
        """What of the scopes is known here; others are ignored (OpenID Connect Core, 3.1.2.1)."""
        wanted = self.fields.get("scope", "").split()
        return " ".join(scope for scope in BY_SCOPE if scope in wanted)

    def check(self) -> None:
        """Raises `Fault`, the first that there is."""
        for holds, error, description in self._rules():
            if not holds:
                raise Fault(error, description)

    def _rules(self) -> Iterator[tuple[bool, str, str]]:
        fields = self.fields
        for name in ("request", "request_uri"):
            yield name not in fields, f"{name}_not_supported", f"{name}: not supported."
        yield fields.get("response_type") == "code", "unsupported_response_type", "response_type: only code."
        yield fields.get("response_mode", "query") == "query", "invalid_request", "response_mode: only query."
        yield "openid" in self.scope.split(), "invalid_scope", "scope: openid is missing."
        challenged = fields.get("code_challenge_method") == "S256" and _CHALLENGE(fields.get("code_challenge", ""))
        yield bool(challenged), "invalid_request", "code_challenge, code_challenge_method: PKCE with S256 is required."
        yield bool(_SECONDS(fields.get("max_age", "0"))), "invalid_request", "max_age: a number of seconds."
        yield "none" not in self.prompts or len(self.prompts) == 1, "invalid_request", "prompt: none stands alone."
        for name in ("state", "nonce"):
            value = fields.get(name, "")
            good = len(value) <= _MAX_VALUE_CHARS and "\0" not in value
            yield good, "invalid_request", f"{name}: at most {_MAX_VALUE_CHARS} characters."

    def answer(self, issuer: str, **told: str) -> RedirectResponse:
        """Back to the application, with the state that it sent and who answers (RFC 9207)."""
        if "state" in self.fields:
            told["state"] = self.fields["state"]
        mark = "&" if "?" in self.redirect_uri else "?"
        location = f"{self.redirect_uri}{mark}{urlencode({**told, 'iss': issuer})}"
        # 303: whatever the browser sent here, it fetches that address and sends none of it along.
        return RedirectResponse(location, 303, {"Referrer-Policy": "no-referrer"})

    def again(self, asked_at: str) -> str:
        """The address to come back to once the person has signed in; `asked_at` is the proof of when they were here."""
        pairs = [pair for pair in parse_qsl(self.query, keep_blank_values=True) if pair[0] != "asked_at"]
        return f"{PATH}?{urlencode([*pairs, ('asked_at', asked_at)])}"


def address(form: bytes) -> str:
    """Where a form with these fields leads by GET. Raises `BadAuthorizationRequest`."""
    try:
        query = urlencode(forms.parsed(form))
    except BadForm:
        raise BadAuthorizationRequest from None
    return f"{PATH}?{Asked.read(query).query}"


def of_path(path: str) -> Asked | None:
    """The request in an own path that leads here; None for any other path."""
    parts = urlsplit(path)
    if parts.path != PATH:
        return None
    try:
        return Asked.read(parts.query)
    except BadAuthorizationRequest:
        return None

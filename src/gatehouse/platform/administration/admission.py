"""ASGI middleware in front of administration. It identifies the caller and applies maintenance mode, the rate limit,
the IP allowlist and the body limit before any application code runs (docs/rate-limits.md). It does not refuse a bad
credential: the routes decide which paths need one."""

import time
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gatehouse.engine import pipeline
from gatehouse.engine.exchange import ClientLeft, Received
from gatehouse.engine.ports import Counters, Ports
from gatehouse.engine.stages.callers import (
    authenticate,
    ip_allowlist,
    maintenance,
    rate_limit,
    scope,
)
from gatehouse.engine.stages.callers.rate_limit import LimitResult
from gatehouse.foundation.deadlines import Deadlines
from gatehouse.foundation.errors import Refusal, Unauthenticated
from gatehouse.foundation.http import forms
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.http.forms import BadForm
from gatehouse.foundation.http.handlers import ErrorResponses
from gatehouse.foundation.http.middleware.added_headers import add_missing_headers
from gatehouse.foundation.http.middleware.replay import replay
from gatehouse.foundation.identity import Caller
from gatehouse.foundation.storage.away import DATABASE_UNAVAILABLE_ERRORS
from gatehouse.ingress import receive as receiving
from gatehouse.ingress.credentials import credential_of
from gatehouse.ingress.gateway import CLIENT_LEFT, Observe
from gatehouse.ingress.receive import RequestBody

#: The `state` of the ASGI scope.
State: TypeAlias = dict[str, Any]

LOGIN_PATH: Final = "/api/auth/login"

#: Path prefixes that answer during maintenance: probes, the endpoints needed to end it (a machine starts at the token
#: endpoint), and the published keys with which other systems verify tokens and signatures.
MAINTENANCE_EXEMPT_PREFIXES: Final = (
    "/.well-known/", "/api/saml/metadata", "/oauth/token",
    "/health", "/api/health/", "/metrics", "/api/admin/system/", LOGIN_PATH, "/api/auth/refresh",
    "/api/auth/mfa/verify", "/api/auth/mfa/webauthn/assert/", "/api/auth/session/token", "/console", "/login",
    "/logout",
)  # fmt: skip

#: The endpoints that verify a second factor. With `bypass_for_mfa` a fresh second factor bypasses the IP allowlist, so
#: these paths must be reachable from any address.
MFA_VERIFICATION_PATHS: Final = frozenset(
    {"/api/auth/mfa/verify", "/api/auth/mfa/webauthn/assert/begin", "/api/auth/mfa/webauthn/assert/finish"}
)

#: Body limit in bytes of a request without a valid credential: its body is buffered and parsed before the 401.
_MAX_ANONYMOUS_BODY_BYTES: Final = 1024 * 1024
_MAX_LOGIN_BODY_BYTES: Final = 64 * 1024

_METHODS_WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Admission:
    """The middleware. `tries` counts sign-in attempts across all workers, `ports.counters` all other requests."""

    def __init__(
        self,
        app: ASGIApp,
        ports: Ports,
        *,
        tries: Counters,
        addresses: ClientAddresses,
        responses: ErrorResponses,
        max_request_bytes: int,
        body_timeout_seconds: float,
        observe: Observe = lambda *_: None,
    ) -> None:
        self._app = app
        self._ports = ports
        self._tries = tries
        self._addresses = addresses
        self._responses = responses
        self._max_request_bytes = max_request_bytes
        self._deadlines = Deadlines(body_timeout_seconds)
        self._observe = observe
        #: what administration does in each step of the pipeline up to the caller's, in order; None where the routes do
        #: it
        self._checks = pipeline.table(
            pipeline.ADMINISTRATION,
            {
                maintenance.check: self._check_maintenance,
                authenticate.identify: self._identify,
                rate_limit.check: self._count,
                ip_allowlist.check: self._check_address,
                scope.check: None,
            },
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        received = receiving.read_head(scope, self._addresses)
        state = scope.setdefault("state", {})
        # Responses contain tokens, keys shown once, and personal data: no cache on the way may store them.
        response_headers = {"X-Request-Id": received.request_id, "Cache-Control": "no-store"}
        state.update(
            received=received,
            request_id=received.request_id,
            client_address=received.client_address,
            response_headers=response_headers,
        )
        status = CLIENT_LEFT

        async def with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                add_missing_headers(message, response_headers)
            await send(message)

        try:
            try:
                for check in self._checks:
                    if check is not None:
                        await check(received, state, receive)
                receive = await self._bounded(received, state, receive)
            except ClientLeft:
                return
            except Refusal as error:
                await self._responses.to(scope, error)(scope, receive, with_headers)
                return
            except DATABASE_UNAVAILABLE_ERRORS as error:
                answer = await self._responses.database_away(Request(scope), error)
                await answer(scope, receive, with_headers)
                return
            await self._app(scope, receive, with_headers)
        finally:
            self._observe(received.method, _route(scope), status, time.monotonic() - received.started)

    async def _check_maintenance(self, x: Received, state: State, receive: Receive) -> None:
        if not x.path.startswith(MAINTENANCE_EXEMPT_PREFIXES):
            pipeline.obey(maintenance.check(x, self._ports))

    async def _identify(self, x: Received, state: State, receive: Receive) -> None:
        """Put `caller` or `refused_credential` into the state; neither if the request has no credential."""
        if credential_of(x) is None:
            return
        try:
            state["caller"] = self._ports.credentials.identify(x)
        except Unauthenticated as error:
            state["refused_credential"] = error

    async def _count(self, x: Received, state: State, receive: Receive) -> None:
        """Count the request against its rate limit. Raises `RateLimited`."""
        rate, refusal = await self._counted(x, state, receive)
        state["rate"] = rate
        if rate is not None:
            state["response_headers"].update(rate.headers())
        if refusal is not None:
            raise refusal

    async def _counted(self, x: Received, state: State, receive: Receive) -> LimitResult:
        caller, limits, path = state.get("caller"), self._ports.limits, x.path.removesuffix("/")
        if x.method != "POST" or not _is_sign_in_attempt(path, caller):
            return await rate_limit.take(x, caller, limits, self._ports.counters)
        email_of = _EMAIL_PARSERS.get(path)
        if email_of is None:
            return await rate_limit.take(x, caller, limits, self._tries)
        # The body names the account. It is read here and replayed to the route.
        body = await RequestBody(x, receive, _MAX_LOGIN_BODY_BYTES, self._deadlines).read()
        state["body"] = body
        return await rate_limit.take_login(email_of(body), x.client_address, limits, self._tries)

    async def _check_address(self, x: Received, state: State, receive: Receive) -> None:
        """Check the caller's address. Raises `AddressNotAllowed`."""
        caller: Caller | None = state.get("caller")
        if caller is None or caller.tenant_id is None:
            return
        policy = await self._ports.policies.current(caller.tenant_id)
        if policy.ip_bypass_for_mfa and x.path.removesuffix("/") in MFA_VERIFICATION_PATHS:
            return
        refusal = ip_allowlist.refused(x, caller, policy)
        if refusal is not None:
            raise refusal

    async def _bounded(self, x: Received, state: State, receive: Receive) -> Receive:
        """Read the body and return a `receive` that replays it. Raises the 413 for a body over the limit."""
        body = state.pop("body", None)
        if body is None:
            if x.method in _METHODS_WITHOUT_BODY:
                return receive
            limit = (
                self._max_request_bytes
                if "caller" in state
                else min(self._max_request_bytes, _MAX_ANONYMOUS_BODY_BYTES)
            )
            body = await RequestBody(x, receive, limit, self._deadlines).read()
        return replay(body, receive)


def _email_of_form(body: bytes) -> str | None:
    """Return the e-mail address in the sign-in page's form, parsed as the page parses it; None if there is none."""
    try:
        email = forms.parse_form(body).get("email")
    except BadForm:
        return None
    return email if rate_limit.is_name(email) else None


#: Parsers of the account's e-mail address, by the path that checks passwords. Both paths share the same counts.
_EMAIL_PARSERS: Final[dict[str, Callable[[bytes], str | None]]] = {
    LOGIN_PATH: rate_limit.email_of,
    "/login": _email_of_form,
}
#: Paths limited by client address, with or without a credential (`engine.rate_limits.selection`).
_LIMITED_BY_ADDRESS: Final = frozenset({*_EMAIL_PARSERS, "/api/auth/register", "/api/auth/refresh"})
#: Paths where a request without a credential can try passwords, second factors, one-time tokens and client secrets.
_AUTHENTICATION_PREFIXES: Final = ("/api/auth/", "/login/", "/oauth/token")


def _is_sign_in_attempt(path: str, caller: Caller | None) -> bool:
    """Return whether a POST is a sign-in attempt. Those are counted across all workers, with or without Redis."""
    return path in _LIMITED_BY_ADDRESS or (caller is None and path.startswith(_AUTHENTICATION_PREFIXES))


def _route(scope: Scope) -> str:
    """Return the template of the matched route. Metrics use it because the number of paths is unbounded."""
    return getattr(scope.get("route"), "path", None) or "unmatched"

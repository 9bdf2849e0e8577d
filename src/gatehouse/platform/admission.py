"""In front of administration: who calls and whether there is room, before any application logic (reference 1, Rate
limiting, 1). It answers nobody for a bad credential: which paths need one is the routes' affair."""

import time
from collections.abc import Callable
from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gatehouse.engine.exchange import ClientLeft, Received
from gatehouse.engine.ports import Counters, Ports
from gatehouse.engine.stages import ip_allowlist, maintenance, rate_limit
from gatehouse.engine.stages.rate_limit import Toll
from gatehouse.engine.verdict import Refuse
from gatehouse.foundation.deadlines import Deadlines
from gatehouse.foundation.errors import Refusal, Unauthenticated
from gatehouse.foundation.http import forms
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.http.forms import BadForm
from gatehouse.foundation.http.handlers import ErrorResponses
from gatehouse.foundation.http.leaving import complete
from gatehouse.foundation.http.replay import replay
from gatehouse.foundation.identity import Caller
from gatehouse.foundation.storage.away import DATABASE_AWAY
from gatehouse.ingress import receive as receiving
from gatehouse.ingress.credentials import presented
from gatehouse.ingress.gateway import CLIENT_LEFT, Observe
from gatehouse.ingress.receive import Body

LOGIN: Final = "/api/auth/login"

#: What must answer in maintenance too: probes, the way to end it (a machine's begins at the token endpoint), and the
#: published keys, with which others verify tokens and signatures.
OPEN_IN_MAINTENANCE: Final = (
    "/.well-known/", "/api/saml/metadata", "/oauth/token",
    "/health", "/api/health/", "/metrics", "/api/admin/system/", LOGIN, "/api/auth/refresh", "/api/auth/mfa/verify",
    "/api/auth/mfa/webauthn/assert/", "/login", "/logout",
)  # fmt: skip

#: How a second factor is shown: where it lets in from anywhere (`bypass_for_mfa`), these must be reached without it.
STEPPING_UP: Final = frozenset(
    {"/api/auth/mfa/verify", "/api/auth/mfa/webauthn/assert/begin", "/api/auth/mfa/webauthn/assert/finish"}
)

#: What is read of a body before anybody has shown a credential: it is held, and parsed, before the 401.
_STRANGERS_BYTES: Final = 1024 * 1024

_WITHOUT_A_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Admission:
    def __init__(
        self,
        behind: ASGIApp,
        ports: Ports,
        *,
        tries: Counters,
        addresses: ClientAddresses,
        responses: ErrorResponses,
        max_request_bytes: int,
        body_timeout_seconds: float,
        observe: Observe = lambda *_: None,
    ) -> None:
        self._behind = behind
        self._ports = ports
        self._tries = tries
        self._addresses = addresses
        self._responses = responses
        self._max_request_bytes = max_request_bytes
        self._deadlines = Deadlines(body_timeout_seconds)
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._behind(scope, receive, send)
            return
        received = receiving.head(scope, self._addresses)
        state = scope.setdefault("state", {})
        # Answers hold tokens, keys shown once, and who is who: nothing between here and the caller keeps them.
        told = {"X-Request-Id": received.request_id, "Cache-Control": "no-store"}
        state.update(
            received=received, request_id=received.request_id, client_address=received.client_address, told=told
        )
        status = CLIENT_LEFT

        async def with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                complete(message, told)
            await send(message)

        try:
            try:
                receive = await self._admit(received, state, told, receive)
            except ClientLeft:
                return
            except Refusal as error:
                await self._responses.to(scope, error)(scope, receive, with_headers)
                return
            except DATABASE_AWAY as error:
                answer = await self._responses.database_away(Request(scope), error)
                await answer(scope, receive, with_headers)
                return
            await self._behind(scope, receive, with_headers)
        finally:
            self._observe(received.method, _route(scope), status, time.monotonic() - received.started)

    async def _admit(self, x: Received, state: dict[str, object], told: dict[str, str], receive: Receive) -> Receive:
        """Puts `caller` or `refused_credential` into the state. Raises whatever refuses the request."""
        if not x.path.startswith(OPEN_IN_MAINTENANCE):
            verdict = maintenance.check(x, self._ports)
            if isinstance(verdict, Refuse):
                raise verdict.error
        caller = self._caller(x, state)
        rate, refused = await self._toll(x, caller, state, receive)
        state["rate"] = rate
        if rate is not None:
            told.update(rate.headers())
        if refused is not None:
            raise refused
        if caller is not None and caller.tenant_id is not None:
            await self._check_address(x, caller)
        return await self._bounded(x, state, receive)

    def _caller(self, x: Received, state: dict[str, object]) -> Caller | None:
        if presented(x) is None:
            return None
        try:
            caller = self._ports.credentials.identify(x)
        except Unauthenticated as error:
            state["refused_credential"] = error
            return None
        state["caller"] = caller
        return caller

    async def _toll(self, x: Received, caller: Caller | None, state: dict[str, object], receive: Receive) -> Toll:
        limits, path = self._ports.limits, x.path.removesuffix("/")
        if x.method != "POST" or not _trying(path, caller):
            return await rate_limit.take(x, caller, limits, self._ports.counters)
        email_of = _SIGN_INS.get(path)
        if email_of is None:
            return await rate_limit.take(x, caller, limits, self._tries)
        # Whose account is tried stands in the body, which is read here and handed on.
        body = await Body(x, receive, 64 * 1024, self._deadlines).read()
        state["body"] = body
        return await rate_limit.take_login(email_of(body), x.client_address, limits, self._tries)

    async def _check_address(self, x: Received, caller: Caller) -> None:
        assert caller.tenant_id is not None
        policy = await self._ports.policies.current(caller.tenant_id)
        if policy.ip_bypass_for_mfa and x.path.removesuffix("/") in STEPPING_UP:
            return
        refused = ip_allowlist.refused(x, caller, policy)
        if refused is not None:
            raise refused

    async def _bounded(self, x: Received, state: dict[str, object], receive: Receive) -> Receive:
        """Hands on the body, which administration reads whole: so its bound is looked at here, where it can be 413."""
        known = state.pop("body", None)
        if known is None:
            if x.method in _WITHOUT_A_BODY:
                return receive
            limit = self._max_request_bytes if "caller" in state else min(self._max_request_bytes, _STRANGERS_BYTES)
            known = await Body(x, receive, limit, self._deadlines).read()
        return replay(known, receive)


def _email_of_form(body: bytes) -> str | None:
    """As `rate_limit.email_of` reads the API's body, by the parser of the page behind this."""
    try:
        named = forms.parsed(body).get("email")
    except BadForm:
        return None
    return named if rate_limit.is_name(named) else None


#: Where passwords are tried, and whose account a body says. Both enter the same counts.
_SIGN_INS: Final[dict[str, Callable[[bytes], str | None]]] = {LOGIN: rate_limit.email_of, "/login": _email_of_form}
#: Limited whoever calls (`engine.limits`).
_BY_ADDRESS: Final = frozenset({*_SIGN_INS, "/api/auth/register", "/api/auth/refresh"})
#: Where a stranger tries passwords, second factors, one-time tokens and clients' secrets.
_STRANGERS_TRY: Final = ("/api/auth/", "/login/", "/oauth/token")


def _trying(path: str, caller: Caller | None) -> bool:
    """Whether a POST tries to get in. Those are counted where all workers count together, Redis or not."""
    return path in _BY_ADDRESS or (caller is None and path.startswith(_STRANGERS_TRY))


def _route(scope: Scope) -> str:
    """The template of the route that answered: of those there are few, of paths as many as clients make up."""
    return getattr(scope.get("route"), "path", None) or "unmatched"

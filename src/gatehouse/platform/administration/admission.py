"""Admits requests to the administration API before any application code runs. Identifies the caller, and applies
maintenance mode, the rate limit, the IP allowlist and the body limit (docs/rate-limits.md).

A bad credential is not refused here, because the routes decide which paths need a credential."""

from collections.abc import Callable
from typing import Final

from gatehouse.administration.shell import Arrival
from gatehouse.engine import pipeline
from gatehouse.engine.exchange import Received
from gatehouse.engine.ports import Counters, Ports
from gatehouse.engine.stages.callers import (
    authenticate,
    ip_allowlist,
    maintenance,
    rate_limit,
    scope,
)
from gatehouse.engine.stages.callers.rate_limit import LimitResult
from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.http import forms
from gatehouse.foundation.http.forms import BadForm
from gatehouse.foundation.identity import Caller
from gatehouse.ingress.credentials import credential_of

LOGIN_PATH: Final = "/api/auth/login"
FORGOT_PATH: Final = "/api/auth/password/forgot"

#: Path prefixes that are served during maintenance: probes, the endpoints that are needed to end it, and the published
#: keys with which other systems verify tokens and signatures. A machine that ends the maintenance begins at the token
#: endpoint.
MAINTENANCE_EXEMPT_PREFIXES: Final = (
    "/.well-known/", "/api/saml/metadata", "/oauth/token",
    "/health", "/api/health/", "/metrics", "/api/admin/system/", LOGIN_PATH, "/api/auth/refresh",
    "/api/auth/mfa/verify", "/api/auth/mfa/webauthn/assert/", "/api/auth/session/token", "/console", "/login",
    "/logout",
)  # fmt: skip

#: The endpoints that verify a second factor. With `bypass_for_mfa`, a fresh second factor bypasses the IP allowlist, so
#: these paths must be reachable from any address.
MFA_VERIFICATION_PATHS: Final = frozenset(
    {"/api/auth/mfa/verify", "/api/auth/mfa/webauthn/assert/begin", "/api/auth/mfa/webauthn/assert/finish"}
)

#: Maximum body size of a request without a valid credential, because the body is buffered and parsed before the 401.
_MAX_ANONYMOUS_BODY_BYTES: Final = 1024 * 1024
_MAX_LOGIN_BODY_BYTES: Final = 64 * 1024


class Admission:
    """Checks a request before its body is read. `tries` counts sign-in attempts across all workers; `ports.counters`
    counts all other requests."""

    def __init__(self, ports: Ports, *, tries: Counters) -> None:
        self._ports = ports
        self._tries = tries
        #: the check for each step of `pipeline.ADMINISTRATION`, in order; None for a step that the routes perform
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

    async def admit(self, arrival: Arrival[Received]) -> None:
        """Run the checks. Raises the refusal of the first check that refuses. Sets `received` in the state; `_identify`
        and `_count` set further keys."""
        arrival.state["received"] = arrival.head
        for check in self._checks:
            if check is not None:
                await check(arrival)
        if "caller" not in arrival.state:
            arrival.body.limit = min(arrival.body.limit, _MAX_ANONYMOUS_BODY_BYTES)

    async def _check_maintenance(self, arrival: Arrival[Received]) -> None:
        if not arrival.head.path.startswith(MAINTENANCE_EXEMPT_PREFIXES):
            pipeline.obey(maintenance.check(arrival.head, self._ports))

    async def _identify(self, arrival: Arrival[Received]) -> None:
        """Set `caller` or `refused_credential` in the state. Sets neither if the request has no credential."""
        if credential_of(arrival.head) is None:
            return
        try:
            arrival.state["caller"] = self._ports.credentials.identify(arrival.head)
        except Unauthenticated as error:
            arrival.state["refused_credential"] = error

    async def _count(self, arrival: Arrival[Received]) -> None:
        """Count the request against its rate limit, and set `rate` in the state. Raises `RateLimited`."""
        rate, refusal = await self._counted(arrival)
        arrival.state["rate"] = rate
        if rate is not None:
            arrival.response_headers.update(rate.headers())
        if refusal is not None:
            raise refusal

    async def _counted(self, arrival: Arrival[Received]) -> LimitResult:
        x, caller, limits = arrival.head, arrival.state.get("caller"), self._ports.limits
        path = x.path.removesuffix("/")
        if x.method != "POST" or not _is_sign_in_attempt(path, caller):
            return await rate_limit.take(x, caller, limits, self._ports.counters)
        email_of = _EMAIL_PARSERS.get(path)
        if email_of is None:
            return await rate_limit.take(x, caller, limits, self._tries)
        # The e-mail address of the account is in the body, so the body must be read first.
        arrival.body.limit = _MAX_LOGIN_BODY_BYTES
        email = email_of(await arrival.read_body())
        return await rate_limit.take_login(email, x.client_address, limits, self._tries)

    async def _check_address(self, arrival: Arrival[Received]) -> None:
        """Check the address of the caller. Raises `AddressNotAllowed`."""
        x = arrival.head
        caller: Caller | None = arrival.state.get("caller")
        if caller is None or caller.tenant_id is None:
            return
        policy = await self._ports.policies.current(caller.tenant_id)
        if policy.ip_bypass_for_mfa and x.path.removesuffix("/") in MFA_VERIFICATION_PATHS:
            return
        refusal = ip_allowlist.refused(x, caller, policy)
        if refusal is not None:
            raise refusal


def _email_of_form(body: bytes) -> str | None:
    """Return the e-mail address in the form of the sign-in page, parsed as the page parses it, or None if there is
    none."""
    try:
        email = forms.parse_form(body).get("email")
    except BadForm:
        return None
    return email if rate_limit.is_name(email) else None


#: Functions that extract the account's e-mail address from a body, by path. All paths share the same counters.
_EMAIL_PARSERS: Final[dict[str, Callable[[bytes], str | None]]] = {
    LOGIN_PATH: rate_limit.email_of,
    "/login": _email_of_form,
    # Each request to these two paths sends a mail to the address.
    FORGOT_PATH: rate_limit.email_of,
    "/login/forgot": _email_of_form,
}
#: Paths that are limited by client address, with or without a credential (`engine.rate_limits.selection`).
_LIMITED_BY_ADDRESS: Final = frozenset({*_EMAIL_PARSERS, "/api/auth/register", "/api/auth/refresh"})
#: Path prefixes at which a request without a credential can try passwords, second factors, one-time tokens and client
#: secrets.
_AUTHENTICATION_PREFIXES: Final = ("/api/auth/", "/login/", "/oauth/token")


def _is_sign_in_attempt(path: str, caller: Caller | None) -> bool:
    """Return whether a POST is a sign-in attempt. Sign-in attempts are counted across all workers, with or without
    Redis."""
    return path in _LIMITED_BY_ADDRESS or (caller is None and path.startswith(_AUTHENTICATION_PREFIXES))

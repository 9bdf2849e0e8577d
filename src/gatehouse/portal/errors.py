"""Errors of authentication and limits, raised before a route is called (docs/errors.md)."""

from gatehouse.foundation.clock import iso
from gatehouse.foundation.counters import RateDecision
from gatehouse.foundation.errors import Forbidden, NotFound, TooManyRequests, Unauthenticated


class AdminKeyMissing(Unauthenticated):
    message = "This needs the portal's admin key in X-API-Key."

    def __init__(self) -> None:
        super().__init__(headers={"WWW-Authenticate": "ApiKey"})


class TokenMissing(Unauthenticated):
    message = "This needs an organization's token: Authorization: Bearer <token>."


class ArrivalMissing(Unauthenticated):
    message = "This needs the partial token of a sign-in: GET /v1/auth/sso/login?redirect_uri=/invitation."


class NoPerson(Forbidden):
    message = "This token belongs to no person: the admin key issued it."


class CertificateMissing(Unauthenticated):
    message = "This needs an outpost's token, signed with its certificate's key: Authorization: Bearer <token>."


class CertificateNotShown(Unauthenticated):
    message = "Show the token's certificate in the TLS handshake too."


class PlatformTokenMissing(Unauthenticated):
    message = "This needs a token of the platform's: Authorization: Bearer <token>."


class TokenRevoked(Forbidden):
    message = "The token was revoked."


class AnotherOrganization(Forbidden):
    message = "The token is another organization's."


class CertificateRevoked(Forbidden):
    message = "The outpost's certificate was revoked, or another one has taken its place."


class AdminsOnly(Forbidden):
    message = "This needs an administrator of the organization."


class PortalOrganizationNotFound(NotFound):
    message = "Organization not found"


class LimitExceeded(TooManyRequests):
    """None of the minute's `limit` requests is left; the next one is admitted at `reset_at`."""

    def __init__(self, decision: RateDecision) -> None:
        super().__init__(
            f"More than {decision.rate.limit} requests a minute.",
            headers={"Retry-After": str(decision.retry_after), **decision.rate.headers()},
            limit=decision.rate.limit,
            reset_at=iso(decision.rate.reset),
        )

"""Errors of authentication and rate limits. They are raised before a route is called (docs/errors.md)."""

from gatehouse.foundation.clock import iso
from gatehouse.foundation.counters import RateDecision
from gatehouse.foundation.errors import Forbidden, NotFound, TooManyRequests, Unauthenticated


class AdminKeyMissing(Unauthenticated):
    message = "This operation needs the portal's admin key in the header X-API-Key."

    def __init__(self) -> None:
        super().__init__(headers={"WWW-Authenticate": "ApiKey"})


class TokenMissing(Unauthenticated):
    message = "This operation needs a token of an organization: Authorization: Bearer <token>."


class ArrivalMissing(Unauthenticated):
    message = "This operation needs the partial token of GET /v1/auth/sso/login?redirect_uri=/invitation."


class NoPerson(Forbidden):
    message = "This operation needs a member's token, and the admin key issued this one."


class CertificateMissing(Unauthenticated):
    message = "This operation needs a token that an outpost has signed: Authorization: Bearer <token>."


class CertificateNotShown(Unauthenticated):
    message = "Present the token's certificate in the TLS handshake, too."


class PlatformTokenMissing(Unauthenticated):
    message = "This operation needs a token of the platform: Authorization: Bearer <token>."


class RevokedToken(Forbidden):
    message = "The token was revoked."


class AnotherOrganization(Forbidden):
    message = "The token belongs to another organization."


class CertificateRevoked(Forbidden):
    message = "The outpost's certificate was revoked, or was replaced by another one."


class AdminsOnly(Forbidden):
    message = "This operation needs an administrator of the organization."


class PortalOrganizationNotFound(NotFound):
    message = "Organization not found"


class LimitExceeded(TooManyRequests):
    """The caller has sent `limit` requests in the last minute. The next one is admitted at `reset_at`."""

    def __init__(self, decision: RateDecision) -> None:
        super().__init__(
            f"More than {decision.rate.limit} requests a minute.",
            headers={"Retry-After": str(decision.retry_after), **decision.rate.headers()},
            limit=decision.rate.limit,
            reset_at=iso(decision.rate.reset),
        )

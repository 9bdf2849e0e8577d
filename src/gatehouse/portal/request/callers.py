"""Types of authenticated callers for the signatures of routes. A route with such a parameter is called only after the
checks for 401, for 403, and for the 404 of the organization.

    AdminKey           the portal's admin key; an organization in the path exists and is not cancelled
    AdminKeyOfAny      the portal's admin key; an organization in the path exists and may be cancelled
    OrgMember          any token of the organization, of a member or issued by the admin key
    OrgAdmin           a token of an administrator of the organization
    KeyOrOrgMember     the admin key, or any token of the organization
    KeyOrOrgAdmin      the admin key, or a token of an administrator
    OutpostCaller      an outpost, by a certificate that the portal has issued
    PlatformCaller     the platform, by a token that it has signed for the portal
    SignedIn           as OrgMember; requests from the portal's own pages may send the session cookie instead
    Arrived            a person who has signed in, by a partial token or as a member; pages may send cookies instead
    JustArrived        a person by a partial token only, so that the platform has just confirmed the address

Only `_check_organization` checks the organization in a path. A route declares its caller first, because dependencies
are solved in the order of the parameters.
"""

import hmac
from collections.abc import Callable
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from cryptography.hazmat.primitives.serialization import Encoding
from fastapi import Depends, Request

from gatehouse.foundation.certificates import x5c
from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.jwt import ExpiredToken, InvalidToken
from gatehouse.foundation.secrets.tokens import bearer_token, digest
from gatehouse.ingress.protocol import has_certificate
from gatehouse.portal.errors import (
    AdminKeyMissing,
    AdminsOnly,
    AnotherOrganization,
    ArrivalMissing,
    CertificateMissing,
    CertificateNotShown,
    CertificateRevoked,
    LimitExceeded,
    NoPerson,
    PlatformTokenMissing,
    PortalOrganizationNotFound,
    RevokedToken,
    TokenMissing,
)
from gatehouse.portal.host import PortalHost, TheHost
from gatehouse.portal.identity import REQUESTS_PER_MINUTE, OrgId, PortalCaller, PortalCallerKind, shown_role
from gatehouse.portal.platform_link.openid_provider import Person
from gatehouse.portal.request import browser
from gatehouse.portal.status_cache import TokenStatus, of_certificate, person_of

#: Maximum number of wrong credentials from one address in a minute.
MAX_FAILURES_PER_MINUTE: Final = 60
#: Maximum number of calls a minute of one person with partial tokens. They do not count for an organization.
_PARTIAL_CALLS_PER_MINUTE: Final = 60
#: Maximum number of calls a minute of one outpost.
_OUTPOST_CALLS_PER_MINUTE: Final = 60
#: The claim `token_type` of the platform's tokens for notices. Other tokens of the platform are refused.
PLATFORM_NOTICE: Final = "platform_notice"


async def failed_attempt(request: Request, host: PortalHost, error: Unauthenticated) -> Exception:
    """Counts a wrong credential for the client's address. Returns the error to raise: `error`, or `LimitExceeded` if
    the address has sent too many."""
    decision = await host.counters.take(f"ip:{request.scope['state']['client_address']}", MAX_FAILURES_PER_MINUTE)
    return error if decision.allowed else LimitExceeded(decision)


async def _any_admin_key(request: Request, host: TheHost) -> PortalCaller:
    """Returns the caller with the admin key. An organization in the path must exist, but may be cancelled."""
    key_text = request.headers.get("x-api-key", "")
    key_digest = digest(key_text)
    # Compare all keys, each in constant time.
    matches = [hmac.compare_digest(key_digest, key) for key in host.admin_keys]
    if True not in matches:
        raise await failed_attempt(request, host, AdminKeyMissing())
    caller = PortalCaller(kind=PortalCallerKind.ADMIN_KEY, id=f"sha256:{key_digest.hex()[:12]}", role="admin")
    org_id = _path_org_id(request)
    if org_id is None:
        return _store_caller(request, caller)
    if await host.token_statuses.of(org_id) is None:
        raise PortalOrganizationNotFound
    return _store_caller(request, caller, org_id)


async def _admin_key(
    request: Request, host: TheHost, caller: Annotated[PortalCaller, Depends(_any_admin_key)]
) -> PortalCaller:
    if caller.org_id is not None:
        _check_organization(caller.org_id, request, await host.token_statuses.of(caller.org_id))
    return caller


async def _bearer(request: Request, host: PortalHost, missing: Unauthenticated) -> str:
    token = bearer_token(request.headers)
    if not token:
        raise await failed_attempt(request, host, missing)
    return token


async def _org_member(request: Request, host: TheHost) -> PortalCaller:
    return await caller_of_token(request, host, await _bearer(request, host, TokenMissing()))


async def caller_of_token(request: Request, host: PortalHost, token: str) -> PortalCaller:
    """Returns the caller with this organization token, which the request has sent in a header or a cookie. Raises the
    same errors as `OrgMember`."""
    try:
        caller, issued_at = _caller_of_claims(await host.keys.verify(token))
    except ExpiredToken:
        # An expired token was valid once, so it is not counted as a guess.
        raise
    except Unauthenticated as error:
        raise await failed_attempt(request, host, error) from None
    org_id = caller.org_id
    assert org_id is not None
    token_status = await host.token_statuses.of(org_id, caller.jti or "", caller.member_id)
    if token_status is None or _revoked(token_status, issued_at, caller):
        raise RevokedToken
    decision = await host.counters.take(f"org:{org_id}", REQUESTS_PER_MINUTE[token_status.plan])
    if not decision.allowed:
        raise LimitExceeded(decision)
    request.scope["state"]["response_headers"].update(decision.rate.headers())
    _check_organization(org_id, request, token_status)
    if token_status.role is not None:
        # The member's role may have changed since the token was issued.
        caller = msgspec.structs.replace(caller, role=shown_role(token_status.role))
    return _store_caller(request, caller, org_id)


async def _org_admin(caller: Annotated[PortalCaller, Depends(_org_member)]) -> PortalCaller:
    if caller.role != "admin":
        raise AdminsOnly
    return caller


async def _key_or_org_member(request: Request, host: TheHost) -> PortalCaller:
    if "x-api-key" in request.headers:
        return await _admin_key(request, host, await _any_admin_key(request, host))
    return await _org_member(request, host)


async def _key_or_org_admin(caller: Annotated[PortalCaller, Depends(_key_or_org_member)]) -> PortalCaller:
    return await _org_admin(caller)


async def _outpost(request: Request, host: TheHost) -> PortalCaller:
    token = await _bearer(request, host, CertificateMissing())
    try:
        verified = x5c.verify(
            token, await host.authorities.trusted(), audience=host.settings.issuer, now=host.clock.now()
        )
        certificate = await of_certificate(host.database, verified.serial)
        # The outpost chooses the subject of the token, so compare it with the outpost to which the portal has issued
        # the certificate.
        if certificate is None or verified.subject != str(certificate.outpost_id):
            raise InvalidToken
        # If the listener requests client certificates, the connection must have the token's certificate, so that a
        # stolen token is useless on another connection.
        if not has_certificate(request.scope, x5c.certificate_of(token).public_bytes(Encoding.DER)):
            raise CertificateNotShown
    except Unauthenticated as error:
        raise await failed_attempt(request, host, error) from None
    if not certificate.good:
        raise CertificateRevoked
    decision = await host.counters.take(f"outpost:{certificate.outpost_id}", _OUTPOST_CALLS_PER_MINUTE)
    if not decision.allowed:
        raise LimitExceeded(decision)
    _check_organization(certificate.org_id, request, await host.token_statuses.of(certificate.org_id))
    return _store_caller(
        request, PortalCaller(kind=PortalCallerKind.OUTPOST, id=str(certificate.outpost_id)), certificate.org_id
    )


async def _platform(request: Request, host: TheHost) -> PortalCaller:
    token = await _bearer(request, host, PlatformTokenMissing())
    try:
        claims = await host.platform_keys.verify(token, audience=host.settings.issuer)
        if claims.get("token_type") != PLATFORM_NOTICE:
            raise InvalidToken
    except Unauthenticated as error:
        raise await failed_attempt(request, host, error) from None
    return _store_caller(request, PortalCaller(kind=PortalCallerKind.PLATFORM, id=str(claims["iss"])))


async def _signed_in(request: Request, host: TheHost) -> PortalCaller:
    return await caller_of_token(request, host, await presented_token(request, host, browser.SESSION_COOKIE))


async def _arrived(request: Request, host: TheHost) -> Person:
    token = await presented_token(request, host, browser.PARTIAL_COOKIE, browser.SESSION_COOKIE)
    try:
        return await person_of_partial_token(host, token)
    except InvalidToken:
        person = await person_of(host.database, await caller_of_token(request, host, token))
    if person is None:
        raise NoPerson
    return person


async def _just_arrived(request: Request, host: TheHost) -> Person:
    try:
        return await person_of_partial_token(host, await presented_token(request, host, browser.PARTIAL_COOKIE))
    except Unauthenticated:
        raise await failed_attempt(request, host, ArrivalMissing()) from None


async def person_of_partial_token(host: PortalHost, token: str) -> Person:
    """Returns the person of a partial token. Raises `InvalidToken`, `ExpiredToken`, `LimitExceeded`."""
    claims = await host.keys.verify(token, audience=_partial_audience(host))
    person = Person(
        claims["sub"],
        UUID(claims["tenant_id"]),
        claims["email"],
        signed_in_at=claims["auth_time"],
        email_verified=claims["email_verified"],
        next=claims["next"],
    )
    decision = await host.counters.take(f"person:{person.tenant_id}:{person.sub}", _PARTIAL_CALLS_PER_MINUTE)
    if not decision.allowed:
        raise LimitExceeded(decision)
    return person


async def partial_token(host: PortalHost, person: Person, *, lifetime_seconds: int) -> str:
    """Returns a partial token for the person. `person_of_partial_token` reads it."""
    claims = {
        "sub": person.sub,
        "tenant_id": str(person.tenant_id),
        "email": person.email,
        "auth_time": person.signed_in_at,
        "email_verified": person.email_verified,
        "next": person.next,
    }
    return await host.keys.sign(claims, lifetime_seconds=lifetime_seconds, audience=_partial_audience(host))


def _partial_audience(host: PortalHost) -> str:
    """Returns the audience of partial tokens. The endpoints of organizations do not accept tokens with it."""
    return f"{host.settings.issuer}#arrived"


async def presented_token(request: Request, host: PortalHost, *cookies: str) -> str:
    """Returns the bearer token, else the value of the first of `cookies` that the request has. Raises `TokenMissing`,
    `ForeignRequest`."""
    if "authorization" not in request.headers:
        cookie_values = [value for cookie in cookies if (value := browser.cookie_value(request, host, cookie))]
        if cookie_values:
            browser.require_own_page(request, host)
            return cookie_values[0]
    return await _bearer(request, host, TokenMissing())


def _check_organization(org_id: OrgId, request: Request, token_status: TokenStatus | None) -> None:
    """Checks the organization of the credential. Raises `AnotherOrganization` if the path contains the id of another
    organization, and `PortalOrganizationNotFound` if the organization is cancelled."""
    if "org_id" in request.path_params and _path_org_id(request) != org_id:
        raise AnotherOrganization
    if token_status is None or not token_status.active:
        raise PortalOrganizationNotFound


def _path_org_id(request: Request) -> OrgId | None:
    """Returns the id of the organization in the path. Returns None if the path has no organization, or a text that is
    not an id."""
    try:
        return TenantId(UUID(str(request.path_params["org_id"])))
    except (KeyError, ValueError):
        return None


def _caller_of_claims(claims: dict[str, Any]) -> tuple[PortalCaller, float]:
    """Returns the caller that a token names, and the Unix time of its issue. Raises `InvalidToken`."""
    try:
        jti, issued_at, member = str(claims["jti"]), float(claims["iat"]), claims.get("uid")
        org_id, member_id = TenantId(UUID(claims["sub"])), None if member is None else UUID(member)
        signed_in_at = int(claims.get("auth_time", issued_at))
    except (KeyError, ValueError, TypeError, AttributeError):
        raise InvalidToken from None
    caller = PortalCaller(
        kind=PortalCallerKind.ORG_TOKEN if member_id is None else PortalCallerKind.MEMBER,
        id=jti if member_id is None else str(member_id),
        org_id=org_id,
        # A token that the admin key has issued has the rights of an administrator. A member's role is looked up later.
        role="admin" if member_id is None else "member",
        member_id=member_id,
        jti=jti,
        family=str(claims.get("family", jti)),
        plan=claims["plan"] if claims.get("plan") in REQUESTS_PER_MINUTE else None,
        issued_at=int(issued_at),
        expires_at=int(claims["exp"]),
        signed_in_at=signed_in_at,
    )
    return caller, issued_at


def _revoked(token_status: TokenStatus, issued_at: float, caller: PortalCaller) -> bool:
    revoked_before = token_status.revoked_before
    removed = caller.member_id is not None and token_status.role is None
    return token_status.revoked or removed or (revoked_before is not None and issued_at <= revoked_before)


def _store_caller(request: Request, caller: PortalCaller, org_id: OrgId | None = None) -> PortalCaller:
    """Stores the caller in the state of the request, for the other parameters of routes. `org_id` is the organization
    whose rows the caller may access."""
    if org_id is not None and caller.org_id is None:
        caller = msgspec.structs.replace(caller, org_id=org_id)
    request.scope["state"]["caller"] = caller
    return caller


AdminKey = Annotated[PortalCaller, Depends(_admin_key)]
AdminKeyOfAny = Annotated[PortalCaller, Depends(_any_admin_key)]
OrgMember = Annotated[PortalCaller, Depends(_org_member)]
OrgAdmin = Annotated[PortalCaller, Depends(_org_admin)]
KeyOrOrgMember = Annotated[PortalCaller, Depends(_key_or_org_member)]
KeyOrOrgAdmin = Annotated[PortalCaller, Depends(_key_or_org_admin)]
OutpostCaller = Annotated[PortalCaller, Depends(_outpost)]
PlatformCaller = Annotated[PortalCaller, Depends(_platform)]
SignedIn = Annotated[PortalCaller, Depends(_signed_in)]
Arrived = Annotated[Person, Depends(_arrived)]
JustArrived = Annotated[Person, Depends(_just_arrived)]

#: Entries of an operation in the OpenAPI document, by the dependency in its signature. If there are several, the
#: outermost dependency determines the entries.
OPENAPI_SECURITY: Final[dict[Callable[..., Any], dict[str, Any]]] = {
    _any_admin_key: {"security": [{"adminKey": []}]},
    _org_member: {"security": [{"orgToken": []}], "x-required-role": "member"},
    _org_admin: {"security": [{"orgToken": []}], "x-required-role": "admin"},
    _key_or_org_member: {"security": [{"orgToken": []}, {"adminKey": []}], "x-required-role": "member"},
    _key_or_org_admin: {"security": [{"orgToken": []}, {"adminKey": []}], "x-required-role": "admin"},
    _outpost: {"security": [{"outpostToken": []}]},
    _platform: {"security": [{"platformToken": []}]},
    _signed_in: {"security": [{"orgToken": []}], "x-required-role": "member"},
    _arrived: {"security": [{"partialToken": []}, {"orgToken": []}]},
    _just_arrived: {"security": [{"partialToken": []}]},
}

SECURITY_SCHEMES: Final[dict[str, Any]] = {
    "adminKey": {
        "type": "apiKey", "in": "header", "name": "X-API-Key",
        "description": "The portal's admin key (PORTAL_ADMIN_API_KEY).",
    },
    "orgToken": {
        "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
        "description": "An organization's token: issued by the admin key, or at single sign-on.",
    },
    "outpostToken": {
        "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
        "description": "Signed by an outpost with the key of its certificate, which is in the header `x5c`.",
    },
    "partialToken": {
        "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
        "description": "Identifies a person who has signed in and has not chosen an organization yet. Browsers have it"
        " as a cookie for ten minutes.",
    },
    "platformToken": {
        "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
        "description": "Signed by the platform, for the portal.",
    },
}  # fmt: skip

#: Responses of every route with a caller, for the OpenAPI document.
RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    401: {"description": "The credential is missing or not valid."},
    403: {"description": "The credential was revoked, belongs to another organization, or does not permit this."},
}

"""Who may call, as types for a route's signature: the 401, 403 and 404 of the organization have happened before its
first line.

    AdminKey           the portal's admin key; an organization in the path is there and not cancelled
    AdminKeyOfAny      the same of a cancelled organization too
    OrgMember          any token of the organization: a member's, or one that the admin key issued
    OrgAdmin           the same of an administrator
    KeyOrOrgMember     the admin key, or any token of the organization
    KeyOrOrgAdmin      the admin key, or a token of an administrator
    OutpostCaller      an outpost, by the certificate that the portal has issued
    PlatformCaller     the platform, by a token that it has signed for the portal
    SignedIn           as OrgMember; also by the cookie of a browser, on what one of the portal's own pages sends
    Arrived            a person who has signed in: by a partial token, or as a member; by a cookie as above
    JustArrived        the same by a partial token alone: the platform told their address a moment ago

The organization in a path is judged in one place, `_placed`. A route names its caller first: dependencies are solved in
that order.
"""

import hmac
from collections.abc import Callable
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from cryptography.hazmat.primitives.serialization import Encoding
from fastapi import Depends, Request

from gatehouse.foundation import certified
from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.jwt import ExpiredToken, InvalidToken
from gatehouse.foundation.tokens import digest
from gatehouse.ingress.protocol import shows
from gatehouse.portal import browser
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
    OrganizationNotFound,
    PlatformTokenMissing,
    TokenMissing,
    TokenRevoked,
)
from gatehouse.portal.host import PortalHost, TheHost
from gatehouse.portal.identity import REQUESTS_PER_MINUTE, Caller, CallerKind, OrgId, shown_role
from gatehouse.portal.provider import Person
from gatehouse.portal.standing import Standing, of_certificate, person_of

#: Credentials of one address that may be wrong in a minute.
WRONG_A_MINUTE: Final = 60
#: Calls of one person with partial tokens: those count for no organization.
_ARRIVALS_A_MINUTE: Final = 60
#: Calls of one outpost.
_OUTPOSTS_A_MINUTE: Final = 60
#: `token_type` of what the platform signs for its notices: nothing else that it signs is taken for one.
PLATFORM_NOTICE: Final = "platform_notice"


async def refused(request: Request, host: PortalHost, error: Unauthenticated) -> Exception:
    """What a bad credential is answered with: it enters the count of its address, so that nobody tries many."""
    taken = await host.counters.take(f"ip:{request.scope['state']['client_address']}", WRONG_A_MINUTE)
    return error if taken.allowed else LimitExceeded(taken)


async def _any_admin_key(request: Request, host: TheHost) -> Caller:
    """An organization that the path names is there, be it cancelled."""
    sent = request.headers.get("x-api-key", "")
    mine = digest(sent)
    # All of them, each in constant time.
    fitting = [hmac.compare_digest(mine, key) for key in host.admin_keys]
    if True not in fitting:
        raise await refused(request, host, AdminKeyMissing())
    caller = Caller(kind=CallerKind.ADMIN_KEY, id=f"sha256:{mine.hex()[:12]}", role="admin")
    named = _named(request)
    if named is None:
        return _kept(request, caller)
    if await host.standings.of(named) is None:
        raise OrganizationNotFound
    return _kept(request, caller, named)


async def _admin_key(request: Request, host: TheHost, caller: Annotated[Caller, Depends(_any_admin_key)]) -> Caller:
    if caller.org_id is not None:
        _placed(caller.org_id, request, await host.standings.of(caller.org_id))
    return caller


async def _bearer(request: Request, host: PortalHost, missing: Unauthenticated) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise await refused(request, host, missing)
    return token.strip()


async def _org_member(request: Request, host: TheHost) -> Caller:
    return await of_token(request, host, await _bearer(request, host, TokenMissing()))


async def of_token(request: Request, host: PortalHost, token: str) -> Caller:
    """The caller with this organization token, from wherever it was sent. Raises what `OrgMember` does."""
    try:
        caller, issued_at = _claimed(await host.keys.verify(token))
    except ExpiredToken:
        # It was good: nobody guesses who shows it.
        raise
    except Unauthenticated as error:
        raise await refused(request, host, error) from None
    org_id = caller.org_id
    assert org_id is not None
    standing = await host.standings.of(org_id, caller.jti or "", caller.member_id)
    if standing is None or _revoked(standing, issued_at, caller):
        raise TokenRevoked
    taken = await host.counters.take(f"org:{org_id}", REQUESTS_PER_MINUTE[standing.plan])
    if not taken.allowed:
        raise LimitExceeded(taken)
    request.scope["state"]["told"].update(taken.rate.headers())
    _placed(org_id, request, standing)
    if standing.role is not None:
        # As it is now, whatever the token says.
        caller = msgspec.structs.replace(caller, role=shown_role(standing.role))
    return _kept(request, caller, org_id)


async def _org_admin(caller: Annotated[Caller, Depends(_org_member)]) -> Caller:
    if caller.role != "admin":
        raise AdminsOnly
    return caller


async def _key_or_org_member(request: Request, host: TheHost) -> Caller:
    if "x-api-key" in request.headers:
        return await _admin_key(request, host, await _any_admin_key(request, host))
    return await _org_member(request, host)


async def _key_or_org_admin(caller: Annotated[Caller, Depends(_key_or_org_member)]) -> Caller:
    return await _org_admin(caller)


async def _outpost(request: Request, host: TheHost) -> Caller:
    token = await _bearer(request, host, CertificateMissing())
    try:
        proven = certified.verify(
            token, await host.authorities.trusted(), audience=host.settings.issuer, now=host.clock.now()
        )
        found = await of_certificate(host.database, proven.serial)
        # The name in the token is the outpost's own word; whose certificate it is, the portal knows.
        if found is None or proven.subject != str(found.outpost_id):
            raise InvalidToken
        # A token that was overheard is good on no other connection, where the listener asks for certificates.
        if not shows(request.scope, certified.shown(token).public_bytes(Encoding.DER)):
            raise CertificateNotShown
    except Unauthenticated as error:
        raise await refused(request, host, error) from None
    if not found.good:
        raise CertificateRevoked
    taken = await host.counters.take(f"outpost:{found.outpost_id}", _OUTPOSTS_A_MINUTE)
    if not taken.allowed:
        raise LimitExceeded(taken)
    _placed(found.org_id, request, await host.standings.of(found.org_id))
    return _kept(request, Caller(kind=CallerKind.OUTPOST, id=str(found.outpost_id)), found.org_id)


async def _platform(request: Request, host: TheHost) -> Caller:
    token = await _bearer(request, host, PlatformTokenMissing())
    try:
        claims = await host.platform_keys.verify(token, audience=host.settings.issuer)
        if claims.get("token_type") != PLATFORM_NOTICE:
            raise InvalidToken
    except Unauthenticated as error:
        raise await refused(request, host, error) from None
    return _kept(request, Caller(kind=CallerKind.PLATFORM, id=str(claims["iss"])))


async def _signed_in(request: Request, host: TheHost) -> Caller:
    return await of_token(request, host, await shown_token(request, host, browser.SESSION))


async def _arrived(request: Request, host: TheHost) -> Person:
    token = await shown_token(request, host, browser.ARRIVED, browser.SESSION)
    try:
        return await arrived(host, token)
    except InvalidToken:
        found = await person_of(host.database, await of_token(request, host, token))
    if found is None:
        raise NoPerson
    return found


async def _just_arrived(request: Request, host: TheHost) -> Person:
    try:
        return await arrived(host, await shown_token(request, host, browser.ARRIVED))
    except Unauthenticated:
        raise await refused(request, host, ArrivalMissing()) from None


async def arrived(host: PortalHost, token: str) -> Person:
    """Whom a partial token names. Raises `InvalidToken`, `ExpiredToken`, `LimitExceeded`."""
    claims = await host.keys.verify(token, audience=_partial_audience(host))
    person = Person(
        claims["sub"],
        UUID(claims["tenant_id"]),
        claims["email"],
        signed_in_at=claims["auth_time"],
        proven=claims["email_verified"],
        next=claims["next"],
    )
    taken = await host.counters.take(f"person:{person.tenant_id}:{person.sub}", _ARRIVALS_A_MINUTE)
    if not taken.allowed:
        raise LimitExceeded(taken)
    return person


async def partial_token(host: PortalHost, person: Person, *, lifetime_seconds: int) -> str:
    """What `arrived` reads."""
    claims = {
        "sub": person.sub,
        "tenant_id": str(person.tenant_id),
        "email": person.email,
        "auth_time": person.signed_in_at,
        "email_verified": person.proven,
        "next": person.next,
    }
    return await host.keys.sign(claims, lifetime_seconds=lifetime_seconds, audience=_partial_audience(host))


def _partial_audience(host: PortalHost) -> str:
    """Whom a partial token is for: nothing of an organization takes it."""
    return f"{host.settings.issuer}#arrived"


async def shown_token(request: Request, host: PortalHost, *cookies: str) -> str:
    """A bearer token, else what the browser shows. Raises `TokenMissing`, `Foreign`."""
    if "authorization" not in request.headers:
        found = [kept for cookie in cookies if (kept := browser.held(request, host, cookie))]
        if found:
            browser.refuse_foreign(request, host)
            return found[0]
    return await _bearer(request, host, TokenMissing())


def _placed(org_id: OrgId, request: Request, standing: Standing | None) -> None:
    """The organization in the path is the credential's own, and not cancelled (reference 1, Authentication, 5)."""
    if "org_id" in request.path_params and _named(request) != org_id:
        raise AnotherOrganization
    if standing is None or not standing.active:
        raise OrganizationNotFound


def _named(request: Request) -> OrgId | None:
    """The organization in the path. One that cannot be any is nobody's."""
    try:
        return TenantId(UUID(str(request.path_params["org_id"])))
    except (KeyError, ValueError):
        return None


def _claimed(claims: dict[str, Any]) -> tuple[Caller, float]:
    """Whom a token names, and when it was issued. Raises `InvalidToken`."""
    try:
        jti, issued_at, member = str(claims["jti"]), float(claims["iat"]), claims.get("uid")
        org_id, member_id = TenantId(UUID(claims["sub"])), None if member is None else UUID(member)
        signed_in_at = int(claims.get("auth_time", issued_at))
    except (KeyError, ValueError, TypeError, AttributeError):
        raise InvalidToken from None
    caller = Caller(
        kind=CallerKind.ORG_TOKEN if member_id is None else CallerKind.MEMBER,
        id=jti if member_id is None else str(member_id),
        org_id=org_id,
        # What the admin key issues acts as an administrator; what a member may is looked up.
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


def _revoked(standing: Standing, issued_at: float, caller: Caller) -> bool:
    before = standing.revoked_before
    gone = caller.member_id is not None and standing.role is None
    return standing.revoked or gone or (before is not None and issued_at <= before)


def _kept(request: Request, caller: Caller, org_id: OrgId | None = None) -> Caller:
    """Where `requests` finds who calls, and whose rows they see."""
    if org_id is not None and caller.org_id is None:
        caller = msgspec.structs.replace(caller, org_id=org_id)
    request.scope["state"]["caller"] = caller
    return caller


AdminKey = Annotated[Caller, Depends(_admin_key)]
AdminKeyOfAny = Annotated[Caller, Depends(_any_admin_key)]
OrgMember = Annotated[Caller, Depends(_org_member)]
OrgAdmin = Annotated[Caller, Depends(_org_admin)]
KeyOrOrgMember = Annotated[Caller, Depends(_key_or_org_member)]
KeyOrOrgAdmin = Annotated[Caller, Depends(_key_or_org_admin)]
OutpostCaller = Annotated[Caller, Depends(_outpost)]
PlatformCaller = Annotated[Caller, Depends(_platform)]
SignedIn = Annotated[Caller, Depends(_signed_in)]
Arrived = Annotated[Person, Depends(_arrived)]
JustArrived = Annotated[Person, Depends(_just_arrived)]

#: What the document says of an operation, by the dependency in its signature: the innermost that is found counts.
DESCRIBED: Final[dict[Callable[..., Any], dict[str, Any]]] = {
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
        "description": "Who has signed in, while it is not said for which organization: a browser has it as a cookie"
        " for ten minutes.",
    },
    "platformToken": {
        "type": "http", "scheme": "bearer", "bearerFormat": "JWT",
        "description": "Signed by the platform, for the portal.",
    },
}  # fmt: skip

#: what FastAPI's document says about a route with a caller
RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    401: {"description": "The credential is missing or not valid."},
    403: {"description": "The credential was revoked, is another organization's, or does not permit this."},
}

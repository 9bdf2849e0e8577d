"""The rules of single sign-on."""

import hmac
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import msgspec
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from starlette.requests import Request

from gatehouse.foundation import emails
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Unauthenticated
from gatehouse.foundation.http import forms
from gatehouse.foundation.http.forms import BadForm
from gatehouse.foundation.sealing import CannotOpen
from gatehouse.foundation.tokens import digest
from gatehouse.portal import browser
from gatehouse.portal.callers import of_token
from gatehouse.portal.change import Change
from gatehouse.portal.errors import OrganizationNotFound, TokenRevoked
from gatehouse.portal.host import PortalHost
from gatehouse.portal.identity import Caller, CallerKind, OrgId, shown_role
from gatehouse.portal.members import table as members
from gatehouse.portal.members.table import MemberRow
from gatehouse.portal.organizations.table import OrganizationRow
from gatehouse.portal.provider import Begun, Person, SignInFailed
from gatehouse.portal.requests import changing
from gatehouse.portal.signing import MAX_LIFETIME_SECONDS
from gatehouse.portal.sso import table
from gatehouse.portal.sso.errors import (
    AddressUnproven,
    AnothersInvitation,
    InvitationNotFound,
    MemberAlready,
    NotAMember,
    RefreshedTooLong,
    SignInAgain,
)
from gatehouse.portal.sso.schemas import SsoSession, SsoToken
from gatehouse.portal.tokens import service as tokens
from gatehouse.portal.tokens.errors import AlreadyRevoked

#: How long somebody may be away at the platform, and then take to choose.
BEGUN_SECONDS: Final = 600
TOKEN_SECONDS: Final = 3600
_CONTEXT: Final = b"portal sign-in"


def begin(host: PortalHost, next_page: str) -> tuple[Begun, str]:
    """And as the browser keeps it."""
    begun = Begun.new(next_page, int(host.clock.now()) + BEGUN_SECONDS)
    return begun, host.sealer.seal(msgspec.json.encode(begun), context=_CONTEXT)


def resumed(host: PortalHost, kept: str | None, query: bytes) -> tuple[Begun, dict[str, str]]:
    """The sign-in that this browser began, and what it came back with. Raises `SignInFailed`."""
    try:
        told = forms.parsed(query)
        begun = msgspec.json.decode(host.sealer.open(kept or "", context=_CONTEXT), type=Begun)
    except (BadForm, CannotOpen, msgspec.DecodeError):
        raise SignInFailed from None
    if not hmac.compare_digest(told.get("state", "").encode(), begun.state.encode()) or host.clock.now() > begun.until:
        raise SignInFailed
    return begun, told


async def arrive(host: PortalHost, begun: Begun, told: dict[str, str]) -> Person:
    """Raises `SignInFailed`, `ProviderAway`."""
    if told.get("iss") != await host.provider.issuer():
        # Somebody else's answer, though the browser brings it (RFC 9207).
        raise SignInFailed
    if "error" in told or not told.get("code"):
        raise SignInFailed("The platform did not sign you in. Begin again, or ask your administrator.")
    return await host.provider.person(begun, told["code"])


async def open_session(request: Request, host: PortalHost, person: Person, org_id: OrgId) -> SsoToken:
    """A session that they have already moves there: none is left that its person does not know of, and cannot end.

    Raises `NotAMember`, `SignInAgain`, `AlreadyRevoked`."""
    found = [each for each in await table.memberships(host.database, person) if each.org_id == org_id]
    if not found:
        raise NotAMember
    if (former := person.session) is not None:
        assert former.org_id is not None
        async with changing(request, host, former.org_id, former) as change:
            await end(change, former, "an organization was chosen")
    async with changing(request, host, org_id, _caller(found[0].member_id, found[0].role, org_id)) as change:
        member = await change.session.get(MemberRow, found[0].member_id, with_for_update=True)
        if member is None:
            raise NotAMember
        if member.accepted_at is None:
            member.accepted_at = utc_now()
            change.record("member.accepted", "member", member.id)
        return await _issued(change, host, member, person.signed_in_at)


async def accept(request: Request, host: PortalHost, person: Person, invite_token: str) -> SsoToken:
    """Raises `InvitationNotFound`, `AnothersInvitation`, `AddressUnproven`, `MemberAlready`, `SignInAgain`."""
    invited = digest(invite_token)
    org_id = await table.org_of_invitation(host.database, invited)
    if org_id is None:
        raise InvitationNotFound
    async with changing(request, host, org_id) as change:
        # An administrator may withdraw the invitation at this moment: one of both is the first.
        await members.lock(change.session)
        query = select(MemberRow).where(MemberRow.invite_digest == invited).with_for_update()
        member = (await change.session.scalars(query)).one_or_none()
        if member is None or member.invite_expires_at is None or member.invite_expires_at <= utc_now():
            raise InvitationNotFound
        if not _same_address(member.email, person.email):
            raise AnothersInvitation
        if not person.proven and person.tenant_id != await _tenant_of(change):
            # Any organization's administrator may make an account with any address.
            raise AddressUnproven
        member.platform_sub, member.platform_tenant_id = person.sub, person.tenant_id
        member.accepted_at, member.invite_digest, member.invite_expires_at = utc_now(), None, None
        try:
            await change.session.flush()
        except IntegrityError:
            raise MemberAlready from None
        change.caller = _caller(member.id, member.role, org_id)
        change.record("member.accepted", "member", member.id)
        return await _issued(change, host, member, person.signed_in_at)


async def refresh(change: Change, host: PortalHost, caller: Caller) -> SsoToken:
    """Raises `SignInAgain`, `RefreshedTooLong`, `NotAMember`, `AlreadyRevoked`."""
    await end(change, caller, "refreshed")
    if caller.member_id is None:
        return await _reissued(change, host, caller)
    member = await change.session.get(MemberRow, caller.member_id)
    if member is None:
        raise NotAMember
    return await _issued(change, host, member, caller.signed_in_at, family=caller.family)


async def _reissued(change: Change, host: PortalHost, caller: Caller) -> SsoToken:
    """Replaces a token of the admin key's by one with its plan and lifetime. All that come of one token end with the
    longest lifetime that a token may have. Raises `RefreshedTooLong`."""
    left = caller.signed_in_at + MAX_LIFETIME_SECONDS - int(host.clock.now())
    if left <= 0:
        raise RefreshedTooLong
    org = await _organization(change)
    issued = await tokens.issue(
        change,
        host.keys,
        host.clock,
        org,
        lifetime_seconds=min(caller.expires_at - caller.issued_at, left),
        plan=caller.plan,
        signed_in_at=caller.signed_in_at,
        family=caller.family,
    )
    return SsoToken(token=issued.token, expires_in=issued.expires_in, org_id=org.id)


async def leave_former(request: Request, host: PortalHost) -> None:
    """Ends the session that a browser has kept from before, where another one takes its place."""
    if "authorization" not in request.headers:
        await leave(request, host, browser.held(request, host, browser.SESSION))


async def leave(request: Request, host: PortalHost, token: str | None) -> None:
    """Ends the session that a browser shows, if it still is one."""
    if token is None:
        return
    try:
        caller = await of_token(request, host, token)
        assert caller.org_id is not None
        async with changing(request, host, caller.org_id, caller) as change:
            await end(change, caller, "signed out")
    except (Unauthenticated, TokenRevoked, OrganizationNotFound, AlreadyRevoked):
        return


async def end(change: Change, caller: Caller, reason: str) -> None:
    """Revokes the caller's token. Raises `AlreadyRevoked` where it was revoked since the caller was identified, alone
    or with all others of the organization."""
    assert caller.jti is not None
    await members.lock(change.session)
    revoked_before = (await _organization(change)).tokens_revoked_before
    if revoked_before is not None and caller.issued_at <= revoked_before.timestamp():
        raise AlreadyRevoked
    await tokens.revoke(change, caller.jti, reason, expires_at=datetime.fromtimestamp(caller.expires_at, UTC))


def described(caller: Caller, org: OrganizationRow, member: MemberRow | None) -> SsoSession:
    return SsoSession(
        user_id=caller.member_id,
        email=None if member is None else member.email,
        org_id=org.id,
        role=caller.role,
        plan=org.plan_tier,
        expires_at=datetime.fromtimestamp(caller.expires_at, UTC),
    )


async def _organization(change: Change) -> OrganizationRow:
    org = await change.session.get(OrganizationRow, change.org_id)
    assert org is not None
    return org


async def _tenant_of(change: Change) -> UUID:
    org = await _organization(change)
    return org.tenant_id or org.id


async def _issued(
    change: Change, host: PortalHost, member: MemberRow, signed_in_at: int, *, family: str | None = None
) -> SsoToken:
    """However a session came about, it ends twelve hours after the platform has vouched for the person."""
    left = signed_in_at + browser.SIGNED_IN_SECONDS - int(host.clock.now())
    if left <= 0:
        raise SignInAgain
    org = await _organization(change)
    issued = await tokens.issue(
        change,
        host.keys,
        host.clock,
        org,
        lifetime_seconds=min(TOKEN_SECONDS, left),
        member=member,
        signed_in_at=signed_in_at,
        family=family,
    )
    return SsoToken(token=issued.token, expires_in=issued.expires_in, org_id=org.id)


def _caller(member_id: object, role: str, org_id: OrgId) -> Caller:
    return Caller(kind=CallerKind.MEMBER, id=str(member_id), org_id=org_id, role=shown_role(role))


def _same_address(invited: str, shown: str) -> bool:
    try:
        return emails.normal(invited) == emails.normal(shown)
    except ValueError:
        return False

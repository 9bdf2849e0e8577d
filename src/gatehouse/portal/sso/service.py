"""Starts, completes, refreshes and ends sign-ins."""

import hmac
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import msgspec
from sqlalchemy import select
from starlette.requests import Request

from gatehouse.foundation import emails
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, Forbidden, NotFound, Unauthenticated
from gatehouse.foundation.http import forms
from gatehouse.foundation.http.forms import BadForm
from gatehouse.foundation.secrets.sealing import CannotOpen
from gatehouse.foundation.secrets.tokens import digest
from gatehouse.foundation.storage.conflicts import unique
from gatehouse.portal.change import PortalChange
from gatehouse.portal.errors import PortalOrganizationNotFound, RevokedToken
from gatehouse.portal.host import PortalHost
from gatehouse.portal.identity import OrgId, PortalCaller, PortalCallerKind, shown_role
from gatehouse.portal.keys.signing import MAX_LIFETIME_SECONDS
from gatehouse.portal.members import table as members
from gatehouse.portal.members.table import PortalMemberRow
from gatehouse.portal.organizations.table import OrganizationRow
from gatehouse.portal.platform_link.openid_provider import Person, SignIn, SignInFailed
from gatehouse.portal.request import browser
from gatehouse.portal.request.callers import caller_of_token
from gatehouse.portal.request.injected import changing
from gatehouse.portal.sso import table
from gatehouse.portal.sso.schemas import SsoSession, SsoToken
from gatehouse.portal.tokens import service as tokens
from gatehouse.portal.tokens.service import AlreadyRevoked

#: Maximum time for the sign-in at the platform, and then for the choice of an organization.
SIGN_IN_SECONDS: Final = 600
TOKEN_SECONDS: Final = 3600
_CONTEXT: Final = b"portal sign-in"


class NotAMember(Forbidden):
    message = "You are not a member of this organization."


class SignInAgain(Unauthenticated):
    message = "You signed in too long ago. Sign in again."


class RefreshedTooLong(Unauthenticated):
    message = "The series of this token began a year ago. Issue a new token with the portal's admin key."


class InvitationNotFound(NotFound):
    message = "The invitation does not exist, has expired, was used, or was withdrawn."


class AnothersInvitation(Forbidden):
    message = "The invitation is for another address than that of your account."


class AddressUnproven(Forbidden):
    message = (
        "Your address is not verified: the organization at which you sign in has not verified its domain on the"
        " platform."
    )


class MemberAlready(Conflict):
    message = "You are already a member of this organization."


def begin(host: PortalHost, next_page: str) -> tuple[SignIn, str]:
    """Returns a new sign-in, and its sealed form, which the browser stores."""
    sign_in = SignIn.new(next_page, int(host.clock.now()) + SIGN_IN_SECONDS)
    return sign_in, host.sealer.seal(msgspec.json.encode(sign_in), context=_CONTEXT)


def resumed(host: PortalHost, sealed: str | None, query: bytes) -> tuple[SignIn, dict[str, str]]:
    """Returns the sign-in that the browser has stored, and the parameters that the platform has sent. Raises
    `SignInFailed`."""
    try:
        parameters = forms.parse_form(query)
        sign_in = msgspec.json.decode(host.sealer.open(sealed or "", context=_CONTEXT), type=SignIn)
    except (BadForm, CannotOpen, msgspec.DecodeError):
        raise SignInFailed from None
    if (
        not hmac.compare_digest(parameters.get("state", "").encode(), sign_in.state.encode())
        or host.clock.now() > sign_in.until
    ):
        raise SignInFailed
    return sign_in, parameters


async def arrive(host: PortalHost, sign_in: SignIn, parameters: dict[str, str]) -> Person:
    """Completes the sign-in and returns the person. Raises `SignInFailed`, `PortalIdpUnavailable`."""
    if parameters.get("iss") != await host.provider.issuer():
        # The response comes from another provider (RFC 9207).
        raise SignInFailed
    if "error" in parameters or not parameters.get("code"):
        raise SignInFailed("The platform did not sign you in. Start again, or ask your administrator.")
    return await host.provider.person(sign_in, parameters["code"])


async def open_session(request: Request, host: PortalHost, person: Person, org_id: OrgId) -> SsoToken:
    """Opens a session in the organization, and ends the session that the person has presented, so that no unused
    session remains.

    Raises `NotAMember`, `SignInAgain`, `AlreadyRevoked`.
    """
    matching = [
        membership for membership in await table.memberships(host.database, person) if membership.org_id == org_id
    ]
    if not matching:
        raise NotAMember
    if (previous := person.session) is not None:
        assert previous.org_id is not None
        async with changing(request, host, previous.org_id, previous) as change:
            await end(change, previous, "an organization was chosen")
    async with changing(request, host, org_id, _caller(matching[0].member_id, matching[0].role, org_id)) as change:
        member = await change.session.get(PortalMemberRow, matching[0].member_id, with_for_update=True)
        if member is None:
            raise NotAMember
        if member.accepted_at is None:
            member.assign({"accepted_at": utc_now()})
            change.record("member.accepted", "member", member.id)
        return await _issue_session_token(change, host, member, person.signed_in_at)


async def accept(request: Request, host: PortalHost, person: Person, invite_token: str) -> SsoToken:
    """Makes the person the invited member, and opens a session. Raises `InvitationNotFound`, `AnothersInvitation`,
    `AddressUnproven`, `MemberAlready`, `SignInAgain`."""
    invited = digest(invite_token)
    org_id = await table.org_of_invitation(host.database, invited)
    if org_id is None:
        raise InvitationNotFound
    async with changing(request, host, org_id) as change:
        # The lock serializes this change with the withdrawal of the invitation by an administrator.
        await members.lock(change.session)
        query = select(PortalMemberRow).where(PortalMemberRow.invite_digest == invited).with_for_update()
        member = (await change.session.scalars(query)).one_or_none()
        if member is None or member.invite_expires_at is None or member.invite_expires_at <= utc_now():
            raise InvitationNotFound
        if not _same_address(member.email, person.email):
            raise AnothersInvitation
        if not person.email_verified and person.tenant_id != await _tenant_of(change):
            # The address must be verified, because administrators of any organization can create accounts with any
            # address.
            raise AddressUnproven
        member.platform_sub, member.platform_tenant_id = person.sub, person.tenant_id
        member.assign({"accepted_at": utc_now(), "invite_digest": None, "invite_expires_at": None})
        with unique(MemberAlready):
            await change.session.flush()
        change.caller = _caller(member.id, member.role, org_id)
        change.record("member.accepted", "member", member.id)
        return await _issue_session_token(change, host, member, person.signed_in_at)


async def refresh(change: PortalChange, host: PortalHost, caller: PortalCaller) -> SsoToken:
    """Replaces the caller's token by a new one. Raises `SignInAgain`, `RefreshedTooLong`, `NotAMember`,
    `AlreadyRevoked`."""
    await end(change, caller, "refreshed")
    if caller.member_id is None:
        return await _reissue_admin_token(change, host, caller)
    member = await change.session.get(PortalMemberRow, caller.member_id)
    if member is None:
        raise NotAMember
    return await _issue_session_token(change, host, member, caller.signed_in_at, family=caller.family)


async def _reissue_admin_token(change: PortalChange, host: PortalHost, caller: PortalCaller) -> SsoToken:
    """Returns a token with the same plan and lifetime as the caller's token, which the admin key has issued. The tokens
    of a series together last at most as long as the maximum lifetime of a token. Raises `RefreshedTooLong`."""
    seconds_left = caller.signed_in_at + MAX_LIFETIME_SECONDS - int(host.clock.now())
    if seconds_left <= 0:
        raise RefreshedTooLong
    org = await _organization(change)
    issued = await tokens.issue(
        change,
        host.keys,
        host.clock,
        org,
        lifetime_seconds=min(caller.expires_at - caller.issued_at, seconds_left),
        plan=caller.plan,
        signed_in_at=caller.signed_in_at,
        family=caller.family,
    )
    return SsoToken(token=issued.token, expires_in=issued.expires_in, org_id=org.id)


async def leave_former(request: Request, host: PortalHost) -> None:
    """Ends the session in the browser's cookie, which a new session replaces."""
    if "authorization" not in request.headers:
        await leave(request, host, browser.cookie_value(request, host, browser.SESSION_COOKIE))


async def leave(request: Request, host: PortalHost, token: str | None) -> None:
    """Ends the session with the token of a browser's cookie, if the token is still valid."""
    if token is None:
        return
    try:
        caller = await caller_of_token(request, host, token)
        assert caller.org_id is not None
        async with changing(request, host, caller.org_id, caller) as change:
            await end(change, caller, "signed out")
    except (Unauthenticated, RevokedToken, PortalOrganizationNotFound, AlreadyRevoked):
        return


async def end(change: PortalChange, caller: PortalCaller, reason: str) -> None:
    """Revokes the caller's token. Raises `AlreadyRevoked` if the token, or all tokens of the organization, have been
    revoked since the caller was authenticated."""
    assert caller.jti is not None
    await members.lock(change.session)
    revoked_before = (await _organization(change)).tokens_revoked_before
    if revoked_before is not None and caller.issued_at <= revoked_before.timestamp():
        raise AlreadyRevoked
    await tokens.revoke(change, caller.jti, reason, expires_at=datetime.fromtimestamp(caller.expires_at, UTC))


def described(caller: PortalCaller, org: OrganizationRow, member: PortalMemberRow | None) -> SsoSession:
    return SsoSession(
        user_id=caller.member_id,
        email=None if member is None else member.email,
        org_id=org.id,
        role=caller.role,
        plan=org.plan_tier,
        expires_at=datetime.fromtimestamp(caller.expires_at, UTC),
    )


async def _organization(change: PortalChange) -> OrganizationRow:
    org = await change.session.get(OrganizationRow, change.org_id)
    assert org is not None
    return org


async def _tenant_of(change: PortalChange) -> UUID:
    org = await _organization(change)
    return org.tenant_id or org.id


async def _issue_session_token(
    change: PortalChange, host: PortalHost, member: PortalMemberRow, signed_in_at: int, *, family: str | None = None
) -> SsoToken:
    """Issues a token that expires at most twelve hours after the sign-in at the platform. Raises `SignInAgain`."""
    seconds_left = signed_in_at + browser.SIGNED_IN_SECONDS - int(host.clock.now())
    if seconds_left <= 0:
        raise SignInAgain
    org = await _organization(change)
    issued = await tokens.issue(
        change,
        host.keys,
        host.clock,
        org,
        lifetime_seconds=min(TOKEN_SECONDS, seconds_left),
        member=member,
        signed_in_at=signed_in_at,
        family=family,
    )
    return SsoToken(token=issued.token, expires_in=issued.expires_in, org_id=org.id)


def _caller(member_id: object, role: str, org_id: OrgId) -> PortalCaller:
    return PortalCaller(kind=PortalCallerKind.MEMBER, id=str(member_id), org_id=org_id, role=shown_role(role))


def _same_address(invited: str, signed_in: str) -> bool:
    try:
        return emails.normalize(invited) == emails.normalize(signed_in)
    except ValueError:
        return False

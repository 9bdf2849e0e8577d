"""Invites, changes and removes members."""

from datetime import timedelta
from typing import Final

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Conflict, NotFound
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets import tokens
from gatehouse.foundation.storage.conflicts import unique
from gatehouse.portal.change import PortalChange
from gatehouse.portal.identity import Role, shown_role
from gatehouse.portal.members import table
from gatehouse.portal.members.schemas import Member, MemberInvited, NewMember
from gatehouse.portal.members.table import PortalMemberRow

#: Time for which an invitation is valid.
INVITATION_LIFETIME: Final = timedelta(days=7)


class PortalMemberNotFound(NotFound):
    message = "Member not found"


class AlreadyPortalMember(Conflict):
    message = "email: a member or an invitation has this address already."


class LastPortalAdmin(Conflict):
    message = "This is the organization's last administrator: make another member an administrator first."


async def invite(change: PortalChange, new: NewMember) -> MemberInvited:
    """Invites a person and returns the invitation's token. Raises `AlreadyPortalMember`."""
    token = tokens.mint_token("inv_")
    member = _row(change, new.email, new.role)
    member.invite_digest, member.invite_expires_at = token.digest, member.invited_at + INVITATION_LIFETIME
    change.session.add(member)
    with unique(AlreadyPortalMember):
        await change.session.flush()
    change.record("member.invited", "member", member.id, email=member.email, role=member.role)
    return MemberInvited(member=Member.model_validate(member), invite_token=token.plaintext)


def add_owner(change: PortalChange, email: str) -> None:
    """Adds the owner of a new organization. An owner needs no invitation, because the platform reports the owner's
    identity when the organization is provisioned."""
    member = _row(change, email, "owner")
    change.session.add(member)
    change.record("member.added", "member", member.id, email=email, role="owner")


async def set_role(change: PortalChange, member: PortalMemberRow, role: Role) -> PortalMemberRow:
    """Changes the role of a member. An owner whose new role is `admin` remains an owner. Raises `LastPortalAdmin`."""
    if shown_role(member.role) == role:
        return member
    if role == "member":
        await _require_another_admin(change, member)
    change.record("member.role_changed", "member", member.id, role=role, previous=member.role)
    member.assign({"role": role})
    return member


async def remove(change: PortalChange, member: PortalMemberRow) -> None:
    """Removes a member, or withdraws an invitation. Raises `LastPortalAdmin`."""
    if member.role != "member":
        await _require_another_admin(change, member)
    await change.session.delete(member)
    change.record("member.removed", "member", member.id, email=member.email, role=member.role)


async def _require_another_admin(change: PortalChange, member: PortalMemberRow) -> None:
    """Raises `LastPortalAdmin` if the member is the only administrator. An invited administrator is not counted, and
    may always be removed."""
    if member.invited:
        return
    if all(admin.id == member.id for admin in await table.admins(change.session)):
        raise LastPortalAdmin


def _row(change: PortalChange, email: str, role: str) -> PortalMemberRow:
    assert change.org_id is not None
    now = utc_now()
    return PortalMemberRow(
        id=new_id(),
        org_id=change.org_id,
        email=email,
        role=role,
        invite_digest=None,
        invite_expires_at=None,
        platform_sub=None,
        platform_tenant_id=None,
        invited_at=now,
        accepted_at=None,
        created_at=now,
        updated_at=now,
    )

"""Decides whether an identity provider or a directory may use an existing account (docs/accounts.md).

    local  -> linked     by an address of a domain that the organization has verified
    linked -> linked     not checked again; if the directory changes the address, earlier credentials end
    linked -> local      when an administrator changes the address

A local account was registered by a user, created by an administrator, or created by the portal for an owner. The
identity provider may mean another person than the one who has used the account so far. Therefore linking ends all
earlier credentials, unless the address is proven already: the password, sessions, refresh tokens, API keys, grants to
applications and second factors. The user can enable the disabled keys again.
"""

from typing import Final, Literal
from uuid import UUID

import msgspec
from sqlalchemy import select, text

from gatehouse.foundation import emails
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import Forbidden
from gatehouse.platform.access.api_keys import service as api_keys
from gatehouse.platform.access.api_keys.table import ApiKeyRow
from gatehouse.platform.access.mfa import table as mfa
from gatehouse.platform.access.revoking import end_sessions
from gatehouse.platform.access.users import one_time
from gatehouse.platform.access.users.table import UserRow, has_proven_domain
from gatehouse.platform.changes.change import Change

LinkSource = Literal["saml", "scim"]

# One query selects the linkable users, because a directory may name thousands, nearly all of them linked already or
# never linkable.
_LINKABLE: Final = text(
    "SELECT id FROM users WHERE id = ANY(CAST(:users AS uuid[])) AND linked_at IS NULL AND role <> 'admin'"
    " AND (self_registered OR split_part(lower(email), '@', 2) IN"
    " (SELECT domain FROM allowed_domains WHERE verified_at IS NOT NULL))"
)
_REFRESH_TOKENS: Final = text(
    "DELETE FROM refresh_tokens WHERE session_id IN (SELECT id FROM sessions WHERE user_id = :user)"
    " AND used_at IS NULL AND expires_at > now() RETURNING digest"
)
_GRANTS: Final = text(
    "DELETE FROM authorization_codes WHERE user_id = :user"
    " AND (used_at IS NULL AND expires_at > now() OR access_expires_at > now()) RETURNING digest"
)


class AddressNotProven(Forbidden):
    code = "address_not_proven"
    message = (
        "A local account has this address, and the organization has not verified the address's domain."
        " Ask your administrator to verify the domain, or to remove the account."
    )

    def __init__(self) -> None:
        super().__init__(reason=self.code)


class EndedCredentials(msgspec.Struct, frozen=True, kw_only=True):
    """Number of credentials of each kind that were ended."""

    passwords: int = 0
    sessions: int = 0
    refresh_tokens: int = 0
    api_keys: int = 0
    oauth_grants: int = 0
    second_factors: int = 0


def mark_created_by(change: Change, user: UserRow, source: LinkSource) -> None:
    """Mark an account that an identity provider or a directory has just created as linked."""
    user.linked_at = utc_now()
    if source == "saml" and user.email_verified:
        user.address_proven_at = user.linked_at


async def link_signed_in(change: Change, user: UserRow) -> None:
    """Link an account when its user signs in at an identity provider. The caller has locked the row. Raises
    `AddressNotProven`."""
    address_is_proven = await has_proven_domain(change.session, emails.domain(user.email))
    if user.linked_at is None:
        if not address_is_proven:
            raise AddressNotProven
        await _link(change, user, "saml")
    if address_is_proven and user.address_proven_at is None:
        user.address_proven_at = utc_now()


async def link_provisioned(change: Change, user: UserRow) -> None:
    """Link an account that a directory writes to, or adds to a group. The caller has locked the row.

    An administrator's account stays local, because a directory's token is a machine's credential and must not end the
    password of the last administrator. An account whose address is not in a verified domain stays local too. If it was
    self-registered, raises `AddressNotProven`, because the directory may mean another person.
    """
    if user.linked_at is not None or user.role == "admin":
        return
    if await has_proven_domain(change.session, emails.domain(user.email)):
        await _link(change, user, "scim")
    elif user.self_registered:
        raise AddressNotProven


async def link_members(change: Change, user_ids: set[UUID]) -> None:
    """Call `link_provisioned` for those of the users who are not linked yet and can be linked."""
    linkable = (await change.session.execute(_LINKABLE, {"users": list(user_ids)})).scalars().all()
    if not linkable:
        return
    query = select(UserRow).where(UserRow.id.in_(linkable)).order_by(UserRow.id).with_for_update()
    for user in (await change.session.scalars(query)).all():
        await link_provisioned(change, user)


async def link_moved(change: Change, user: UserRow) -> None:
    """End the earlier credentials of a linked account whose directory has just changed the address, because the new
    address may be another person's. The account stays linked."""
    await _link(change, user, "scim")


def is_address_proven(user: UserRow) -> bool:
    """Return whether the address is known to be the user's. A self-registered user may have entered any address."""
    return not user.self_registered or user.linked_at is not None or user.address_proven_at is not None


async def _link(change: Change, user: UserRow, source: LinkSource) -> None:
    user.linked_at = user.updated_at = utc_now()
    user.awaits_confirmation = False
    # An outstanding invitation or reset token could set a password for an account that is now another person's.
    await one_time.revoke_unused(change, user)
    ended_credentials = EndedCredentials()
    if user.address_proven_at is None:
        ended_credentials = await _end_credentials(change, user)
    change.record("user.linked", "user", user.id, by=source, ended=msgspec.to_builtins(ended_credentials))
    change.touch("user", user.id, urgent=True)


async def _end_credentials(change: Change, user: UserRow) -> EndedCredentials:
    """End everything that lets a person act as this user."""
    session = change.session
    had_password = user.password_hash is not None
    user.password_hash = None
    refresh_tokens = (await session.execute(_REFRESH_TOKENS, {"user": user.id})).all()
    grants = (await session.execute(_GRANTS, {"user": user.id})).all()
    sessions = await end_sessions(change, user.id, "linked")
    # Locks disabled keys too: a key that is being enabled concurrently is read as disabled until its row is locked.
    keys = (await session.scalars(select(ApiKeyRow).where(ApiKeyRow.user_id == user.id).with_for_update())).all()
    enabled = [key for key in keys if key.is_enabled]
    for key in enabled:
        api_keys.set_enabled(change, key, False)
        # Allows the user to enable the key again.
        key.disabled_by = "owner"
    factors = len(await mfa.passkeys(session, user.id)) + (await mfa.totp(session, user.id) is not None)
    await mfa.drop_all_factors(session, user.id)
    return EndedCredentials(
        passwords=int(had_password),
        sessions=len(sessions),
        refresh_tokens=len(refresh_tokens),
        api_keys=len(enabled),
        oauth_grants=len(grants),
        second_factors=factors,
    )

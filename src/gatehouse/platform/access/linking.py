"""When an identity provider or a directory may use an account that was made without it: the one rule for all ways in.

    local  -> linked     by an address of a domain that the organization has proven
    linked -> linked     nothing is asked again; if its directory changes the address, what was made before ends
    linked -> local      when an administrator changes the address

A local account is one that somebody registered, that an administrator made, or that the portal made for an owner. The
person of whom the identity provider speaks need not be the one who has used it so far. So, unless its address was
proven by an invitation that a person issued, linking ends all that was made before: the password, sessions, refresh
tokens, API keys, grants to applications and second factors. The person finds the disabled keys and can enable them
again.
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
from gatehouse.platform.access.users.table import UserRow, proven
from gatehouse.platform.change import Change

Source = Literal["saml", "scim"]

# A directory may name thousands, nearly all of whom are linked or stay local.
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
        "An account with this address was made here, and the organization has not proven the address's domain."
        " Ask your administrator to prove the domain, or to remove the account."
    )

    def __init__(self) -> None:
        super().__init__(reason=self.code)


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How many of each ended."""

    passwords: int = 0
    sessions: int = 0
    refresh_tokens: int = 0
    api_keys: int = 0
    oauth_grants: int = 0
    second_factors: int = 0


def made_by(change: Change, user: UserRow, by: Source) -> None:
    """Marks an account that an identity provider or a directory has just made."""
    user.linked_at = utc_now()
    if by == "saml" and user.email_verified:
        user.address_proven_at = user.linked_at


async def link_signed_in(change: Change, user: UserRow) -> None:
    """For a person whom an identity provider signs in to a locked account. Raises `AddressNotProven`."""
    address_is_proven = await proven(change.session, emails.domain(user.email))
    if user.linked_at is None:
        if not address_is_proven:
            raise AddressNotProven
        await _link(change, user, "saml")
    if address_is_proven and user.address_proven_at is None:
        user.address_proven_at = utc_now()


async def link_provisioned(change: Change, user: UserRow) -> None:
    """For a locked account that a directory writes to, or takes into a group.

    An administrator's account, and one whose address is not proven, stays local: a directory's token is a machine's
    credential, and must not end the password of the last administrator. Raises `AddressNotProven` where a stranger
    registered the account, for then the directory may mean somebody else.
    """
    if user.linked_at is not None or user.role == "admin":
        return
    if await proven(change.session, emails.domain(user.email)):
        await _link(change, user, "scim")
    elif user.self_registered:
        raise AddressNotProven


async def link_members(change: Change, user_ids: set[UUID]) -> None:
    """`link_provisioned` for those of these users who are not linked yet."""
    linkable = (await change.session.execute(_LINKABLE, {"users": list(user_ids)})).scalars().all()
    if not linkable:
        return
    query = select(UserRow).where(UserRow.id.in_(linkable)).order_by(UserRow.id).with_for_update()
    for user in (await change.session.scalars(query)).all():
        await link_provisioned(change, user)


async def link_moved(change: Change, user: UserRow) -> None:
    """For a linked account to which its directory has just given another address. The address may be another person's,
    so all that was made under the earlier one ends. The account stays linked."""
    await _link(change, user, "scim")


def vouched(user: UserRow) -> bool:
    """Whether the organization stands for this person: a stranger who registered may have typed any address."""
    return not user.self_registered or user.linked_at is not None


async def _link(change: Change, user: UserRow, by: Source) -> None:
    user.linked_at = user.updated_at = utc_now()
    # Whoever holds an invitation or a reset could set a password for an account that is another person's now.
    await one_time.withdraw(change, user)
    ended = Ended()
    if user.address_proven_at is None:
        ended = await _end_everything(change, user)
    change.record("user.linked", "user", user.id, by=by, ended=msgspec.to_builtins(ended))
    change.touch("user", user.id, urgent=True)


async def _end_everything(change: Change, user: UserRow) -> Ended:
    """All by which somebody could act as this user."""
    session = change.session
    had_password = user.password_hash is not None
    user.password_hash = None
    refresh_tokens = (await session.execute(_REFRESH_TOKENS, {"user": user.id})).all()
    grants = (await session.execute(_GRANTS, {"user": user.id})).all()
    sessions = await end_sessions(change, user.id, "linked")
    # The disabled ones too: one that is being enabled now shows as disabled until its row is locked.
    keys = (await session.scalars(select(ApiKeyRow).where(ApiKeyRow.user_id == user.id).with_for_update())).all()
    enabled = [key for key in keys if key.is_enabled]
    for key in enabled:
        api_keys.set_enabled(change, key, False)
        # The person may enable their own again.
        key.disabled_by = "owner"
    factors = len(await mfa.passkeys(session, user.id)) + (await mfa.totp(session, user.id) is not None)
    await mfa.drop_everything(session, user.id)
    return Ended(
        passwords=int(had_password),
        sessions=len(sessions),
        refresh_tokens=len(refresh_tokens),
        api_keys=len(enabled),
        oauth_grants=len(grants),
        second_factors=factors,
    )

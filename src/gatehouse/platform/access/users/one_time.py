"""One-time tokens: invitations and password resets. Administrators issue and deliver them; only digests are stored."""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy import delete, select

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets import tokens
from gatehouse.platform.access.users.errors import BadOneTimeToken
from gatehouse.platform.access.users.table import OneTimeTokenRow, UserRow
from gatehouse.platform.changes.change import Change

INVITATION: Final = "invitation"
PASSWORD_RESET: Final = "password_reset"  # noqa: S105 - a purpose's name

_LIFETIMES: Final = {INVITATION: timedelta(days=7), PASSWORD_RESET: timedelta(hours=24)}
_PREFIXES: Final = {INVITATION: "inv_", PASSWORD_RESET: "pwr_"}


class RedeemedToken(NamedTuple):
    """A redeemed token. `issued_by_person` is False for a token that a machine issued, whose program has seen it."""

    user: UserRow
    issued_by_person: bool


class IssuedOneTimeToken(NamedTuple):
    """A new token in clear, and its expiry."""

    token: str
    expires_at: datetime


async def issue(change: Change, user: UserRow, purpose: str) -> IssuedOneTimeToken:
    """Issue a token for this user. Earlier tokens of any purpose become void."""
    await revoke_unused(change, user)
    minted, now = tokens.mint_token(_PREFIXES[purpose]), utc_now()
    row = OneTimeTokenRow(
        id=new_id(),
        tenant_id=user.tenant_id,
        user_id=user.id,
        purpose=purpose,
        digest=minted.digest,
        expires_at=now + _LIFETIMES[purpose],
        used_at=None,
        created_by=change.caller.user_id if change.caller else None,
        created_at=now,
    )
    change.session.add(row)
    return IssuedOneTimeToken(minted.plaintext, row.expires_at)


async def redeem(change: Change, token: str, purpose: str) -> RedeemedToken:
    """Use up a token and return the active user that it was issued for. Raises `BadOneTimeToken`."""
    query = select(OneTimeTokenRow).where(
        OneTimeTokenRow.digest == tokens.digest(token),
        OneTimeTokenRow.purpose == purpose,
        OneTimeTokenRow.used_at.is_(None),
        OneTimeTokenRow.expires_at > utc_now(),
    )
    # Locked, so that of two concurrent requests the second sees that the token is used.
    row = (await change.session.scalars(query.with_for_update())).one_or_none()
    if row is None:
        raise BadOneTimeToken
    user = await change.session.get(UserRow, row.user_id, with_for_update=True)
    if user is None or not user.is_active:
        raise BadOneTimeToken
    row.used_at = utc_now()
    return RedeemedToken(user, issued_by_person=row.created_by is not None)


async def revoke_unused(change: Change, user: UserRow) -> None:
    """Revoke the user's unused tokens."""
    await change.session.execute(
        delete(OneTimeTokenRow).where(OneTimeTokenRow.user_id == user.id, OneTimeTokenRow.used_at.is_(None))
    )

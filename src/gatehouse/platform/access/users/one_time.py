"""Tokens that are good once: invitations and password resets. Issued by administrators, delivered by whatever way they
choose; only digests are kept."""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy import delete, select

from gatehouse.foundation import tokens
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.ids import new_id
from gatehouse.platform.access.users.errors import BadOneTimeToken
from gatehouse.platform.access.users.table import OneTimeTokenRow, UserRow
from gatehouse.platform.change import Change

INVITATION: Final = "invitation"
PASSWORD_RESET: Final = "password_reset"  # noqa: S105 - a purpose's name

_LIFETIMES: Final = {INVITATION: timedelta(days=7), PASSWORD_RESET: timedelta(hours=24)}
_PREFIXES: Final = {INVITATION: "inv_", PASSWORD_RESET: "pwr_"}


class Redeemed(NamedTuple):
    """`issued_by_person` is False for a token that a machine made: its program has seen the token."""

    user: UserRow
    issued_by_person: bool


class Issued(NamedTuple):
    token: str
    expires_at: datetime


async def issue(change: Change, user: UserRow, purpose: str) -> Issued:
    """A token for this user. Earlier ones of any purpose are void: the newest word counts."""
    await withdraw(change, user)
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
    return Issued(minted.plaintext, row.expires_at)


async def redeem(change: Change, token: str, purpose: str) -> Redeemed:
    """The active user that a token was issued for; from then on it is used. Raises `BadOneTimeToken`."""
    query = select(OneTimeTokenRow).where(
        OneTimeTokenRow.digest == tokens.digest(token),
        OneTimeTokenRow.purpose == purpose,
        OneTimeTokenRow.used_at.is_(None),
        OneTimeTokenRow.expires_at > utc_now(),
    )
    # Locked: of two that come at once the second finds it used.
    row = (await change.session.scalars(query.with_for_update())).one_or_none()
    if row is None:
        raise BadOneTimeToken
    user = await change.session.get(UserRow, row.user_id, with_for_update=True)
    if user is None or not user.is_active:
        raise BadOneTimeToken
    row.used_at = utc_now()
    return Redeemed(user, issued_by_person=row.created_by is not None)


async def withdraw(change: Change, user: UserRow) -> None:
    """Voids what was issued for this user and not used yet."""
    await change.session.execute(
        delete(OneTimeTokenRow).where(OneTimeTokenRow.user_id == user.id, OneTimeTokenRow.used_at.is_(None))
    )

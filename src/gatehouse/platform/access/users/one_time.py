"""One-time tokens for invitations, password resets and confirmations of an address.

The platform mails the tokens if mail is configured (`users.mailing`), or an administrator delivers them. The database
stores their digests. Until a token's mail is sent, it also stores the sealed token.
"""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy import delete, func, select

from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets import tokens
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.platform.access.users.errors import BadOneTimeToken
from gatehouse.platform.access.users.mailing import queue_mail
from gatehouse.platform.access.users.table import OneTimeTokenRow, UserRow
from gatehouse.platform.changes.change import Change

INVITATION: Final = "invitation"
PASSWORD_RESET: Final = "password_reset"  # noqa: S105 - a purpose's name
ADDRESS_CONFIRMATION: Final = "address_confirmation"

_LIFETIMES: Final = {
    INVITATION: timedelta(days=7), PASSWORD_RESET: timedelta(hours=24), ADDRESS_CONFIRMATION: timedelta(days=7),
}  # fmt: skip
_PREFIXES: Final = {INVITATION: "inv_", PASSWORD_RESET: "pwr_", ADDRESS_CONFIRMATION: "adr_"}
#: Maximum number of mails per hour that anybody can request for an account.
_MAX_REQUESTED_MAILS_PER_HOUR: Final = 3


class RedeemedToken(NamedTuple):
    """A redeemed token. `proves_address` is False if a program issued the token and received it in the response."""

    user: UserRow
    proves_address: bool
    by_mail: bool


class IssuedOneTimeToken(NamedTuple):
    """A new token and its expiry. `token` is None if the token is mailed."""

    token: str | None
    expires_at: datetime


async def issue(change: Change, user: UserRow, purpose: str, *, mail_with: Sealer | None = None) -> IssuedOneTimeToken:
    """Issue a token for this user. Earlier tokens of any purpose become void. With the sealer `mail_with` the token is
    mailed."""
    await revoke_unused(change, user)
    return await _add(change, user, purpose, _LIFETIMES[purpose], mail_with)


async def mail_on_request(
    change: Change, user: UserRow, purpose: str, sealer: Sealer, *, lifetime: timedelta | None = None
) -> datetime | None:
    """Mail a token that was requested by the user, or by anybody who knows the address. Earlier tokens stay valid, so
    that a stranger cannot void them. Return the token's expiry; None if the hourly maximum of mails is reached. The
    caller has locked the user's row, so that concurrent requests are counted."""
    query = select(func.count()).where(
        OneTimeTokenRow.user_id == user.id,
        OneTimeTokenRow.purpose == purpose,
        OneTimeTokenRow.by_mail,
        OneTimeTokenRow.created_at > utc_now() - timedelta(hours=1),
    )
    if (await change.session.scalar(query) or 0) >= _MAX_REQUESTED_MAILS_PER_HOUR:
        return None
    return (await _add(change, user, purpose, lifetime or _LIFETIMES[purpose], sealer)).expires_at


async def _add(
    change: Change, user: UserRow, purpose: str, lifetime: timedelta, mail_with: Sealer | None
) -> IssuedOneTimeToken:
    minted, now = tokens.mint_token(_PREFIXES[purpose]), utc_now()
    row = OneTimeTokenRow(
        id=new_id(),
        tenant_id=user.tenant_id,
        user_id=user.id,
        purpose=purpose,
        digest=minted.digest,
        expires_at=now + lifetime,
        used_at=None,
        created_by=change.caller.user_id if change.caller else None,
        created_at=now,
    )
    change.session.add(row)
    if mail_with is not None:
        await queue_mail(change, mail_with, row, minted.plaintext)
    return IssuedOneTimeToken(None if mail_with else minted.plaintext, row.expires_at)


async def find(change: Change, token: str, purpose: str) -> tuple[OneTimeTokenRow, UserRow]:
    """Return a valid token and its active user, both locked. Raises `BadOneTimeToken`."""
    query = select(OneTimeTokenRow).where(
        OneTimeTokenRow.digest == tokens.digest(token),
        OneTimeTokenRow.purpose == purpose,
        OneTimeTokenRow.used_at.is_(None),
        OneTimeTokenRow.expires_at > utc_now(),
    )
    # Locks the row, so that the second of two concurrent requests sees that the token is used.
    row = (await change.session.scalars(query.with_for_update())).one_or_none()
    if row is None:
        raise BadOneTimeToken
    user = await change.session.get(UserRow, row.user_id, with_for_update=True)
    if user is None or not user.is_active:
        raise BadOneTimeToken
    return row, user


async def redeem(change: Change, token: str, purpose: str) -> RedeemedToken:
    """Use up a token and return the active user that it was issued for. Raises `BadOneTimeToken`."""
    row, user = await find(change, token, purpose)
    row.used_at, row.sealed_token = utc_now(), None
    return RedeemedToken(user, proves_address=row.by_mail or row.created_by is not None, by_mail=row.by_mail)


async def revoke_unused(change: Change, user: UserRow) -> None:
    """Revoke the user's unused tokens."""
    await change.session.execute(
        delete(OneTimeTokenRow).where(OneTimeTokenRow.user_id == user.id, OneTimeTokenRow.used_at.is_(None))
    )

"""Counts the wrong second factors of each user in the database, so that all workers share the count and a restart keeps
it.

The limits are ten a minute and a hundred a day. With ten a minute alone, an attacker who knows the password would guess
six digits within weeks.
"""

from datetime import timedelta
from typing import Final

from sqlalchemy import select

from gatehouse.foundation.clock import utc_now
from gatehouse.platform.access.mfa.errors import TooManyAttempts
from gatehouse.platform.access.mfa.table import AttemptsRow
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.changes.change import Change

#: pairs of window in seconds and maximum number of wrong factors
_LIMITS: Final = ((60, 10), (86_400, 100))


async def limit_error(change: Change, user: UserRow) -> TooManyAttempts | None:
    """Return the error to raise if the user has exceeded a limit. The caller has locked the user's row."""
    rows = (await change.session.scalars(select(AttemptsRow).where(AttemptsRow.user_id == user.id))).all()
    attempts_by_span = {row.span_seconds: row for row in rows}
    for span_seconds, maximum in _LIMITS:
        row = attempts_by_span.get(span_seconds)
        if row is not None and row.wrong >= maximum:
            seconds_left = (row.since + timedelta(seconds=span_seconds) - utc_now()).total_seconds()
            if seconds_left > 0:
                return TooManyAttempts(retry_after=int(seconds_left) + 1)
    return None


async def count_wrong_factor(change: Change, user: UserRow) -> None:
    """Count one more wrong factor."""
    now = utc_now()
    for span_seconds, _ in _LIMITS:
        row = await change.session.get(AttemptsRow, (user.id, span_seconds))
        if row is None:
            row = AttemptsRow(tenant_id=user.tenant_id, user_id=user.id, span_seconds=span_seconds, since=now, wrong=0)
            change.session.add(row)
        elif row.since + timedelta(seconds=span_seconds) <= now:
            row.since, row.wrong = now, 0
        row.wrong += 1

"""Wrong second factors are counted for each user, in the database: all workers share the count and a restart keeps it.

Ten a minute, and a hundred a day: with the password known, guessing six digits at ten a minute would take weeks.
"""

from datetime import timedelta
from typing import Final

from sqlalchemy import select

from gatehouse.foundation.clock import utc_now
from gatehouse.platform.access.mfa.errors import TooManyAttempts
from gatehouse.platform.access.mfa.table import AttemptsRow
from gatehouse.platform.access.users.table import UserRow
from gatehouse.platform.change import Change

#: seconds, and how many wrong ones there may be in them
_BOUNDS: Final = ((60, 10), (86_400, 100))


async def refused(change: Change, user: UserRow) -> TooManyAttempts | None:
    """The user's row is locked: nobody counts at the same time."""
    rows = (await change.session.scalars(select(AttemptsRow).where(AttemptsRow.user_id == user.id))).all()
    wrong = {row.span_seconds: row for row in rows}
    for span, most in _BOUNDS:
        row = wrong.get(span)
        if row is not None and row.wrong >= most:
            left = (row.since + timedelta(seconds=span) - utc_now()).total_seconds()
            if left > 0:
                return TooManyAttempts(retry_after=int(left) + 1)
    return None


async def count(change: Change, user: UserRow) -> None:
    """One more."""
    now = utc_now()
    for span, _ in _BOUNDS:
        row = await change.session.get(AttemptsRow, (user.id, span))
        if row is None:
            row = AttemptsRow(tenant_id=user.tenant_id, user_id=user.id, span_seconds=span, since=now, wrong=0)
            change.session.add(row)
        elif row.since + timedelta(seconds=span) <= now:
            row.since, row.wrong = now, 0
        row.wrong += 1

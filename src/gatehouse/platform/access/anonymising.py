"""After a user's removal: the audit chain forgets who they were, and still holds (reference 2, SCIM, DELETE).

So does the archive, at the archiver's next look (`archive_forgets`). Under a legal hold nobody is taken out; it is done
once the hold is released.
"""

from datetime import timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import text

from gatehouse.foundation.clock import utc_now
from gatehouse.platform.change import Change
from gatehouse.platform.jobs import Tools, defer, job

#: Requests still on their way into the records when a user is removed arrive within these times; an outpost's, within
#: a day.
_AFTER: Final = (timedelta(), timedelta(hours=1), timedelta(days=2))
#: Events at a time, so that nobody waits long for their locks.
_MOST: Final = 5_000
_UNDER_HOLD: Final = timedelta(days=1)
_HELD: Final = text("SELECT gatehouse_held(CAST(:tenant AS uuid))")
_ANONYMISE: Final = text("SELECT gatehouse_anonymise(CAST(:tenant AS uuid), CAST(:person AS uuid), :most)")


async def forget(change: Change, user_id: UUID) -> None:
    """Takes a user, removed by the same change, out of the chain: it queues the jobs that do so."""
    named = {"tenant_id": str(change.tenant_id), "user_id": str(user_id)}
    for wait in _AFTER:
        await defer(change.session, anonymise, at=utc_now() + wait if wait else None, **named)


@job("access.anonymise")
async def anonymise(tools: Tools, *, tenant_id: str, user_id: str) -> None:
    done = _MOST
    while done == _MOST:
        async with tools.database.service() as session:
            values = {"tenant": tenant_id, "person": user_id, "most": _MOST}
            if (await session.execute(_HELD, values)).scalar_one():
                await defer(session, anonymise, at=utc_now() + _UNDER_HOLD, tenant_id=tenant_id, user_id=user_id)
                await session.commit()
                return
            done = (await session.execute(_ANONYMISE, values)).scalar_one()
            await session.commit()

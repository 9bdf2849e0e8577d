"""Anonymizes removed users in the audit chain, which stays verifiable (docs/scim.md).

The archiver anonymizes the archived records at its next run (`archive_forgets`). Under a legal hold anonymization waits
until the hold is released.
"""

from datetime import timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import text

from gatehouse.foundation.clock import utc_now
from gatehouse.platform.background.jobs import JOBS, Tools
from gatehouse.platform.changes.change import Change

#: Delays of the runs after the removal. The later runs anonymize records that arrive after the removal: records of
#: requests that were in progress, and records of outposts, which arrive within a day.
_RUN_DELAYS: Final = (timedelta(), timedelta(hours=1), timedelta(days=2))
#: Maximum number of events of one transaction, so that it holds its locks only briefly.
_MAX_EVENTS_PER_BATCH: Final = 5_000
_LEGAL_HOLD_RETRY_DELAY: Final = timedelta(days=1)
_HAS_LEGAL_HOLD: Final = text("SELECT gatehouse_held(CAST(:tenant AS uuid))")
_ANONYMISE: Final = text("SELECT gatehouse_anonymise(CAST(:tenant AS uuid), CAST(:person AS uuid), :max_rows)")


async def queue_anonymisation(change: Change, user_id: UUID) -> None:
    """Queue the jobs that anonymize a user who is removed by the same change."""
    for delay in _RUN_DELAYS:
        run_at = utc_now() + delay if delay else None
        await JOBS.queue(change.session, anonymise, change.tenant_id, at=run_at, user_id=str(user_id))


@JOBS.job("access.anonymise")
async def anonymise(tools: Tools, tenant_id: UUID, *, user_id: str) -> None:
    anonymised_count = _MAX_EVENTS_PER_BATCH
    while anonymised_count == _MAX_EVENTS_PER_BATCH:
        async with tools.database.service() as session:
            values = {"tenant": tenant_id, "person": user_id, "max_rows": _MAX_EVENTS_PER_BATCH}
            if (await session.execute(_HAS_LEGAL_HOLD, values)).scalar_one():
                run_at = utc_now() + _LEGAL_HOLD_RETRY_DELAY
                await JOBS.queue(session, anonymise, tenant_id, at=run_at, user_id=user_id)
                await session.commit()
                return
            anonymised_count = (await session.execute(_ANONYMISE, values)).scalar_one()
            await session.commit()

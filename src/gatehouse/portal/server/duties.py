"""Lists the periodic work of the portal (duties), and defines the job that deletes obsolete rows."""

from typing import Final

from sqlalchemy import text

from gatehouse.administration.duties import Duty
from gatehouse.portal.jobs import JOBS, JobContext
from gatehouse.portal.organizations.jobs import update_limits
from gatehouse.portal.outposts.jobs import push_regularly, watch_outposts

_PRUNE: Final = (
    text("DELETE FROM revoked_tokens WHERE expires_at < now()"),
    text("DELETE FROM notifications WHERE resolved_at < now() - interval '90 days'"),
    text("DELETE FROM jobs WHERE status IN ('done', 'failed') AND updated_at < now() - interval '30 days'"),
)


@JOBS.scheduled("prune", every_seconds=600)
async def prune(context: JobContext) -> None:
    """Deletes obsolete rows."""
    for statement in _PRUNE:
        async with context.database.service() as session:
            await session.execute(statement)
            await session.commit()


#: Duties of every process of the portal.
DUTIES: Final[tuple[Duty[JobContext], ...]] = (
    Duty("limits of plans", 6 * 3600.0, update_limits),
    Duty("trust in outposts", 5.0, push_regularly),
    Duty("stale outposts", 10.0, watch_outposts),
)

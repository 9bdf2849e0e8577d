"""Jobs that keep the tables small, and bring back jobs whose worker was killed."""

from datetime import UTC, datetime
from typing import Any, Final

from procrastinate.exceptions import UniqueViolation
from procrastinate.jobs import Status
from sqlalchemy import text

from gatehouse.platform.jobs import Tools, app, scheduled

_MOST: Final = 10_000
#: Times that a statement is repeated at most; the rest goes the next time.
_ROUNDS: Final = 200
#: What each statement deletes is of no use to anyone any more. Bounded, so that nobody waits long for its locks.
_PRUNE: Final = tuple(
    text(f"DELETE FROM {table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {table} WHERE {what} LIMIT {_MOST}))")  # noqa: S608
    for table, what in (
        # A worker that was away for longer loads everything anew.
        ("changes", "at < now() - interval '1 day'"),
        ("nodes", "seen_at < now() - interval '1 hour'"),
        ("revocations", "expires_at < now()"),
        ("one_time_tokens", "expires_at < now() - interval '1 day'"),
        ("pending_logins", "expires_at < now()"),
        ("sign_in_tries", "ended < now() - interval '1 minute'"),
        ("mfa_challenges", "expires_at < now()"),
        ("refresh_tokens", "expires_at < now() - interval '1 day'"),
        # The access tokens that they were traded for are over too.
        ("authorization_codes", "expires_at < now() - interval '1 hour'"),
        # A while longer than they are good for, so that whoever comes late is told that.
        ("saml_requests", "expires_at < now() - interval '1 day'"),
        ("saml_seen", "expires_at < now() - interval '1 hour'"),
        # A while longer, for whoever wonders what was told.
        ("outbox", "dispatched_at < now() - interval '1 hour'"),
        # The longest window of an alert rule has a week.
        ("usage_minutes", "minute < now() - interval '8 days'"),
        ("usage_hours", "hour < now() - interval '8 days'"),
        # Those of an organization that was ended at once; under a legal hold, none.
        ("dlp_samples", "NOT EXISTS (SELECT FROM legal_holds h WHERE h.tenant_id = dlp_samples.tenant_id)"
         " AND EXISTS (SELECT FROM tenants t WHERE t.id = dlp_samples.tenant_id AND (t.deleted_at IS NOT NULL"
         " OR dlp_samples.timestamp < now()"
         " - make_interval(days => coalesce((t.dlp_sampling->>'retention_days')::int, 30))))"),
        # An organization's newest stay.
        ("dlp_samples", "NOT EXISTS (SELECT FROM legal_holds h WHERE h.tenant_id = dlp_samples.tenant_id)"
         " AND id IN (SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY tenant_id ORDER BY id DESC)"
         " AS place FROM dlp_samples) ranked WHERE place > 10000)"),
        ("alert_history", "triggered_at < now() - interval '1 year'"),
        ("latency_reports", "at < now() - interval '10 minutes'"),
        # As long as the changes that they confirm are told.
        ("outpost_confirmations", "at < now() - interval '1 day'"),
        ("outpost_nodes", "seen_at < now() - interval '30 days'"),
        # An outpost may come back after a year; what it then hands in is too old.
        ("outpost_positions", "updated_at < now() - interval '400 days'"),
        # Whoever was told now would not know what to do with it.
        ("outbox", "dispatched_at IS NULL AND created_at < now() - interval '7 days'"),
        ("procrastinate_jobs", "status IN ('failed', 'cancelled', 'aborted') AND scheduled_at IS NULL"
         " AND NOT EXISTS (SELECT FROM procrastinate_events e WHERE e.job_id = procrastinate_jobs.id"
         " AND e.at > now() - interval '7 days')"),
    )
)  # fmt: skip

#: Periods of budgets that nobody looks at any more, with what was leased of them: those of minutes soon.
_PRUNE_PERIODS: Final = tuple(
    text(
        "WITH gone AS (DELETE FROM budget_periods WHERE ctid = ANY(ARRAY(SELECT ctid FROM budget_periods"  # noqa: S608
        f" WHERE {what} LIMIT {_MOST})) RETURNING budget_id, period_start),"
        " leases AS (DELETE FROM budget_leases l USING gone WHERE l.budget_id = gone.budget_id"
        " AND l.period_start = gone.period_start) SELECT count(*) FROM gone"
    )
    for what in (
        "period_end < now() - interval '60 days'",
        "period_end < now() - interval '2 days' AND period_end - period_start <= interval '1 minute'",
    )
)

_ENSURE: Final = text("SELECT gatehouse_ensure_partitions(:first, 3)")


@scheduled("keeper.prune", "*/10 * * * *")
async def prune(tools: Tools) -> None:
    for statement in _PRUNE:
        for _ in range(_ROUNDS):
            async with tools.database.service() as session:
                pruned: Any = await session.execute(statement)
                await session.commit()
            if pruned.rowcount < _MOST:
                break
    for statement in _PRUNE_PERIODS:
        for _ in range(_ROUNDS):
            async with tools.database.service() as session:
                periods = (await session.execute(statement)).scalar_one()
                await session.commit()
            if periods < _MOST:
                break


@scheduled("keeper.partitions", "17 * * * *")
async def ensure_partitions(tools: Tools) -> None:
    """This month's and the next two."""
    async with tools.database.service() as session:
        await session.execute(_ENSURE, {"first": datetime.fromtimestamp(tools.clock.now(), UTC).date()})
        await session.commit()


# Not alone: where the worker that does this is killed, another has to be free to.
@scheduled("keeper.stalled_jobs", "* * * * *", alone=False)
async def retry_stalled(tools: Tools) -> None:
    """Jobs of workers that have not been heard of for half a minute."""
    for job in await app.job_manager.get_stalled_jobs():
        try:
            await app.job_manager.retry_job(job)
        except UniqueViolation:
            # A scheduled one whose next run is queued already, and would wait for this one for ever.
            await app.job_manager.finish_job(job, Status.FAILED, delete_job=True)

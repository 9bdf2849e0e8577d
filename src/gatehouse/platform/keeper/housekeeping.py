"""Jobs that delete old rows, create partitions, and take over queued jobs of an earlier version."""

from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import text

from gatehouse.platform.background.jobs import JOBS, Tools

_MAX_ROWS: Final = 10_000
#: Maximum number of repetitions of a statement in one run. Remaining rows are deleted in the next run.
_MAX_REPETITIONS: Final = 200
#: Statements that delete obsolete rows. Each deletes a limited number of rows, so that it holds its locks only briefly.
_PRUNE: Final = tuple(
    text(f"DELETE FROM {table} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {table} WHERE {condition} LIMIT {_MAX_ROWS}))")  # noqa: S608
    for table, condition in (
        # A worker that was disconnected for longer than a day reloads everything.
        ("changes", "at < now() - interval '1 day'"),
        ("nodes", "seen_at < now() - interval '1 hour'"),
        ("revocations", "expires_at < now()"),
        ("one_time_tokens", "expires_at < now() - interval '1 day'"),
        ("pending_logins", "expires_at < now()"),
        ("sign_in_tries", "ended < now() - interval '1 minute'"),
        ("mfa_challenges", "expires_at < now()"),
        ("refresh_tokens", "expires_at < now() - interval '1 day'"),
        # The access tokens that were issued for these codes have expired too.
        ("authorization_codes", "expires_at < now() - interval '1 hour'"),
        # Requests are kept after their expiry, so that a late response gets the right error.
        ("saml_requests", "expires_at < now() - interval '1 day'"),
        ("saml_seen", "expires_at < now() - interval '1 hour'"),
        # Dispatched events are kept for an hour for diagnosis.
        ("outbox", "dispatched_at < now() - interval '1 hour'"),
        # The longest window of an alert rule is a week.
        ("usage_minutes", "minute < now() - interval '8 days'"),
        # The longest series of usage is 30 days.
        ("usage_hours", "hour < now() - interval '32 days'"),
        ("alias_hours", "hour < now() - interval '32 days'"),
        # Budgets and invoices are compared with the same month of the previous year.
        ("spend_days", "day < now() - interval '400 days' AND records <= 0"),
        # Only the present month is read.
        ("spend_key_months", "month < now() - interval '2 months'"),
        # Samples of a deleted organization are deleted at once. Under a legal hold, no samples are deleted.
        ("dlp_samples", "NOT EXISTS (SELECT FROM legal_holds h WHERE h.tenant_id = dlp_samples.tenant_id)"
         " AND EXISTS (SELECT FROM tenants t WHERE t.id = dlp_samples.tenant_id AND (t.deleted_at IS NOT NULL"
         " OR dlp_samples.timestamp < now()"
         " - make_interval(days => coalesce((t.dlp_sampling->>'retention_days')::int, 30))))"),
        # Only the newest samples of an organization are kept.
        ("dlp_samples", "NOT EXISTS (SELECT FROM legal_holds h WHERE h.tenant_id = dlp_samples.tenant_id)"
         " AND id IN (SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY tenant_id ORDER BY id DESC)"
         " AS place FROM dlp_samples) ranked WHERE place > 10000)"),
        ("files", "expires_at < now()"),
        # The lines are deleted first, so that no statement deletes the lines of many batches.
        ("batch_lines", "batch_id IN (SELECT id FROM batches WHERE delete_at < now())"),
        ("batches", "delete_at < now() AND NOT EXISTS (SELECT FROM batch_lines l WHERE l.batch_id = batches.id)"),
        ("alert_history", "triggered_at < now() - interval '1 year'"),
        ("latency_reports", "at < now() - interval '10 minutes'"),
        # Confirmations are kept as long as the changes that they confirm.
        ("outpost_confirmations", "at < now() - interval '1 day'"),
        ("outpost_nodes", "seen_at < now() - interval '30 days'"),
        # If an outpost returns after a year, its records are refused as too old.
        ("outpost_positions", "updated_at < now() - interval '400 days'"),
        # An event that could not be dispatched for a week is of no use to its receivers any more.
        ("outbox", "dispatched_at IS NULL AND created_at < now() - interval '7 days'"),
        ("jobs", "status IN ('done', 'failed') AND updated_at < now() - interval '7 days'"),
    )
)  # fmt: skip

#: Statements that delete obsolete budget periods and their leases. Periods of a minute are deleted sooner than others.
_PRUNE_PERIODS: Final = tuple(
    text(
        "WITH gone AS (DELETE FROM budget_periods WHERE ctid = ANY(ARRAY(SELECT ctid FROM budget_periods"  # noqa: S608
        f" WHERE {condition} LIMIT {_MAX_ROWS})) RETURNING budget_id, period_start),"
        " leases AS (DELETE FROM budget_leases l USING gone WHERE l.budget_id = gone.budget_id"
        " AND l.period_start = gone.period_start) SELECT count(*) FROM gone"
    )
    for condition in (
        "period_end < now() - interval '60 days'",
        "period_end < now() - interval '2 days' AND period_end - period_start <= interval '1 minute'",
    )
)

_ENSURE: Final = text("SELECT gatehouse_ensure_partitions(:first, 3)")
_TAKE_OVER: Final = text("SELECT gatehouse_take_over_jobs()")


@JOBS.scheduled("keeper.prune", every_seconds=600)
async def prune(tools: Tools) -> None:
    """Delete all obsolete rows."""
    for statement in _PRUNE:
        for _ in range(_MAX_REPETITIONS):
            async with tools.database.service() as session:
                result: Any = await session.execute(statement)
                await session.commit()
            if result.rowcount < _MAX_ROWS:
                break
    for statement in _PRUNE_PERIODS:
        for _ in range(_MAX_REPETITIONS):
            async with tools.database.service() as session:
                periods = (await session.execute(statement)).scalar_one()
                await session.commit()
            if periods < _MAX_ROWS:
                break


@JOBS.scheduled("keeper.partitions", every_seconds=3600, offset_seconds=17 * 60)
async def ensure_partitions(tools: Tools) -> None:
    """Create the partitions of this month and of the next two months."""
    async with tools.database.service() as session:
        await session.execute(_ENSURE, {"first": datetime.fromtimestamp(tools.clock.now(), UTC).date()})
        await session.commit()


@JOBS.scheduled("keeper.take_over_jobs", every_seconds=60)
async def take_over_jobs(tools: Tools) -> None:
    """Take over the jobs that a process of an earlier version has queued."""
    async with tools.database.service() as session:
        await session.execute(_TAKE_OVER)
        await session.commit()

"""Queries for the system's health. Each query reads a bounded number of rows."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId

#: The period of a summary, and the maximum number of its newest records that are read.
PERIOD_SECONDS: Final = 3600
MAX_RECORDS: Final = 50_000

#: Workers whose last heartbeat is older than this are not shown.
_NODE_SHOWN_SECONDS: Final = 120

_SCHEMA_VERSION = text("SELECT version_num FROM alembic_version")
_NODES = text(
    "SELECT name, kind, revision, status, EXTRACT(EPOCH FROM now() - seen_at)::float8 AS silent,"
    " kind = 'gateway' AS follows, (SELECT revision FROM revision_head) - revision AS behind FROM nodes"
    " WHERE seen_at > now() - make_interval(secs => :shown) ORDER BY kind, name"
)
_JOB_WORKERS = text(
    "SELECT count(*) AS seen,"
    " (SELECT count(*) FROM jobs WHERE status = 'queued' AND run_at <= now()) AS waiting"
    " FROM nodes WHERE status->>'jobs' = 'true' AND seen_at > now() - interval '1 minute'"
)
_PROVIDERS = text(
    "SELECT id, enabled, unhealthy, health_check_status, health_latency_ms, last_health_check, health_error"
    " FROM providers WHERE tenant_id = :tenant ORDER BY id LIMIT 500"
)

_METRICS = """
SELECT count(*) AS total,
       count(*) FILTER (WHERE status = 'success') AS success,
       count(*) FILTER (WHERE dlp_action IS NOT NULL) AS scanned,
       percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY latency_ms) AS latencies,
       count(*) FILTER (WHERE cache = 'hit') AS hits,
       count(cache) AS lookups
FROM ({newest}) AS newest
"""
_TRIGGERS = """
SELECT count(*) FILTER (WHERE status IN ('blocked', 'cancelled')) AS block,
       count(*) FILTER (WHERE status = 'redacted') AS redact,
       count(*) FILTER (WHERE status = 'logged') AS flag,
       count(*) FILTER (WHERE status IN ('pending', 'approved')) AS require_approval
FROM ({newest}) AS newest
"""
_OF_ONE = """
SELECT * FROM {table} WHERE tenant_id = :tenant AND timestamp > now() - make_interval(secs => :period)
ORDER BY timestamp DESC LIMIT :max_rows
"""
# The query has one subquery for each tenant, so that it scans the index of the key and not the whole partition.
_OF_ALL = """
SELECT one.* FROM tenants CROSS JOIN LATERAL (
    SELECT * FROM {table} WHERE tenant_id = tenants.id AND timestamp > now() - make_interval(secs => :period)
    ORDER BY timestamp DESC LIMIT :max_rows
) AS one LIMIT :max_rows
"""
_METRICS_OF_ONE = text(_METRICS.format(newest=_OF_ONE.format(table="usage_records")))
_METRICS_OF_ALL = text(_METRICS.format(newest=_OF_ALL.format(table="usage_records")))
_TRIGGERS_OF_ONE = text(_TRIGGERS.format(newest=_OF_ONE.format(table="dlp_events")))
_TRIGGERS_OF_ALL = text(_TRIGGERS.format(newest=_OF_ALL.format(table="dlp_events")))


async def schema_version(session: AsyncSession) -> str:
    return str((await session.execute(_SCHEMA_VERSION)).scalar_one())


async def nodes(session: AsyncSession) -> Sequence[Row[Any]]:
    return (await session.execute(_NODES, {"shown": _NODE_SHOWN_SECONDS})).all()


async def job_workers(session: AsyncSession) -> Row[Any]:
    return (await session.execute(_JOB_WORKERS)).one()


async def providers(session: AsyncSession, tenant_id: TenantId) -> Sequence[Row[Any]]:
    return (await session.execute(_PROVIDERS, {"tenant": tenant_id})).all()


async def metrics(session: AsyncSession, tenant_id: TenantId | None) -> tuple[Row[Any], Row[Any]]:
    """Return the requests and DLP decisions of a tenant in the last period. With `tenant_id` None, returns those of all
    tenants, for which the session must have the service role."""
    bounds: dict[str, Any] = {"period": PERIOD_SECONDS, "max_rows": MAX_RECORDS}
    if tenant_id is None:
        requests = await session.execute(_METRICS_OF_ALL, bounds)
        triggers = await session.execute(_TRIGGERS_OF_ALL, bounds)
    else:
        requests = await session.execute(_METRICS_OF_ONE, {**bounds, "tenant": tenant_id})
        triggers = await session.execute(_TRIGGERS_OF_ONE, {**bounds, "tenant": tenant_id})
    return requests.one(), triggers.one()

"""Metrics of the last hour for one organization. Operators get the metrics of all organizations."""

from typing import Any, Final

import psycopg
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.identity import Caller, TenantId
from gatehouse.platform.changes.change import DEFAULT_TENANT
from gatehouse.platform.operations.health import table
from gatehouse.platform.operations.health.patience import with_timeout
from gatehouse.platform.operations.health.schemas import DlpSummary, Latency, MetricsSummary, Requests, Triggers
from gatehouse.platform.request.ports import Host

PERIOD: Final = "PT1H"
#: Time limit for the queries, because the database may be busy or frozen.
_QUERY_TIMEOUT_SECONDS: Final = 5
_SET_TIMEOUT = text(f"SET LOCAL statement_timeout = '{_QUERY_TIMEOUT_SECONDS}s'")


class Unhealthy(Unavailable):
    code = "unhealthy"
    message = "The database does not answer."


async def of(host: Host, caller: Caller) -> MetricsSummary:
    """Return the metrics for `caller`. Raises `Unhealthy` if the database does not answer in time."""
    tenant_id = None if caller.operator else caller.tenant_id or DEFAULT_TENANT
    try:
        requests, triggers, active_calls = await with_timeout(_query(host, tenant_id), _QUERY_TIMEOUT_SECONDS + 0.5)
    except (SQLAlchemyError, psycopg.Error, OSError, TimeoutError):
        raise Unhealthy from None
    return MetricsSummary(
        period=PERIOD,
        requests=_requests(requests),
        latency=_latency(requests.latencies),
        dlp=DlpSummary(requests_scanned=requests.scanned, triggers=Triggers.model_validate(triggers)),
        active_connections=active_calls,
        cache_hit_rate=round(requests.hits / requests.lookups, 4) if requests.lookups else 0.0,
    )


async def _query(host: Host, tenant_id: TenantId | None) -> tuple[Any, Any, int]:
    async with host.database.service() if tenant_id is None else host.database.tenant(tenant_id) as session:
        await session.execute(_SET_TIMEOUT)
        requests, triggers = await table.metrics(session, tenant_id)
        return requests, triggers, await _active_calls(session)


async def _active_calls(session: AsyncSession) -> int:
    return sum(int(row.status.get("active", 0)) for row in await table.nodes(session))


def _requests(row: Any) -> Requests:
    failures = row.total - row.success
    rate = round(failures / row.total, 4) if row.total else 0.0
    return Requests(total=row.total, success=row.success, error=failures, error_rate=rate)


def _latency(percentiles: list[float] | None) -> Latency:
    if percentiles is None:
        return Latency(p50_ms=None, p95_ms=None, p99_ms=None)
    p50, p95, p99 = (round(value, 3) for value in percentiles)
    return Latency(p50_ms=p50, p95_ms=p95, p99_ms=p99)

"""The components of the system's health. Each component has a `status`. The status of a component that cannot be
queried is `unknown`.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec
import psycopg
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.detection.service.detectors import Health
from gatehouse.engine.routing.circuits import OpenCircuit
from gatehouse.foundation.counters.shared import RedisCounters
from gatehouse.foundation.identity import Caller
from gatehouse.platform.changes.change import DEFAULT_TENANT
from gatehouse.platform.operations.health import table
from gatehouse.platform.operations.health.patience import with_timeout
from gatehouse.platform.request.ports import Host

Component = dict[str, Any]

#: Time limit for all database queries together.
_DATABASE_TIMEOUT_SECONDS: Final = 3.0
#: Time after which a process is shown as silent. The longest interval between two heartbeats is 5 seconds.
_SILENT_AFTER_SECONDS: Final = 15.0

#: The status of a component, by the result of a provider's health check.
_PROVIDER_STATUSES: Final = {"healthy": "healthy", "degraded": "degraded", "unreachable": "unhealthy"}


async def all_of(host: Host, caller: Caller) -> dict[str, Component]:
    """Return all components by name. Does not raise: if the database is not available, components that need it are
    `unknown`."""
    components: dict[str, Component] = {
        "database": {"status": "unhealthy", "latency_ms": None, "pool": _pool(host)},
        "redis": _redis(host),
        **await _tiers(host, caller),
        "celery_workers": {"status": "unknown"},
        "providers": {},
        "journal": _journal(host),
        "nodes": {"status": "unknown"},
    }
    queried: dict[str, Component] = {}
    try:
        await with_timeout(_query_database(host, caller, queried), _DATABASE_TIMEOUT_SECONDS)
    except (SQLAlchemyError, psycopg.Error, OSError, TimeoutError) as error:
        components["database"]["detail"] = type(error).__name__
        # The result of the query is removed, because the first queries may have succeeded before the failure.
        queried.pop("database", None)
    return {**components, **queried}


async def _query_database(host: Host, caller: Caller, queried: dict[str, Component]) -> None:
    """Query the components into `queried`. Uses the tenant's own role, so that the result contains only what the tenant
    may see."""
    async with host.database.tenant(caller.tenant_id or DEFAULT_TENANT, operator=caller.operator) as session:
        for name, query in _QUERIES.items():
            queried[name] = await query(host, session, caller)


def overall(components: dict[str, Component]) -> str:
    """Return the status of the system. It is `unhealthy` without the database, and `degraded` if a component is
    degraded or unhealthy. Unknown components do not affect it."""
    if components["database"]["status"] == "unhealthy":
        return "unhealthy"
    parts = [part for name, part in components.items() if name != "providers"]
    parts += components["providers"].values()
    return "degraded" if any(part["status"] in {"degraded", "unhealthy"} for part in parts) else "healthy"


async def _database(host: Host, session: AsyncSession, caller: Caller) -> Component:
    started = time.monotonic()
    await table.schema_version(session)
    return {"status": "healthy", "latency_ms": _ms(time.monotonic() - started), "pool": _pool(host)}


async def _workers(host: Host, session: AsyncSession, caller: Caller) -> Component:
    row = await table.job_workers(session)
    component: Component = {"status": "healthy" if row.seen else "degraded", "workers": row.seen}
    if caller.operator:
        component["waiting_jobs"] = row.waiting
    return (
        component
        if row.seen
        else {**component, "detail": "no worker for background jobs has sent a heartbeat for a minute"}
    )


async def _providers(host: Host, session: AsyncSession, caller: Caller) -> Component:
    tenant_id = caller.tenant_id or DEFAULT_TENANT
    rows = await table.providers(session, tenant_id)
    circuits = host.engine.circuits.open_of(tenant_id)
    return {row.id: _provider(row, circuits.get(row.id, ())) for row in rows}


def _provider(row: Any, circuits: Sequence[OpenCircuit]) -> Component:
    """Return the component of a provider. `circuits` are the circuits of this worker that are not closed."""
    status = "unhealthy" if row.unhealthy else _PROVIDER_STATUSES.get(row.health_check_status, "unknown")
    component: Component = {
        "status": status if row.enabled else "unknown",
        "latency_ms": row.health_latency_ms,
        "last_checked": row.last_health_check,
    }
    if circuits:
        component["circuits"] = [msgspec.to_builtins(circuit) for circuit in circuits]
    detail = row.health_error if row.enabled else "disabled"
    return {**component, "detail": detail} if detail else component


async def _nodes(host: Host, session: AsyncSession, caller: Caller) -> Component:
    rows = await table.nodes(session)
    late = [row for row in rows if row.silent > _SILENT_AFTER_SECONDS]
    component: Component = {
        "status": "degraded" if late else "healthy",
        "count": len(rows),
        "silent": len(late),
        "revision_lag": max((row.behind for row in rows if row.follows), default=0),
    }
    if caller.operator:
        # Only operators may see the names of machines.
        component["nodes"] = [
            {
                "name": row.name,
                "kind": row.kind,
                "silent_seconds": round(row.silent, 1),
                **({"revision": row.revision, "revision_lag": row.behind} if row.follows else {}),
                **row.status,
            }
            for row in rows
        ]
    return component


def _pool(host: Host) -> Component:
    available = host.database.available_connections()
    return {"max": host.database.pool_size, "available": available, "in_use": host.database.pool_size - available}


def _redis(host: Host) -> Component:
    if not isinstance(host.counters, RedisCounters):
        return {"status": "unknown", "detail": "not configured: each process counts separately"}
    if host.counters.degraded:
        return {"status": "degraded", "detail": "unavailable or slow: each process counts separately"}
    return {"status": "healthy"}


async def _tiers(host: Host, caller: Caller) -> dict[str, Component]:
    """Return the entities tier and the semantic tier, under the names that the API uses for them."""
    tiers = {tier: _tier(health, caller) for tier, health in (await host.detectors.health()).items()}
    return {"ner_service": tiers["ner"], "deberta_service": tiers["llm"]}


def _tier(health: Health, caller: Caller) -> Component:
    component: Component = {"status": health.status, "detail": health.detail}
    if caller.operator:
        component["waiting"] = health.waiting
        if health.cause is not None:
            component["cause"] = health.cause
    return component


def _journal(host: Host) -> Component:
    full, half = host.journal.full(), host.journal.half_full()
    return {"status": "unhealthy" if full else "degraded" if half else "healthy", "bytes": host.journal.size_bytes()}


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 2)


_QUERIES: Final[dict[str, Callable[[Host, AsyncSession, Caller], Awaitable[Component]]]] = {
    "database": _database,
    "celery_workers": _workers,
    "providers": _providers,
    "nodes": _nodes,
}

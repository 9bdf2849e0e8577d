"""What the system's health is made of. Each component tells its `status`; what cannot be asked is `unknown`."""

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
from gatehouse.platform.change import DEFAULT_TENANT
from gatehouse.platform.operations.health import table
from gatehouse.platform.operations.health.patience import patiently
from gatehouse.platform.ports import Host

Component = dict[str, Any]

#: Seconds that the database has for all its answers.
_PATIENCE: Final = 3.0
#: Seconds after which a process' silence is worth telling: the slowest of them beats every five.
_SILENT: Final = 15.0

#: What a health check says of a provider, in the components' words.
_PROVIDER_WORDS: Final = {"healthy": "healthy", "degraded": "degraded", "unreachable": "unhealthy"}


async def all_of(host: Host, caller: Caller) -> dict[str, Component]:
    """Every component by name. Never fails: what the database would have to tell is `unknown` without it."""
    told: dict[str, Component] = {
        "database": {"status": "unhealthy", "latency_ms": None, "pool": _pool(host)},
        "redis": _redis(host),
        **await _tiers(host, caller),
        "celery_workers": {"status": "unknown"},
        "providers": {},
        "journal": _journal(host),
        "nodes": {"status": "unknown"},
    }
    found: dict[str, Component] = {}
    try:
        await patiently(_from_the_database(host, caller, found), _PATIENCE)
    except (SQLAlchemyError, psycopg.Error, OSError, TimeoutError) as error:
        told["database"]["detail"] = type(error).__name__
        # It may have answered the first of what it was asked.
        found.pop("database", None)
    return {**told, **found}


async def _from_the_database(host: Host, caller: Caller, found: dict[str, Component]) -> None:
    """As the tenant's own role, so that what it may not see cannot be told either."""
    async with host.database.tenant(caller.tenant_id or DEFAULT_TENANT) as session:
        for name, ask in _ASKED.items():
            found[name] = await ask(host, session, caller)


def overall(components: dict[str, Component]) -> str:
    """`unhealthy` without the database; `degraded` where anything is less than healthy. What is unknown is no fault."""
    if components["database"]["status"] == "unhealthy":
        return "unhealthy"
    parts = [part for name, part in components.items() if name != "providers"]
    parts += components["providers"].values()
    return "degraded" if any(part["status"] in {"degraded", "unhealthy"} for part in parts) else "healthy"


async def _database(host: Host, session: AsyncSession, caller: Caller) -> Component:
    began = time.monotonic()
    await table.schema_version(session)
    return {"status": "healthy", "latency_ms": _ms(time.monotonic() - began), "pool": _pool(host)}


async def _workers(host: Host, session: AsyncSession, caller: Caller) -> Component:
    row = await table.job_workers(session)
    told: Component = {"status": "healthy" if row.seen else "degraded", "workers": row.seen}
    if caller.operator:
        told["waiting_jobs"] = row.waiting
    return told if row.seen else {**told, "detail": "no worker for background jobs was seen for a minute"}


async def _providers(host: Host, session: AsyncSession, caller: Caller) -> Component:
    tenant_id = caller.tenant_id or DEFAULT_TENANT
    rows = await table.providers(session, tenant_id)
    circuits = host.engine.circuits.open_of(tenant_id)
    return {row.id: _provider(row, circuits.get(row.id, ())) for row in rows}


def _provider(row: Any, circuits: Sequence[OpenCircuit]) -> Component:
    """`circuits`: those of this worker that are not closed."""
    status = "unhealthy" if row.unhealthy else _PROVIDER_WORDS.get(row.health_check_status, "unknown")
    told: Component = {
        "status": status if row.enabled else "unknown",
        "latency_ms": row.health_latency_ms,
        "last_checked": row.last_health_check,
    }
    if circuits:
        told["circuits"] = [msgspec.to_builtins(circuit) for circuit in circuits]
    detail = row.health_error if row.enabled else "disabled"
    return {**told, "detail": detail} if detail else told


async def _nodes(host: Host, session: AsyncSession, caller: Caller) -> Component:
    rows = await table.nodes(session)
    late = [row for row in rows if row.silent > _SILENT]
    told: Component = {
        "status": "degraded" if late else "healthy",
        "count": len(rows),
        "silent": len(late),
        "revision_lag": max((row.behind for row in rows if row.follows), default=0),
    }
    if caller.operator:
        # Machines' names are the platform's own affair.
        told["nodes"] = [
            {
                "name": row.name,
                "kind": row.kind,
                "silent_seconds": round(row.silent, 1),
                **({"revision": row.revision, "revision_lag": row.behind} if row.follows else {}),
                **row.status,
            }
            for row in rows
        ]
    return told


def _pool(host: Host) -> Component:
    available = host.database.available_connections()
    return {"max": host.database.pool_size, "available": available, "in_use": host.database.pool_size - available}


def _redis(host: Host) -> Component:
    if not isinstance(host.counters, RedisCounters):
        return {"status": "unknown", "detail": "not configured: each process counts by itself"}
    if host.counters.degraded:
        return {"status": "degraded", "detail": "away or slow: each process counts by itself"}
    return {"status": "healthy"}


async def _tiers(host: Host, caller: Caller) -> dict[str, Component]:
    """The entities and the semantic tier, by the contract's names."""
    told = {tier: _tier(health, caller) for tier, health in (await host.detectors.health()).items()}
    return {"ner_service": told["ner"], "deberta_service": told["llm"]}


def _tier(health: Health, caller: Caller) -> Component:
    told: Component = {"status": health.status, "detail": health.detail}
    if caller.operator:
        told["waiting"] = health.waiting
        if health.cause is not None:
            told["cause"] = health.cause
    return told


def _journal(host: Host) -> Component:
    full, half = host.journal.full(), host.journal.half_full()
    return {"status": "unhealthy" if full else "degraded" if half else "healthy", "bytes": host.journal.size_bytes()}


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 2)


_ASKED: Final[dict[str, Callable[[Host, AsyncSession, Caller], Awaitable[Component]]]] = {
    "database": _database,
    "celery_workers": _workers,
    "providers": _providers,
    "nodes": _nodes,
}

"""Probes of liveness, readiness and startup, and metrics. They are for machines, and need no credential. No probe
queries the database, because a probe that waits for a slow database would cause a restart of the worker."""

from typing import Annotated, Final, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from gatehouse.foundation.counters.shared import RedisCounters
from gatehouse.foundation.errors import Forbidden
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.http.scraping import metrics_response
from gatehouse.platform.operations.health.schemas import Alive, NotAlive, NotReady, Ready, Started, Starting
from gatehouse.platform.request.ports import Host, TheHost

router = APIRouter(tags=["Health"])

#: Lag of the change feed above which the worker is not ready. It is several polling intervals of the feed.
MAX_FEED_LAG_SECONDS: Final = 3.0


class ScrapeRefused(Forbidden):
    message = "Metrics are available only to the networks in METRICS_ALLOWED_CIDRS."


@router.get("/health", response_model=Alive)
async def health() -> Alive:
    """Returns 200 while the process runs. The endpoint has no rate limit."""
    return Alive()


@router.get("/api/health/live", response_model=Alive, responses={503: {"model": NotAlive}})
async def live(host: TheHost) -> object:
    """Returns whether this worker can continue to work. With 503, it must be restarted."""
    if host.feed.ended:
        return JSONResponse(NotAlive(reason="the change feed has ended").model_dump(), 503)
    return Alive()


@router.get("/api/health/ready", response_model=Ready, responses={503: {"model": NotReady}})
async def ready(
    host: TheHost,
    purpose: Annotated[
        Literal["traffic"] | None,
        Query(
            alias="for",
            description="`traffic`: whether model calls are served, even without the database and the cache.",
        ),
    ] = None,
) -> object:
    """Returns whether new requests should be sent to this worker."""
    failing = failing_checks(host) if purpose is None else failing_for_traffic(host)
    return JSONResponse(NotReady(failing_checks=failing).model_dump(), 503) if failing else Ready()


@router.get("/api/health/startup", response_model=Started, responses={503: {"model": Starting}})
async def startup(host: TheHost) -> object:
    """Returns whether the startup is complete, and how long it took."""
    if host.startup.duration_ms is None:
        elapsed = host.startup.elapsed_ms(host.clock.monotonic())
        return JSONResponse(Starting(phase=host.startup.phase, elapsed_ms=elapsed).model_dump(), 503)
    return Started(startup_duration_ms=host.startup.duration_ms)


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={403: {"description": "The caller's address is not in METRICS_ALLOWED_CIDRS."}},
)
async def metrics(request: Request, host: TheHost) -> Response:
    """Returns the metrics of all processes of this machine in the text format of Prometheus."""
    addresses = ClientAddresses(host.settings.trusted_proxies)
    response = await metrics_response(request.scope, host.settings, addresses, host.metrics.exporter)
    if response is None:
        raise ScrapeRefused
    return response


def failing_for_traffic(host: Host) -> list[str]:
    """Return the failing checks that prevent model calls from being served. Maintenance is not one of them, because
    this worker itself answers calls with 503 during maintenance, and ends the maintenance."""
    not_needed = {"cache", "maintenance"}
    if host.settings.switch_fail_mode == "open":
        not_needed.add("database")
    return [name for name in failing_checks(host) if name not in not_needed]


def failing_checks(host: Host) -> list[str]:
    """Return the names of all failing checks."""
    lagging = host.feed.lag_seconds > MAX_FEED_LAG_SECONDS
    checks = {
        "database": lagging and host.feed.lost,
        "cache": isinstance(host.counters, RedisCounters) and bool(host.counters.degraded),
        "journal": host.journal.full(),
        "change_feed": host.feed.ended or (lagging and not host.feed.lost),
        "maintenance": host.replica.maintenance is not None,
        "master_key": host.signer.cannot_open,
    }
    return [name for name, failing in checks.items() if failing]

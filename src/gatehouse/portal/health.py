"""Unauthenticated endpoints for machines: liveness, readiness, metrics, and the public keys of the portal's tokens."""

from typing import Any, Literal

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from gatehouse.foundation.errors import Forbidden
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.http.bodies import ResponseBody
from gatehouse.foundation.http.scraping import metrics_response
from gatehouse.portal.host import TheHost

router = APIRouter(tags=["Health"])


class Alive(ResponseBody):
    status: Literal["ok"] = "ok"


class NotReady(ResponseBody):
    status: Literal["not_ready"] = "not_ready"
    failing_checks: list[str]


class KeySet(ResponseBody):
    keys: list[dict[str, Any]]


class PortalScrapeRefused(Forbidden):
    message = "Metrics are only served to addresses in METRICS_ALLOWED_CIDRS."


@router.get("/api/health/live", response_model=Alive)
async def live() -> Alive:
    """Returns `ok` while the process is running."""
    return Alive()


@router.get("/api/health/ready", response_model=Alive, responses={503: {"model": NotReady}})
async def ready(host: TheHost) -> object:
    """Returns whether new requests should be routed to this process."""
    if host.failing is not None:
        return JSONResponse(NotReady(failing_checks=[host.failing]).model_dump(), 503)
    return Alive()


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={403: {"description": "The caller's address is not in METRICS_ALLOWED_CIDRS."}},
)
async def metrics(request: Request, host: TheHost) -> Response:
    """Returns metrics in Prometheus' text format."""
    addresses = ClientAddresses(host.settings.trusted_proxies)
    response = await metrics_response(request.scope, host.settings, addresses, host.metrics.exporter)
    if response is None:
        raise PortalScrapeRefused
    return response


@router.get("/.well-known/jwks.json", response_model=KeySet, tags=["Tokens"])
async def key_set(host: TheHost) -> object:
    """Returns the public keys of organization tokens. It includes retired keys whose tokens may still be valid."""
    return await host.keys.key_set()

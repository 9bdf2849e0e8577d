"""Unauthenticated endpoints for machines: liveness, readiness, metrics, and the public keys of the portal's tokens."""

import asyncio
from ipaddress import ip_address
from typing import Any, Literal

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import JSONResponse, PlainTextResponse, Response

from gatehouse.foundation.egress.networks import network
from gatehouse.foundation.errors import Forbidden
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.http.bodies import ResponseBody
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
    caller = ip_address(request.scope["state"]["client_address"])
    unknown_origin = ClientAddresses(host.settings.trusted_proxies).unknown_origin(request.scope)
    if unknown_origin or not any(caller in network(cidr) for cidr in host.settings.metrics_allowed_cidrs):
        raise PortalScrapeRefused
    host.metrics.exporter.write()
    return Response(await asyncio.to_thread(host.metrics.exporter.rendered), media_type=CONTENT_TYPE_LATEST)


@router.get("/.well-known/jwks.json", response_model=KeySet, tags=["Tokens"])
async def key_set(host: TheHost) -> object:
    """Returns the public keys of organization tokens. It includes retired keys whose tokens may still be valid."""
    return await host.keys.key_set()

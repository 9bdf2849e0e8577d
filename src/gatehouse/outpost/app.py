"""The outpost's proxy as one ASGI application: the gateway, and probes and metrics for paths that it does not serve."""

from collections.abc import Callable
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from gatehouse.foundation.errors import NotFound, Refusal
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.http.envelopes import GATEWAY, rendered
from gatehouse.foundation.http.scraping import metrics_response
from gatehouse.ingress import not_served
from gatehouse.ingress.gateway import MODEL_CALLS, MODELS, SCAN, Gateway
from gatehouse.outpost.host import OutpostHost

#: Paths of the gateway that the proxy serves.
SERVED: Final = frozenset({*MODEL_CALLS, MODELS, SCAN})


class OutpostProxy:
    """The gateway of one outpost. The host must have been created on the server's event loop."""

    def __init__(self, host: OutpostHost) -> None:
        settings = host.settings
        addresses = ClientAddresses(settings.trusted_proxies)
        self.gateway = Gateway(
            host.engine,
            _probes(host, addresses),
            addresses=addresses,
            max_request_bytes=settings.max_request_bytes,
            body_timeout_seconds=settings.body_timeout_seconds,
            calls=host.calls,
            observe=host.metrics.http,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.gateway(scope, receive, send)


def _probes(host: OutpostHost, addresses: ClientAddresses) -> Starlette:
    """Returns the application for all paths that the gateway does not serve: probes, metrics, and 404."""

    async def live(request: Request) -> Response:
        return _json(200, {"status": "alive"})

    async def ready(request: Request) -> Response:
        faults = host.faults()
        return _json(503 if faults else 200, {"status": "not_ready" if faults else "ready", "reasons": faults})

    async def metrics(request: Request) -> Response:
        response = await metrics_response(request.scope, host.settings, addresses, host.metrics.exporter)
        if response is None:
            raise NotFound
        return response

    async def refused(request: Request, error: Exception) -> Response:
        if not isinstance(error, Refusal):
            error = not_served.refusal(request.method, request.url.path, request.headers) or NotFound()
        response = rendered(error, GATEWAY)
        return Response(response.body, response.status, response.headers)

    handlers: dict[Any, Callable[..., Any]] = {Refusal: refused, 404: refused}
    return Starlette(
        routes=[
            Route("/", live),
            Route("/api/health/live", live),
            Route("/api/health/ready", ready),
            Route("/metrics", metrics),
        ],
        exception_handlers=handlers,
    )  # fmt: skip


def _json(status: int, content: object) -> Response:
    return Response(msgspec.json.encode(content), status, media_type="application/json")

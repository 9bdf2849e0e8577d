"""The administration API as an ASGI application, and the outpost's OpenAPI document."""

from typing import Any, Final

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from gatehouse import __version__
from gatehouse.foundation.http import handlers
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.http.envelopes import CODED, ErrorForms
from gatehouse.foundation.http.middleware.known_parameters import KnownParameters
from gatehouse.foundation.http.middleware.read_only import ReadOnlyFields
from gatehouse.ingress.openapi import SCHEMAS, SECURITY_SCHEMES, gateway_paths
from gatehouse.outpost.admin import audit, budget, config, overrides, peers, siem, status
from gatehouse.outpost.admin.front import AdminMiddleware
from gatehouse.outpost.app import SERVED
from gatehouse.outpost.host import OutpostHost

_FAMILIES: Final = (
    status.router, overrides.router, budget.router, config.router, audit.router, siem.router, peers.router,
)  # fmt: skip
#: Fields of the budget that change by themselves, by calls of this outpost and its peers.
_MOVING_FIELDS: Final = frozenset(
    {"began_at", "ends_at", "peers", "share_requests", "share_usd", "spent_requests", "spent_usd", "status"}
)
_PROBES: Final = {
    "/api/health/live": ("live", "Whether the process answers", "application/json"),
    "/api/health/ready": ("ready", "Whether requests are answered, else why not", "application/json"),
    "/metrics": ("metrics", "Metrics for Prometheus (`METRICS_ALLOWED_CIDRS`)", "text/plain"),
}


def administration(host: OutpostHost | None) -> FastAPI:
    """Return the application. Without a `host` it serves only to generate the OpenAPI document."""
    app = FastAPI(
        title="Gatehouse outpost",
        version=__version__,
        summary="The gateway at the customer's, and its administration.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    responses = handlers.install(app, ErrorForms(otherwise=CODED))
    app.add_middleware(KnownParameters, responses=responses, tolerant=tuple(_PROBES))
    app.add_middleware(ReadOnlyFields, responses=responses, moving=_MOVING_FIELDS)
    for family in _FAMILIES:
        app.include_router(family)
    if host is not None:
        app.state.host = host
        addresses = app.state.addresses = ClientAddresses(host.settings.trusted_proxies)
        app.add_middleware(AdminMiddleware, host=host, addresses=addresses, responses=responses)
        app.add_route("/api/health/live", _live, include_in_schema=False)
    return app


async def _live(request: Request) -> Response:
    return Response(b'{"status":"alive"}', media_type="application/json")


def document() -> dict[str, Any]:
    """Return the OpenAPI document: the proxy's paths first, because most readers need those, then the admin port's."""
    described = administration(None).openapi()
    components = described.setdefault("components", {})
    components.setdefault("securitySchemes", {}).update(SECURITY_SCHEMES)
    components.setdefault("schemas", {}).update(SCHEMAS)
    served = {path: item for path, item in gateway_paths().items() if _served(path)}
    return {**described, "paths": {**served, **dict(map(_probe, _PROBES)), **described["paths"]}}


def _served(path: str) -> bool:
    return any(path == prefix or path.startswith(prefix + "/") for prefix in SERVED)


def _probe(path: str) -> tuple[str, dict[str, Any]]:
    name, summary, media = _PROBES[path]
    responses: dict[str, Any] = {"200": {"description": "Yes.", "content": {media: {}}}}
    if name == "ready":
        responses["503"] = {"description": "No; `reasons` says why.", "content": {media: {}}}
    return path, {"get": {"tags": ["Health"], "summary": summary, "operationId": name, "responses": responses}}

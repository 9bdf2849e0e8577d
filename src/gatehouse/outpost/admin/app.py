"""The administration API as an ASGI application, and the outpost's OpenAPI document."""

from typing import Any, Final

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from gatehouse.administration.application import Documentation, build_application
from gatehouse.administration.shell import METHODS_WITHOUT_BODY, Arrival, RequestHead, Shell, read_head
from gatehouse.foundation.http.envelopes import CODED, ErrorFormats
from gatehouse.foundation.http.handlers import ErrorResponses
from gatehouse.foundation.secrets.tokens import bearer_token
from gatehouse.ingress.openapi import SCHEMAS, SECURITY_SCHEMES, gateway_paths
from gatehouse.outpost.admin import access, audit, budget, config, overrides, peers, siem, status
from gatehouse.outpost.app import SERVED
from gatehouse.outpost.host import OutpostHost
from gatehouse.outpost.platform_link.peers import MAX_BODY_BYTES

_FAMILIES: Final = (
    status.router, overrides.router, budget.router, config.router, audit.router, siem.router, peers.router,
)  # fmt: skip
#: Budget fields that change although no client changes the budget, because calls are made at this outpost and its
#: peers.
_LIVE_FIELDS: Final = frozenset(
    {"began_at", "ends_at", "peers", "share_requests", "share_usd", "spent_requests", "spent_usd", "status"}
)
#: Prefix of the paths for peers. `admit` skips these paths, because their routes check the peer's certificate.
_PEER_PREFIX: Final = "/peer/"
_PROBES: Final = {
    "/api/health/live": ("live", "Whether the process answers", "application/json"),
    "/api/health/ready": ("ready", "Readiness, with the reasons if the outpost is not ready", "application/json"),
    "/metrics": ("metrics", "Metrics for Prometheus (`METRICS_ALLOWED_CIDRS`)", "text/plain"),
}


def build_api() -> tuple[FastAPI, ErrorResponses]:
    """Returns the API and its error responses. Requests need `app.state.host`; the OpenAPI document needs no host."""
    app, responses = build_application(
        "Gatehouse outpost",
        "A gateway that runs at the customer's site, and the API to administer it.",
        _FAMILIES,
        ErrorFormats(otherwise=CODED),
        tolerant=tuple(_PROBES),
        moving=_LIVE_FIELDS,
        documentation=Documentation(security_schemes=SECURITY_SCHEMES, complete=_complete, served=False),
    )
    app.add_route("/api/health/live", _live, include_in_schema=False)
    return app, responses


def administration(host: OutpostHost) -> ASGIApp:
    """Returns the API as an ASGI application that identifies callers and limits bodies."""

    async def admit(arrival: Arrival[RequestHead]) -> None:
        """Checks the token before the body is read, because bodies of unknown callers would take memory that the
        gateway's requests need."""
        x = arrival.head
        if x.method in METHODS_WITHOUT_BODY:
            return
        if x.path.startswith(_PEER_PREFIX):
            arrival.body.limit = MAX_BODY_BYTES
            return
        await access.admit(host, x.client_address, bearer_token(x.headers), x.path)
        arrival.state["admitted"] = True

    app, responses = build_api()
    app.state.host = host
    return Shell(app, responses, host.settings, read_head=read_head, admit=admit)


async def _live(request: Request) -> Response:
    return Response(b'{"status":"alive"}', media_type="application/json")


def document() -> dict[str, Any]:
    """Returns the OpenAPI document."""
    return build_api()[0].openapi()


def _complete(admin_document: dict[str, Any]) -> dict[str, Any]:
    """Returns the document with the gateway's paths. They come before the paths of the admin port, because most readers
    need them."""
    admin_document["components"].setdefault("schemas", {}).update(SCHEMAS)
    served = {path: item for path, item in gateway_paths().items() if _served(path)}
    return {**admin_document, "paths": {**served, **dict(map(_probe, _PROBES)), **admin_document["paths"]}}


def _served(path: str) -> bool:
    return any(path == prefix or path.startswith(prefix + "/") for prefix in SERVED)


def _probe(path: str) -> tuple[str, dict[str, Any]]:
    name, summary, media = _PROBES[path]
    responses: dict[str, Any] = {"200": {"description": "The request succeeded.", "content": {media: {}}}}
    if name == "ready":
        responses["503"] = {
            "description": "The outpost is not ready. `reasons` lists the reasons.",
            "content": {media: {}},
        }
    return path, {"get": {"tags": ["Health"], "summary": summary, "operationId": name, "responses": responses}}

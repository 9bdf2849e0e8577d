"""The platform as one ASGI application. The gateway receives all requests. If it does not serve a request, it passes
the request to the administration API.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from gatehouse.administration.application import build_application
from gatehouse.administration.shell import Shell
from gatehouse.foundation.errors import NotFound, Refusal
from gatehouse.foundation.http.accepts import prefers_html
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.http.envelopes import ErrorFormats, rendered
from gatehouse.foundation.http.handlers import ErrorResponses
from gatehouse.foundation.http.middleware import slashes
from gatehouse.foundation.http.variants import Variant, VariantMiddleware
from gatehouse.foundation.settings import Settings
from gatehouse.foundation.storage.away import DATABASE_UNAVAILABLE_ERRORS
from gatehouse.ingress import not_served
from gatehouse.ingress.gateway import GATEWAY_PATHS, Gateway
from gatehouse.ingress.receive import read_head
from gatehouse.platform.access.pages import ERROR_FORMAT as PAGES_ERROR_FORMAT
from gatehouse.platform.administration.admission import Admission
from gatehouse.platform.administration.contents import (
    ANY_PARAMETERS,
    ERROR_FORMATS,
    FAMILIES,
    MOVING_FIELDS,
    SHOWN_ELSEWHERE,
)
from gatehouse.platform.administration.openapi import DOCUMENTATION
from gatehouse.platform.administration.tool_server import PATH as TOOLS_PATH
from gatehouse.platform.administration.tool_server import AdministrationTools
from gatehouse.platform.organization.system_config.keys import check_environment
from gatehouse.platform.worker.host import PlatformHost

#: Response headers that pages in a browser can read with CORS.
CORS_EXPOSED_HEADERS: Final = (
    "X-Request-Id", "request-id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After",
    "X-API-Variant", "X-Total-Count",
    "ETag", "X-DLP-Action", "X-Gateway-Provider", "X-Gateway-Model", "X-Gateway-Fallbacks", "X-Gateway-Cache",
    "X-Gateway-Warning", "X-Gateway-Dropped", "X-Gateway-Token-Count", "X-Cost-USD",
    "WWW-Authenticate", "Mcp-Session-Id",
)  # fmt: skip

#: Paths of administration under `/v1`. All other paths there belong to the model API.
_ADMINISTRATION_PREFIXES: Final = ("/v1/audit/", "/v1/outposts/", "/v1/platform/")


def administration(default_variant: Variant = Variant.A) -> tuple[FastAPI, ErrorResponses]:
    """Build the administration API. `default_variant` is for requests that do not determine their API variant
    (docs/variants.md). `app.state.host` must be set before the first request. The OpenAPI document needs neither a host
    nor a database."""
    app, responses = build_application(
        "Gatehouse platform",
        "An AI gateway and its administration.",
        FAMILIES,
        ErrorFormats(ERROR_FORMATS),
        tolerant=ANY_PARAMETERS,
        moving=MOVING_FIELDS,
        shown_elsewhere=SHOWN_ELSEWHERE,
        unavailable=DATABASE_UNAVAILABLE_ERRORS,
        unknown=_unknown,
        documentation=DOCUMENTATION,
    )
    app.add_middleware(VariantMiddleware, default=default_variant, refuse=responses.to)
    for path, methods in GATEWAY_PATHS.items():
        # The gateway serves these methods itself, and passes on requests with other methods. The application answers
        # those with 405 and the allowed methods, because it has this route.
        app.add_route(path, _unreached, methods=list(methods), include_in_schema=False)
    app.add_route(TOOLS_PATH, AdministrationTools(app).answer, methods=["POST"], include_in_schema=False)
    slashes.install(app)
    return app, responses


class _NoSuchPage(NotFound):
    """A 404 page with the message of the model API's error."""


def _unknown(request: Request) -> Refusal | Response | None:
    """Return the response for a path without a route: a 404 page for browsers, otherwise the error of the model API.
    Return None if the path does not belong to the model API."""
    path = request.url.path
    error = (
        None if path.startswith(_ADMINISTRATION_PREFIXES) else not_served.refusal(request.method, path, request.headers)
    )
    if prefers_html(request.headers.get("accept", "")):
        page = rendered(NotFound() if error is None else _NoSuchPage(error.text), PAGES_ERROR_FORMAT)
        return Response(page.body, page.status, page.headers)
    return error


async def _unreached(request: Request) -> Response:
    raise NotFound


class Platform:
    """The application of one worker. Its parts start and stop with the server. The routes of administration, which take
    a second to build, are built in the constructor, so that the forked worker processes share them."""

    def __init__(self, settings: Settings, make_host: Callable[[], PlatformHost]) -> None:
        self._administration = administration(Variant(settings.api_variant))
        self._settings = settings
        self._make_host = make_host
        #: number of workers that serve on this machine
        self.workers = 1
        #: number of this worker, from 0
        self.worker = 0
        self._app: ASGIApp | None = None
        self._host: PlatformHost | None = None
        #: set only while the application serves
        self.gateway: Gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        assert self._app is not None
        await self._app(scope, receive, send)

    def drain(self) -> None:
        """End all long polls, because this worker is about to stop."""
        if self._host is not None:
            self._host.drain()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            context = self._serving()
            await context.__aenter__()
        except BaseException as error:
            await send({"type": "lifespan.startup.failed", "message": f"{type(error).__name__}: {error}"})
            raise
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await context.__aexit__(None, None, None)
        await send({"type": "lifespan.shutdown.complete"})

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        settings = self._settings
        check_environment()
        host = self._host = self._make_host()
        host.build()
        host.ports.workers, host.ports.worker = self.workers, self.worker
        await host.start()
        app, responses = self._administration
        app.state.host = host
        shell = Shell(
            app,
            responses,
            settings,
            read_head=read_head,
            admit=Admission(host.ports, tries=host.tries).admit,
            observe=host.metrics.http,
        )
        gateway = self.gateway = Gateway(
            host.engine,
            shell,
            addresses=ClientAddresses(settings.trusted_proxies),
            max_request_bytes=settings.max_request_bytes,
            body_timeout_seconds=settings.body_timeout_seconds,
            calls=host.calls,
            observe=host.metrics.http,
            origins=settings.cors_origins,
        )
        self._app = _with_cors(gateway, settings)
        try:
            yield
        finally:
            await host.stop()


def _with_cors(app: ASGIApp, settings: Settings) -> ASGIApp:
    if not settings.cors_origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=settings.cors_origins,
        allow_methods=["*"],
        allow_headers=["*"],
        allow_credentials=False,
        expose_headers=CORS_EXPOSED_HEADERS,
    )

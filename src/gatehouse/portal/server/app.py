"""The portal as one ASGI application."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from gatehouse import __version__
from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.http import handlers
from gatehouse.foundation.http.accepts import prefers_html
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.http.documentation import page
from gatehouse.foundation.http.envelopes import rendered
from gatehouse.foundation.http.middleware import slashes
from gatehouse.foundation.http.middleware.known_parameters import KnownParameters
from gatehouse.foundation.http.middleware.read_only import ReadOnlyFields
from gatehouse.foundation.storage.away import DATABASE_UNAVAILABLE_ERRORS
from gatehouse.portal.host import PortalHost
from gatehouse.portal.pages.rendering import FORM as PAGES_FORM
from gatehouse.portal.server import openapi
from gatehouse.portal.server.contents import ANY_PARAMETERS, ERROR_FORMS, FAMILIES
from gatehouse.portal.server.middleware import PortalMiddleware


def build_api(lifespan: Callable[[FastAPI], Any] | None = None) -> tuple[FastAPI, handlers.ErrorResponses]:
    """Return the API and its error responses. Requests need `app.state.host`; the OpenAPI document needs no host and no
    database."""
    app = FastAPI(
        title="Gatehouse portal",
        version=__version__,
        summary="Organizations, their members, tokens and outposts.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    responses = handlers.install(app, ERROR_FORMS, away=DATABASE_UNAVAILABLE_ERRORS, unknown=_unknown_path)
    app.add_middleware(KnownParameters, responses=responses, tolerant=ANY_PARAMETERS)
    app.add_middleware(ReadOnlyFields, responses=responses, moving={"provisioning_status", "updated_at"})
    for family in FAMILIES:
        app.include_router(family)
    openapi.install(app)
    page.install(app)
    slashes.install(app)
    return app, responses


def _unknown_path(request: Request) -> Response | None:
    """Return an error page if a browser opened an unknown path."""
    if not prefers_html(request.headers.get("accept", "")):
        return None
    response = rendered(NotFound(), PAGES_FORM)
    return Response(response.body, response.status, response.headers)


def application(host: PortalHost) -> ASGIApp:
    """Return the API in its middleware. The host starts with the server and stops with it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await host.start()
        try:
            yield
        finally:
            await host.stop()

    app, responses = build_api(lifespan)
    app.state.host = host
    settings = host.settings
    return PortalMiddleware(
        app,
        addresses=ClientAddresses(settings.trusted_proxies),
        responses=responses,
        max_request_bytes=settings.max_request_bytes,
        body_timeout_seconds=settings.body_timeout_seconds,
        observe=host.figures.http,
    )

"""The portal as one ASGI application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Lifespan

from gatehouse.administration.application import build_application
from gatehouse.administration.shell import Shell, read_head
from gatehouse.foundation.errors import NotFound
from gatehouse.foundation.http.accepts import prefers_html
from gatehouse.foundation.http.envelopes import rendered
from gatehouse.foundation.http.handlers import ErrorResponses
from gatehouse.foundation.http.middleware import slashes
from gatehouse.foundation.storage.away import DATABASE_UNAVAILABLE_ERRORS
from gatehouse.portal.host import PortalHost
from gatehouse.portal.pages.rendering import ERROR_FORMAT as PAGES_ERROR_FORMAT
from gatehouse.portal.server.contents import ANY_PARAMETERS, ERROR_FORMATS, FAMILIES
from gatehouse.portal.server.duties import DUTIES
from gatehouse.portal.server.openapi import DOCUMENTATION


def build_api(lifespan: Lifespan[FastAPI] | None = None) -> tuple[FastAPI, ErrorResponses]:
    """Returns the API and its error responses. Requests need `app.state.host`; the OpenAPI document needs no host and
    no database."""
    app, responses = build_application(
        "Gatehouse portal",
        "Organizations, their members, tokens and outposts.",
        FAMILIES,
        ERROR_FORMATS,
        tolerant=ANY_PARAMETERS,
        moving={"provisioning_status", "updated_at"},
        unavailable=DATABASE_UNAVAILABLE_ERRORS,
        unknown=_unknown_path,
        documentation=DOCUMENTATION,
        lifespan=lifespan,
    )
    slashes.install(app)
    return app, responses


def _unknown_path(request: Request) -> Response | None:
    """Returns an error page if a browser has opened an unknown path, else None."""
    if not prefers_html(request.headers.get("accept", "")):
        return None
    response = rendered(NotFound(), PAGES_ERROR_FORMAT)
    return Response(response.body, response.status, response.headers)


def application(host: PortalHost) -> ASGIApp:
    """Returns the API with its middleware. The host is started and stopped with the server."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await host.start(DUTIES)
        try:
            yield
        finally:
            await host.stop()

    app, responses = build_api(lifespan)
    app.state.host = host
    return Shell(app, responses, host.settings, read_head=read_head, observe=host.metrics.http)

"""Builds the FastAPI application of an administration API, with its families, error responses and documentation."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

from fastapi import APIRouter, FastAPI, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Lifespan, Scope

from gatehouse import __version__
from gatehouse.administration.etags import PRECONDITION_FAILED, if_match_parameters
from gatehouse.foundation.errors import Refusal
from gatehouse.foundation.http import handlers
from gatehouse.foundation.http.documentation import page
from gatehouse.foundation.http.envelopes import ErrorFormats
from gatehouse.foundation.http.handlers import ErrorResponses
from gatehouse.foundation.http.known_parameters import refuse_unknown_parameters
from gatehouse.foundation.http.middleware.read_only import ReadOnlyFields

#: an OpenAPI document, or a part of one
Document: TypeAlias = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Documentation:
    """Additions to FastAPI's OpenAPI document. `requirement_of` takes a dependency; if it identifies a caller, it
    returns the entries to add to the operation. `complete` returns the complete document. `served` is whether the
    application serves the document."""

    security_schemes: Document = field(default_factory=dict)
    requirement_of: Callable[[Callable[..., Any] | None], Document | None] = lambda dependency: None
    complete: Callable[[Document], Document] = lambda document: document
    served: bool = True


def build_application(
    title: str,
    summary: str,
    families: Sequence[APIRouter],
    formats: ErrorFormats,
    *,
    tolerant: tuple[str, ...],
    moving: Collection[str],
    shown_elsewhere: Mapping[str, str] = MappingProxyType({}),
    unavailable: tuple[type[Exception], ...] = (),
    unknown: Callable[[Request], Refusal | Response | None] | None = None,
    documentation: Documentation,
    lifespan: Lifespan[FastAPI] | None = None,
) -> tuple[FastAPI, ErrorResponses]:
    """Return the application and its error responses. `tolerant` lists the path prefixes that accept unknown query
    parameters: those of pages, probes, and protocols whose standard requires it. `unavailable` and `unknown` are passed
    to `ErrorResponses`, and `moving` and `shown_elsewhere` to `ReadOnlyFields`."""
    app = FastAPI(
        title=title,
        version=__version__,
        summary=summary,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json" if documentation.served else None,
        lifespan=lifespan,
    )
    responses = handlers.install(app, formats, unavailable=unavailable, unknown=unknown)
    app.add_middleware(ReadOnlyFields, responses=responses, moving=moving, shown_elsewhere=shown_elsewhere)
    for family in families:
        app.include_router(family)
        _match_by_prefix(app.router.routes[-1])
        for context in iter_route_contexts(app.router.routes[-1:]):
            path = context.path_format or ""
            route = context.original_route
            # Routes that are not in the document are pages.
            if isinstance(route, APIRoute) and route.include_in_schema and not path.startswith(tolerant):
                refuse_unknown_parameters(path, context.dependant)
    _document(app, families, documentation)
    if documentation.served:
        page.install(app)
    return app, responses


def _match_by_prefix(included: BaseRoute) -> None:
    """Change an included family so that it first compares a path with the prefixes of its routes. It tries its routes
    only if a prefix matches.

    Without this change, FastAPI tries the routes of all families in turn, which takes about a millisecond with 300
    operations.
    """
    prefixes = tuple({(context.path or "").partition("{")[0] for context in iter_route_contexts([included])})
    match_included_routes = included.matches

    def matches(scope: Scope) -> tuple[Match, Scope]:
        if not scope.get("root_path") and not scope["path"].startswith(prefixes):
            return Match.NONE, {}
        return match_included_routes(scope)

    included.matches = matches  # type: ignore[method-assign]


def _document(app: FastAPI, families: Sequence[APIRouter], documentation: Documentation) -> None:
    """Replace the function that returns the application's OpenAPI document. The document is built at first use."""
    framework = app.openapi

    def document() -> Document:
        if app.openapi_schema is None:
            described = framework()
            for route in (route for family in families for route in family.routes if isinstance(route, APIRoute)):
                entries = _requirement(route.dependant, documentation.requirement_of)
                parameters = if_match_parameters(route.dependant)
                for method in route.methods or ():
                    operation = described["paths"].get(route.path_format, {}).get(method.lower(), {})
                    operation.update(entries)
                    if parameters:
                        operation.setdefault("parameters", []).extend(parameters)
                        operation["responses"].setdefault("412", {"description": PRECONDITION_FAILED})
            components = described.setdefault("components", {})
            components.setdefault("securitySchemes", {}).update(documentation.security_schemes)
            app.openapi_schema = documentation.complete(described)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _requirement(dependant: Dependant, requirement_of: Callable[[Any], Document | None]) -> Document:
    """Return the entries of the outermost dependency that identifies a caller. The outermost one is the strictest."""
    level = [dependant]
    while level:
        for dependency in level:
            if (entries := requirement_of(dependency.call)) is not None:
                return entries
        level = [nested for dependency in level for nested in dependency.dependencies]
    return {}

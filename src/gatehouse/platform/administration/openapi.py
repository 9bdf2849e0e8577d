"""The platform's OpenAPI document: FastAPI's document of administration, the gateway's paths, security requirements and
error responses. An operation needs a credential if its signature declares a caller.
"""

from collections.abc import Iterator
from typing import Any, Final

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from gatehouse.ingress.openapi import SCHEMAS, SECURITY_SCHEMES, gateway_paths
from gatehouse.platform.administration import error_responses
from gatehouse.platform.administration.contents import FAMILIES
from gatehouse.platform.request.callers import is_caller

#: Alternatives: any one of the schemes is enough.
_SECURITY: Final[list[dict[str, list[str]]]] = [{name: []} for name in SECURITY_SCHEMES]


def install(app: FastAPI) -> None:
    """Replace the application's OpenAPI document. It is built once, on the first request for it."""
    build_document = app.openapi

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _completed(build_document())
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _completed(document: dict[str, Any]) -> dict[str, Any]:
    paths = document["paths"]
    for path, method in _authenticated_operations():
        if method in paths.get(path, {}):
            paths[path][method]["security"] = _SECURITY
    components = document.setdefault("components", {})
    components.setdefault("securitySchemes", {}).update(SECURITY_SCHEMES)
    schemas = components.setdefault("schemas", {})
    error_responses.complete(document)
    duplicates = schemas.keys() & SCHEMAS.keys()
    if duplicates:
        raise ValueError(f"two schemas of one name: {', '.join(sorted(duplicates))}")
    schemas.update(SCHEMAS)
    # The gateway comes first: most readers look for it.
    return {**document, "paths": {**gateway_paths(), **paths}}


def _authenticated_operations() -> Iterator[tuple[str, str]]:
    """Yield path and method of the administration operations that need a credential."""
    for family in FAMILIES:
        for route in family.routes:
            if isinstance(route, APIRoute) and _declares_caller(route.dependant):
                for method in route.methods or ():
                    yield route.path_format, method.lower()


def _declares_caller(dependant: Dependant) -> bool:
    return is_caller(dependant.call) or any(map(_declares_caller, dependant.dependencies))

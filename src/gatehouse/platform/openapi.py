"""The platform's OpenAPI document: administration as FastAPI describes it, the gateway's paths, and who needs what.

Whether an operation needs a credential is read from its signature, as everything about callers is.
"""

from collections.abc import Iterator
from typing import Any, Final

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from gatehouse.ingress.openapi import SCHEMAS, SECURITY_SCHEMES, gateway_paths
from gatehouse.platform import error_responses
from gatehouse.platform.api import FAMILIES
from gatehouse.platform.callers import is_caller

#: Either of them.
_SECURITY: Final[list[dict[str, list[str]]]] = [{name: []} for name in SECURITY_SCHEMES]


def install(app: FastAPI) -> None:
    """Replaces the application's document. It is made once, when it is first asked for."""
    described = app.openapi

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _completed(described())
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _completed(document: dict[str, Any]) -> dict[str, Any]:
    paths = document["paths"]
    for path, method in _closed():
        if method in paths.get(path, {}):
            paths[path][method]["security"] = _SECURITY
    components = document.setdefault("components", {})
    components.setdefault("securitySchemes", {}).update(SECURITY_SCHEMES)
    schemas = components.setdefault("schemas", {})
    error_responses.complete(document)
    taken = schemas.keys() & SCHEMAS.keys()
    if taken:
        raise ValueError(f"two schemas of one name: {', '.join(sorted(taken))}")
    schemas.update(SCHEMAS)
    # The gateway first: it is what most readers come for.
    return {**document, "paths": {**gateway_paths(), **paths}}


def _closed() -> Iterator[tuple[str, str]]:
    """Path and method of each operation of administration that a caller must prove themselves for."""
    for family in FAMILIES:
        for route in family.routes:
            if isinstance(route, APIRoute) and _names_a_caller(route.dependant):
                for method in route.methods or ():
                    yield route.path_format, method.lower()


def _names_a_caller(dependant: Dependant) -> bool:
    return is_caller(dependant.call) or any(map(_names_a_caller, dependant.dependencies))

"""The portal's OpenAPI document: FastAPI's, with the caller and the error responses of each operation.

Both come from the operation: the caller from its signature, the error statuses from its path and body.
"""

from collections.abc import Iterator
from typing import Any, Final

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from gatehouse.portal.request.callers import OPENAPI_SECURITY, SECURITY_SCHEMES
from gatehouse.portal.server.contents import FAMILIES

_TEXT: Final = {"type": "string"}
_ERROR: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["error", "detail"],
    "properties": {
        "error": {**_TEXT, "description": "A code that follows from the status."},
        "detail": {**_TEXT, "description": "What is wrong; a field that is wrong is named."},
        "limit": {"type": "integer", "description": "429: requests a minute."},
        "reset_at": {**_TEXT, "format": "date-time", "description": "429: when the next request is let in."},
        "message": {**_TEXT, "description": "429: the same as `detail`."},
    },
}
_CONTENT: Final = {"application/json": {"schema": {"$ref": "#/components/schemas/PortalError"}}}


def install(app: FastAPI) -> None:
    """Replaces the application's document, which is built on first use."""
    framework = app.openapi

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _completed(framework())
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _completed(document: dict[str, Any]) -> dict[str, Any]:
    requirements = {(path, method): requirement for path, method, requirement in _protected_operations()}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            operation.update(requirements.get((path, method), {}))
            _add_errors(operation, path)
    components = document.setdefault("components", {})
    components.setdefault("securitySchemes", {}).update(SECURITY_SCHEMES)
    components.setdefault("schemas", {})["PortalError"] = _ERROR
    return document


def _add_errors(operation: dict[str, Any], path: str) -> None:
    responses = operation["responses"]
    # FastAPI's description of a failed validation does not match the portal's error form.
    responses.pop("422", None)
    descriptions = {
        "400": "The request is malformed.",
        "422": "A parameter or field is not valid; `detail` names it.",
        "429": "Too many requests; `reset_at` says when the next one is let in.",
        "503": "Not available now.",
    }
    if "{" in path:
        descriptions["404"] = "There is no such thing, it is another organization's, or the organization is cancelled."
    if "requestBody" in operation:
        descriptions |= {"408": "The body did not arrive in time.", "413": "The body is too large."}
    for status, description in descriptions.items():
        responses.setdefault(status, {"description": description})
    for status, response in responses.items():
        if status >= "400":
            response.setdefault("content", _CONTENT)


def _protected_operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield path, method and caller requirement of each operation that needs a credential."""
    for family in FAMILIES:
        for route in family.routes:
            if isinstance(route, APIRoute) and (requirement := _requirement(route.dependant)) is not None:
                for method in route.methods or ():
                    yield route.path_format, method.lower(), requirement


def _requirement(dependant: Dependant) -> dict[str, Any] | None:
    """Return the entries of the outermost dependency that is a caller: it is the strictest one."""
    level = [dependant]
    while level:
        for dependency in level:
            if dependency.call in OPENAPI_SECURITY:
                return OPENAPI_SECURITY[dependency.call]
        level = [nested for dependency in level for nested in dependency.dependencies]
    return None

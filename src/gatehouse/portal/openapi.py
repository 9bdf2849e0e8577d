"""The portal's OpenAPI document: as FastAPI describes it, with who may call an operation, and how it fails.

Both are read from the operation: the caller from its signature, the statuses from its shape.
"""

from collections.abc import Iterator
from typing import Any, Final

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from gatehouse.portal.api import FAMILIES
from gatehouse.portal.callers import DESCRIBED, SECURITY_SCHEMES

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
    """Replaces the application's document. It is made once, when it is first asked for."""
    framework = app.openapi

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _completed(framework())
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _completed(document: dict[str, Any]) -> dict[str, Any]:
    needs = {(path, method): need for path, method, need in _closed()}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            operation.update(needs.get((path, method), {}))
            _add_errors(operation, path)
    components = document.setdefault("components", {})
    components.setdefault("securitySchemes", {}).update(SECURITY_SCHEMES)
    components.setdefault("schemas", {})["PortalError"] = _ERROR
    return document


def _add_errors(operation: dict[str, Any], path: str) -> None:
    responses = operation["responses"]
    # The framework's own description of failed validation is not how the portal answers.
    responses.pop("422", None)
    told = {
        "400": "The request is malformed.",
        "422": "A parameter or field is not valid; `detail` names it.",
        "429": "Too many requests; `reset_at` says when the next one is let in.",
        "503": "Not available now.",
    }
    if "{" in path:
        told["404"] = "There is no such thing, it is another organization's, or the organization is cancelled."
    if "requestBody" in operation:
        told |= {"408": "The body did not arrive in time.", "413": "The body is too large."}
    for status, description in told.items():
        responses.setdefault(status, {"description": description})
    for status, answer in responses.items():
        if status >= "400":
            answer.setdefault("content", _CONTENT)


def _closed() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, method and need of each operation that a caller must prove themselves for."""
    for family in FAMILIES:
        for route in family.routes:
            if isinstance(route, APIRoute) and (need := _need(route.dependant)) is not None:
                for method in route.methods or ():
                    yield route.path_format, method.lower(), need


def _need(dependant: Dependant) -> dict[str, Any] | None:
    """Of the outermost dependency that says who may call: it asks for most."""
    level = [dependant]
    while level:
        for each in level:
            if each.call in DESCRIBED:
                return DESCRIBED[each.call]
        level = [inner for each in level for inner in each.dependencies]
    return None

"""Completes the portal's OpenAPI document. It adds the caller and the error responses of each operation.

The caller follows from the signature of the operation, and the error statuses follow from its path and body.
"""

from typing import Any, Final

from gatehouse.administration.application import Documentation
from gatehouse.portal.request.callers import OPENAPI_SECURITY, SECURITY_SCHEMES

_TEXT: Final = {"type": "string"}
_ERROR: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["error", "detail"],
    "properties": {
        "error": {**_TEXT, "description": "A code, which depends only on the status."},
        "detail": {**_TEXT, "description": "The reason, with the name of the invalid field."},
        "limit": {"type": "integer", "description": "429: maximum requests a minute."},
        "reset_at": {**_TEXT, "format": "date-time", "description": "429: when the next request is admitted."},
        "message": {**_TEXT, "description": "429: the same as `detail`."},
    },
}
_CONTENT: Final = {"application/json": {"schema": {"$ref": "#/components/schemas/PortalError"}}}


def _complete(document: dict[str, Any]) -> dict[str, Any]:
    for path, operations in document["paths"].items():
        for operation in operations.values():
            _add_errors(operation, path)
    document["components"].setdefault("schemas", {})["PortalError"] = _ERROR
    return document


def _add_errors(operation: dict[str, Any], path: str) -> None:
    responses = operation["responses"]
    # FastAPI's description of a failed validation does not match the portal's error format.
    responses.pop("422", None)
    descriptions = {
        "400": "The request is malformed.",
        "422": "A parameter or field is not valid; `detail` identifies it.",
        "429": "Too many requests; the next one is admitted at `reset_at`.",
        "503": "Not available now.",
    }
    if "{" in path:
        descriptions["404"] = (
            "The resource does not exist, belongs to another organization, or the organization is cancelled."
        )
    if "requestBody" in operation:
        descriptions |= {"408": "The body did not arrive in time.", "413": "The body is too large."}
    for status, description in descriptions.items():
        responses.setdefault(status, {"description": description})
    for status, response in responses.items():
        if status >= "400":
            response.setdefault("content", _CONTENT)


DOCUMENTATION: Final = Documentation(
    security_schemes=SECURITY_SCHEMES,
    requirement_of=lambda dependency: None if dependency is None else OPENAPI_SECURITY.get(dependency),
    complete=_complete,
)

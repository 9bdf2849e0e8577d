"""The OpenAPI document of the platform: FastAPI's document of administration, the paths of the gateway, security
requirements and error responses. An operation needs a credential if its signature declares a caller.
"""

from collections.abc import Callable
from typing import Any, Final

from gatehouse.administration.application import Documentation
from gatehouse.administration.etags import PRECONDITION_FAILED
from gatehouse.foundation.errors import Refusal
from gatehouse.foundation.http import envelopes
from gatehouse.foundation.http.envelopes import ErrorFormat, ErrorFormats
from gatehouse.ingress.openapi import SCHEMAS, SECURITY_SCHEMES, gateway_paths
from gatehouse.platform.administration.contents import ERROR_FORMATS
from gatehouse.platform.request.callers import is_caller

#: The accepted security schemes. One of them is sufficient.
_REQUIREMENT: Final[dict[str, Any]] = {"security": [{name: []} for name in SECURITY_SCHEMES]}

_TEXT: Final = {"type": "string"}


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties}


_FAULT: Final = _object(
    ["loc", "msg", "type"],
    loc={"type": "array", "items": {"anyOf": [_TEXT, {"type": "integer"}]}},
    msg=_TEXT,
    type=_TEXT,
)
_FIELD: Final = _object(["field", "message"], field=_TEXT, message=_TEXT)

_ERROR_SCHEMAS: Final[dict[str, Any]] = {
    "DetailError": _object(["detail"], detail={"anyOf": [_TEXT, {"type": "array", "items": _FAULT}]}),
    "CodedError": _object(["error", "message"], error=_TEXT, message=_TEXT, details={"type": "array", "items": _FIELD}),
    "OAuthError": _object(["error", "error_description"], error=_TEXT, error_description=_TEXT),
    "ScimError": _object(
        ["schemas", "status"], schemas={"type": "array", "items": _TEXT}, status=_TEXT, detail=_TEXT, scimType=_TEXT
    ),
    "RateLimitedError": _object(
        ["error"], error={"const": "rate_limit_exceeded"}, tier=_TEXT, retry_after={"type": "integer"}
    ),
    "MaintenanceError": _object(["error", "message"], error={"const": "maintenance_mode"}, message=_TEXT),
}

_SCHEMA_OF_FORMAT: Final[dict[Callable[[Refusal], dict[str, Any]], str]] = {
    envelopes.detail: "DetailError",
    envelopes.coded: "CodedError",
    envelopes.named: "CodedError",
    envelopes.oauth: "OAuthError",
    envelopes.scim: "ScimError",
}
_FORMATS: Final = ErrorFormats(ERROR_FORMATS)

#: Additional schemas of a status, because some errors, such as `mfa_required`, have a format of their own.
_EXTRA_SCHEMAS: Final = {"403": ["CodedError"], "429": ["RateLimitedError"], "503": ["MaintenanceError"]}
#: Additional schemas of sign-in and second factors. Their errors have codes that programs can evaluate.
_SIGN_IN_PREFIX: Final = "/api/auth/"
_EXTRA_SIGN_IN_SCHEMAS: Final = {status: ["CodedError"] for status in ("400", "401", "409", "429")}

_WRITE_METHODS: Final = {"post", "put", "patch", "delete"}


def _add_error_responses(document: dict[str, Any]) -> None:
    """Add the missing error responses to the operations of administration, in place."""
    document["components"]["schemas"].update(_ERROR_SCHEMAS)
    for path, operations in document["paths"].items():
        error_format = _FORMATS.for_path(path)
        schema = _SCHEMA_OF_FORMAT.get(error_format.render)
        for method, operation in operations.items():
            if schema is not None:
                _add_to_operation(operation, method, path, schema, error_format)


def _add_to_operation(
    operation: dict[str, Any], method: str, path: str, schema: str, error_format: ErrorFormat
) -> None:
    responses = operation["responses"]
    # FastAPI's description of failed validation does not match the error format of this path.
    responses.pop("422", None)
    for status, description in _statuses(operation, method, path).items():
        responses.setdefault(status, {"description": description})
    for status, response in responses.items():
        if status >= "400":
            extra = list(_EXTRA_SCHEMAS.get(status, []))
            if path.startswith(_SIGN_IN_PREFIX):
                extra += _EXTRA_SIGN_IN_SCHEMAS.get(status, [])
            names = list(dict.fromkeys([schema, *extra]))
            content = response.setdefault("content", {error_format.media_type: {"schema": _any_of(names)}})
            if error_format.in_browsers is not None:
                content["text/html"] = {"schema": _TEXT}


def _statuses(operation: dict[str, Any], method: str, path: str) -> dict[str, str]:
    descriptions = {
        "400": "The request is malformed.",
        "422": "A parameter or field is not valid. The response identifies it.",
        "429": "Too many requests. `Retry-After` is the number of seconds to wait.",
        "503": "Temporarily unavailable, or closed for maintenance.",
    }
    if "{" in path:
        descriptions["404"] = "The resource does not exist, or it belongs to another organization."
    if method in _WRITE_METHODS:
        descriptions["409"] = "The request conflicts with the current state of the resource."
        descriptions["412"] = PRECONDITION_FAILED
    if "requestBody" in operation:
        descriptions["413"] = "The body is too large."
    return descriptions


def _any_of(names: list[str]) -> dict[str, Any]:
    references: list[dict[str, Any]] = [{"$ref": f"#/components/schemas/{name}"} for name in names]
    return references[0] if len(references) == 1 else {"anyOf": references}


def _complete(document: dict[str, Any]) -> dict[str, Any]:
    _add_error_responses(document)
    schemas = document["components"]["schemas"]
    duplicates = schemas.keys() & SCHEMAS.keys()
    if duplicates:
        raise ValueError(f"two schemas of one name: {', '.join(sorted(duplicates))}")
    schemas.update(SCHEMAS)
    # The gateway's paths come first, because most readers look for them.
    return {**document, "paths": {**gateway_paths(), **document["paths"]}}


DOCUMENTATION: Final = Documentation(
    security_schemes=SECURITY_SCHEMES,
    requirement_of=lambda dependency: _REQUIREMENT if is_caller(dependency) else None,
    complete=_complete,
)

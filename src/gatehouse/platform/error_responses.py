"""The error answers in the OpenAPI document: which statuses an operation can give, each in its path's form.

What follows from an operation's shape is said here, once: a path parameter can name nothing (404), a body can be too
large (413), everything is limited (429) and can be closed for maintenance (503).
"""

from collections.abc import Callable
from typing import Any, Final

from gatehouse.foundation.errors import Refusal
from gatehouse.foundation.http import envelopes
from gatehouse.foundation.http.envelopes import ErrorForm, ErrorForms
from gatehouse.platform.api import ERROR_FORMS

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

SCHEMAS: Final[dict[str, Any]] = {
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

_OF_FORM: Final[dict[Callable[[Refusal], dict[str, Any]], str]] = {
    envelopes.detail: "DetailError",
    envelopes.coded: "CodedError",
    envelopes.named: "CodedError",
    envelopes.oauth: "OAuthError",
    envelopes.scim: "ScimError",
}
_FORMS: Final = ErrorForms(ERROR_FORMS)

#: What a status can look like beside its path's form: some errors have a form of their own, as `mfa_required` has.
_ALSO: Final = {"403": ["CodedError"], "429": ["RateLimitedError"], "503": ["MaintenanceError"]}
#: The same where sign-in and second factors tell programs what is missing.
_SIGN_IN: Final = "/api/auth/"
_ALSO_AT_SIGN_IN: Final = {status: ["CodedError"] for status in ("400", "401", "409", "429")}

_WRITES: Final = {"post", "put", "patch", "delete"}


def complete(document: dict[str, Any]) -> None:
    """Adds to administration's operations what their shape says and they do not say themselves."""
    document["components"]["schemas"].update(SCHEMAS)
    for path, operations in document["paths"].items():
        form = _FORMS.for_path(path)
        schema = _OF_FORM.get(form.render)
        for method, operation in operations.items():
            if schema is not None:
                _complete(operation, method, path, schema, form)


def _complete(operation: dict[str, Any], method: str, path: str, schema: str, form: ErrorForm) -> None:
    responses = operation["responses"]
    # The framework's own description of failed validation is not how this path answers.
    responses.pop("422", None)
    for status, description in _statuses(operation, method, path).items():
        responses.setdefault(status, {"description": description})
    for status, told in responses.items():
        if status >= "400":
            also = _ALSO.get(status, []) + (_ALSO_AT_SIGN_IN.get(status, []) if path.startswith(_SIGN_IN) else [])
            names = list(dict.fromkeys([schema, *also]))
            content = told.setdefault("content", {form.media_type: {"schema": _any_of(names)}})
            if form.in_browsers is not None:
                content["text/html"] = {"schema": _TEXT}


def _statuses(operation: dict[str, Any], method: str, path: str) -> dict[str, str]:
    found = {
        "400": "The request is malformed.",
        "422": "A parameter or field is not valid; the answer names it.",
        "429": "Too many requests; `Retry-After` says when the next one is let in.",
        "503": "Not available now, or closed for maintenance.",
    }
    if "{" in path:
        found["404"] = "There is no such thing, or it is another organization's."
    if method in _WRITES:
        found["409"] = "It conflicts with what exists."
        found["412"] = "`If-Match` names another version than the one that is there."
    if "requestBody" in operation:
        found["413"] = "The body is too large."
    return found


def _any_of(names: list[str]) -> dict[str, Any]:
    references: list[dict[str, Any]] = [{"$ref": f"#/components/schemas/{name}"} for name in names]
    return references[0] if len(references) == 1 else {"anyOf": references}

"""Formats of errors in responses (docs/errors.md).

An `ErrorFormat` defines an error's body and the status of failed validation. The formats of families are listed by
path prefix (`platform/administration/contents.py`). Other paths have the format of their part of the API.

    GATEWAY    {"error": {"message", "type", "code", ...}}       the model calls and `/v1/scan`
    ANTHROPIC  {"type": "error", "error": {... as GATEWAY}}      `/v1/messages`
    OAUTH      {"error", "error_description"}                    `/oauth/*`, `/api/oauth/*`
    DETAIL     {"detail": text, or a list of bad fields}         administration
    CODED      {"error", "message", ...}, bad fields as `details`  families with error codes
    NAMED      as CODED, with one code for each status           organization settings, system health
    PORTAL     {"error", "detail"}                               cloud portal
    SCIM       {"schemas", "status", "detail", "scimType"}       `/api/scim/v2/*`

Maintenance has the same body everywhere: `{"error": "maintenance_mode", "message"}`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import msgspec

from gatehouse.foundation.errors import FieldFault, Refusal, TooManyRequests, Unprocessable
from gatehouse.foundation.http.accepts import prefers_html

Body: TypeAlias = dict[str, Any]

#: maximum number of invalid fields that a response lists; a hostile body may have a million
MAX_FAULTS = 50

_encode = msgspec.json.Encoder(decimal_format="number").encode


class ParameterFault(FieldFault):
    """An invalid field with its place in the request. `loc` begins with `body`, `query`, `path` or `header`."""

    __slots__ = ("kind", "loc")

    def __init__(self, loc: tuple[str | int, ...], message: str, *, kind: str = "value_error") -> None:
        super().__init__(".".join(str(part) for part in loc[1:]) or str(loc[0]), message)
        self.loc = loc
        self.kind = kind


def _faults(error: Refusal) -> list[FieldFault]:
    return error.faults[:MAX_FAULTS] if isinstance(error, Unprocessable) else []


def _sentence(error: Refusal) -> str:
    """Returns the message, or the invalid fields with their messages, for formats without a list of fields."""
    fields = "; ".join(f"{fault.field}: {fault.message}" for fault in _faults(error))
    return fields or error.text


def _rate_limited(error: Refusal) -> bool:
    """Returns whether a rate limit of the administration API refused the request."""
    return isinstance(error, TooManyRequests) and "tier" in error.extra


def gateway(error: Refusal) -> Body:
    inner: Body = {"message": _sentence(error), "type": error.type}
    if error.code is not None:
        inner["code"] = error.code
    if faults := _faults(error):
        inner["param"] = faults[0].field
    return {"error": inner | error.extra}


def anthropic(error: Refusal) -> Body:
    return {"type": "error", **gateway(error)}


_OAUTH_CODES = {
    413: "invalid_request", 422: "invalid_request", 500: "server_error", 503: "temporarily_unavailable",
}  # fmt: skip


def oauth(error: Refusal) -> Body:
    """Returns the body by RFC 6749, 5.2. An error for which the RFC has no code keeps its own code."""
    if _rate_limited(error):
        return {"error": "rate_limit_exceeded", "error_description": error.text}
    code = _OAUTH_CODES.get(error.status, error.code)
    return {"error": code or "invalid_request", "error_description": _sentence(error)}


def detail(error: Refusal) -> Body:
    if _rate_limited(error):
        return {"error": "rate_limit_exceeded", **error.extra}
    if faults := _faults(error):
        return {"detail": [_located(fault) for fault in faults], **error.extra}
    return {"detail": error.text, **error.extra}


def _located(fault: FieldFault) -> Body:
    if isinstance(fault, ParameterFault):
        return {"type": fault.kind, "loc": list(fault.loc), "msg": fault.message}
    return {"type": "value_error", "loc": ["body", *fault.field.split(".")], "msg": fault.message}


def coded(error: Refusal) -> Body:
    if _rate_limited(error):
        return {"error": "rate_limit_exceeded", **error.extra}
    body: Body = {"error": error.code or error.type, "message": error.text, **error.extra}
    if faults := _faults(error):
        body["details"] = [{"field": fault.field, "message": fault.message} for fault in faults]
    return body


_NAMED_CODES = {401: "unauthorized", 403: "forbidden", 404: "not_found"}


def named(error: Refusal) -> Body:
    """Returns the body of `coded` with one code for each status. Only the message has details."""
    body = coded(error)
    if error.status in _NAMED_CODES and error.code != "mfa_required" and not _rate_limited(error):
        body["error"] = _NAMED_CODES[error.status]
    return body


_PORTAL_CODES = {
    400: "invalid_request", 401: "unauthorized", 403: "forbidden", 404: "not_found", 409: "conflict",
    412: "precondition_failed", 413: "request_too_large", 422: "validation_error", 429: "rate_limit_exceeded",
    500: "internal_error", 502: "bad_gateway", 503: "service_unavailable",
}  # fmt: skip


def portal(error: Refusal) -> Body:
    """Returns the portal's body. The code depends only on the status. A 429 also has the field `message`, and the extra
    fields `limit` and `reset_at`."""
    code = _PORTAL_CODES.get(error.status, "internal_error" if error.status >= 500 else "invalid_request")
    body: Body = {"error": code, "detail": _sentence(error), **error.extra}
    return body | {"message": error.text} if error.status == 429 else body


def scim(error: Refusal) -> Body:
    """Returns the body by RFC 7644, 3.12. `scimType` is an extra field of the error, or `invalidValue` for invalid
    fields."""
    body: Body = {
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:Error"],
        "status": str(SCIM.status_of(error)),
        "detail": _sentence(error),
    }
    kind = error.extra.get("scimType") or ("invalidValue" if isinstance(error, Unprocessable) else None)
    return body | {"scimType": kind} if kind else body


@dataclass(frozen=True, slots=True)
class ErrorFormat:
    """The format of errors.

    `validation_status` is the status of failed validation: one status, or one for each variant (`{"a": 422, "b": 400,
    "c": 422}`). `encode` returns the bytes of a body; formats that are not JSON replace it. `in_browsers` is the format
    for clients that prefer HTML, on paths that browsers and programs use.
    """

    render: Callable[[Refusal], Body]
    validation_status: int | Mapping[str, int] = 422
    media_type: str = "application/json"
    encode: Callable[[Body], bytes] = _encode
    headers: Mapping[str, str] = field(default_factory=dict, hash=False)
    in_browsers: "ErrorFormat | None" = None

    def validating(self, status: int | Mapping[str, int]) -> "ErrorFormat":
        return replace(self, validation_status=status)

    def for_reader(self, accept: str) -> "ErrorFormat":
        """Returns the format for a client with this `Accept` header."""
        if self.in_browsers is None:
            return self
        selected = self.in_browsers if prefers_html(accept) else self
        return replace(selected, headers={**selected.headers, "Vary": "Accept"})

    def status_of(self, error: Refusal, variant: str = "a") -> int:
        """Returns the error's status. For failed validation without a code of its own this is `validation_status`."""
        if not isinstance(error, Unprocessable) or error.code != Unprocessable.code:
            return error.status
        status = self.validation_status
        return status if isinstance(status, int) else status[variant]

    def body_of(self, error: Refusal) -> Body:
        if error.code == "maintenance_mode":
            return {"error": "maintenance_mode", "message": error.text}
        return _FORMATS_BY_NAME.get(error.error_format or "", self).render(error)


GATEWAY = ErrorFormat(gateway, 400)
ANTHROPIC = ErrorFormat(anthropic, 400)
OAUTH = ErrorFormat(oauth, 400)
DETAIL = ErrorFormat(detail)
CODED = ErrorFormat(coded)
NAMED = ErrorFormat(named)
PORTAL = ErrorFormat(portal)
SCIM = ErrorFormat(scim, 400, "application/scim+json")

#: formats by the class attribute `error_format` of an error, which overrides its family's format
_FORMATS_BY_NAME = {
    "detail": DETAIL, "error_message": CODED, "error_details": CODED, "gateway": GATEWAY, "anthropic": ANTHROPIC,
}  # fmt: skip

#: Formats by path prefix. The longest prefix applies. A prefix consists of whole path segments. Families add their
#: formats.
DEFAULT_FORMATS: Mapping[str, ErrorFormat] = {
    "/v1/chat/completions": GATEWAY,
    "/api/chat/completions": GATEWAY,
    "/v1/responses": GATEWAY,
    "/v1/embeddings": GATEWAY,
    "/v1/completions": GATEWAY,
    "/v1/moderations": GATEWAY,
    "/v1/images": GATEWAY,
    "/v1/audio": GATEWAY,
    "/v1/rerank": GATEWAY,
    "/v2/rerank": GATEWAY,
    "/v1/models": GATEWAY,
    "/v1/scan": GATEWAY,
    "/v1/messages": ANTHROPIC,
    "/chat/completions": GATEWAY,
    "/responses": GATEWAY,
    "/embeddings": GATEWAY,
    "/completions": GATEWAY,
    "/moderations": GATEWAY,
    "/images": GATEWAY,
    "/audio": GATEWAY,
    "/rerank": GATEWAY,
    "/models": GATEWAY,
    "/messages": ANTHROPIC,
    "/oauth": OAUTH,
    "/api/oauth": OAUTH,
    "/api/scim/v2": SCIM,
}


class ErrorFormats:
    """Looks up the error format of a path. `families` maps path prefixes to formats and overrides the defaults.
    `otherwise` is the format of a path without a listed prefix."""

    def __init__(self, families: Mapping[str, ErrorFormat] | None = None, *, otherwise: ErrorFormat = DETAIL) -> None:
        formats = {**DEFAULT_FORMATS, **(families or {})}
        self._by_prefix = {prefix.rstrip("/"): error_format for prefix, error_format in formats.items()}
        self._deepest = max(prefix.count("/") for prefix in self._by_prefix)
        self._otherwise = otherwise

    def for_path(self, path: str) -> ErrorFormat:
        # Cut the path to the depth of the deepest prefix first, so that a path of ten thousand slashes costs no more
        # than other paths.
        prefix = "/".join(path.split("/", self._deepest + 1)[: self._deepest + 1])
        while prefix:
            if (error_format := self._by_prefix.get(prefix)) is not None:
                return error_format
            prefix = prefix.rpartition("/")[0]
        return self._otherwise


_defaults = ErrorFormats()


def for_path(path: str) -> Callable[[Refusal], Body]:
    """Returns the function that renders errors on a path that belongs to no family."""
    return _defaults.for_path(path).body_of


@dataclass(frozen=True, slots=True)
class RenderedError:
    status: int
    headers: dict[str, str]
    body: bytes


def rendered(error: Refusal, error_format: ErrorFormat, variant: str = "a") -> RenderedError:
    """Returns status, headers and body of an error. Adds the header `Retry-After` if the error has `retry_after`, and
    `WWW-Authenticate` to a 401."""
    status = error_format.status_of(error, variant)
    headers = {"Content-Type": error_format.media_type, **error_format.headers, **error.headers}
    if "retry_after" in error.extra:
        headers.setdefault("Retry-After", str(error.extra["retry_after"]))
    if status == 401:
        headers.setdefault("WWW-Authenticate", "Bearer")
    return RenderedError(status, headers, error_format.encode(error_format.body_of(error)))

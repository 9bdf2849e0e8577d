"""The base classes of all errors in responses. Each family adds its own subclasses.

    Refusal                      status, code, type and message; one handler in each app renders it into its envelope
    ├── BadRequest           400
    ├── Unauthenticated      401  credential missing or invalid
    ├── PaymentRequired      402
    ├── Forbidden            403  credential lacks a right
    ├── NotFound             404  absent, or another tenant's
    ├── Conflict             409
    ├── PreconditionFailed   412  `If-Match` does not name the current version
    ├── PayloadTooLarge      413
    ├── Unprocessable        422  understood, but a field is wrong
    ├── TooManyRequests      429
    ├── Internal             500
    ├── BadGateway           502
    ├── Unavailable          503
    └── GatewayTimeout       504

`type` is the category of an error in the gateway's envelope. `code` is the machine-readable identifier in the gateway's
envelope, and in the `error` field of those administration errors that have such a field (docs/errors.md).
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal


class Refusal(Exception):
    """An error response. `extra` contains additional fields of the envelope."""

    status: ClassVar[int] = 500
    type: ClassVar[str] = "internal_error"
    code: ClassVar[str | None] = None
    message: ClassVar[str] = "Unexpected error."
    #: an error format that overrides the family's (`foundation.http.envelopes`), or None for the family's
    error_format: ClassVar[Literal["detail", "error_message", "error_details", "gateway", "anthropic"] | None] = None

    def __init__(self, message: str | None = None, *, headers: Mapping[str, str] | None = None, **extra: Any) -> None:
        self.text = message or self.message
        self.headers: dict[str, str] = dict(headers or {})
        self.extra = extra
        super().__init__(self.text)


class ClientLeft(Exception):
    """The client closed the connection before its answer was complete. There is no response."""


class FieldFault:
    """An invalid field: its dotted name in the request, and what is wrong with it."""

    __slots__ = ("field", "message")

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        self.message = message


class BadRequest(Refusal):
    status = 400
    type = "invalid_request_error"
    code = "invalid_request"
    message = "The request is malformed."


class Unauthenticated(Refusal):
    status = 401
    type = "authentication_error"
    code = "unauthorized"
    message = "A valid credential is required."


class PaymentRequired(Refusal):
    status = 402
    type = "cost_cap_exceeded"
    code = "cost_cap_exceeded"
    message = "The request would cost more than allowed."


class Forbidden(Refusal):
    status = 403
    type = "authentication_error"
    code = "forbidden"
    message = "Your credential does not permit this."


class NotFound(Refusal):
    status = 404
    type = "invalid_request_error"
    code = "not_found"
    message = "Not found"


class Conflict(Refusal):
    status = 409
    type = "invalid_request_error"
    code = "conflict"
    message = "The request conflicts with an existing resource."


class PreconditionFailed(Refusal):
    status = 412
    type = "invalid_request_error"
    code = "precondition_failed"
    message = "Somebody else has changed it since you read it. Read it again, then repeat your change."


class PayloadTooLarge(Refusal):
    status = 413
    type = "invalid_request_error"
    code = "request_too_large"
    message = "The request body is too large."


class Unprocessable(Refusal):
    """A body or parameter that fails validation. `faults` lists the invalid fields."""

    status = 422
    type = "invalid_request_error"
    code = "validation_error"
    message = "A field is not valid."

    def __init__(self, message: str | None = None, *, faults: list[FieldFault] | None = None, **extra: Any) -> None:
        super().__init__(message, **extra)
        self.faults = faults or []


class TooManyRequests(Refusal):
    status = 429
    type = "rate_limit_error"
    code = "quota_exceeded"
    message = "Too many requests."


class Internal(Refusal):
    status = 500
    type = "internal_error"
    code = "internal_error"


class BadGateway(Refusal):
    status = 502
    type = "provider_error"
    code = "provider_error"
    message = "The provider failed."


class Unavailable(Refusal):
    status = 503
    type = "service_unavailable"
    code = "service_unavailable"
    message = "The service is not available now."


class GatewayTimeout(Refusal):
    status = 504
    type = "provider_error"
    code = "provider_timeout"
    message = "The provider did not answer in time."

"""Failures of providers, and their consequence for the request: retry, next candidate or an error for the client."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec

from gatehouse.engine.conversation.errors import ContextTooLong, FilteredUpstream, RefusedUpstream
from gatehouse.engine.providers.rate_limit_headers import exhausted_seconds
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.errors import BadRequest, PayloadTooLarge, Refusal, Unprocessable
from gatehouse.foundation.outbound import NoConnectionFree, OutboundFailed

MAX_MESSAGE_CHARACTERS = 500

#: Reason of an attempt that the provider refused because of its rate limit.
RATE_LIMITED: Final = "rate_limited"
#: Reason of an attempt whose credentials the provider refused.
UNAUTHORIZED: Final = "unauthorized"
#: Reason of an attempt at a provider that lacks a credential or a setting.
NOT_CONFIGURED: Final = "not_configured"
#: Reason of an attempt for whose credentials no access token could be fetched.
NO_ACCESS_TOKEN: Final = "no_access_token"  # noqa: S105 - a reason
#: Reasons of failures that another credential of the provider may avoid.
CREDENTIAL_REASONS: Final = frozenset({RATE_LIMITED, UNAUTHORIZED, NOT_CONFIGURED, NO_ACCESS_TOKEN})
#: Reason of an attempt that was not made because the deployment has reached its limits.
DEPLOYMENT_FULL: Final = "deployment_full"
#: Reason of an attempt that was not made because the circuit was open.
CIRCUIT_OPEN: Final = "circuit_open"
#: Reason of an attempt that was not made because of a kill switch.
KILL_SWITCHED: Final = "kill_switched"
#: Reason of an attempt that was not made because the provider's dialect cannot express the call.
NOT_CONVERTIBLE: Final = "not_convertible"
#: Reasons of attempts that were not made.
NOT_SENT: Final = frozenset({DEPLOYMENT_FULL, CIRCUIT_OPEN, KILL_SWITCHED, NOT_CONVERTIBLE})

_SENTENCES: Final[Mapping[str, str]] = {
    "connect_failed": "No connection could be made.",
    "no_connection_free": "This process has the maximum number of calls to providers in progress. Try again.",
    "timeout": "No complete answer came in time.",
    "connection_closed": "The connection broke off before the answer was complete.",
    "address_refused": "The address is out of bounds: neither EGRESS_POLICY nor the address guard permits it.",
    "reply_too_large": "The answer was far too large.",
    "bad_reply": "The answer is not what a provider of this kind answers.",
    "stream_error": "The provider broke its stream off with an error.",
    UNAUTHORIZED: "The provider refuses the credentials.",
    "model_not_found": "The provider does not have this model, or its address is wrong.",
    RATE_LIMITED: "The provider's rate limit is reached.",
    "no_instance_role": "This machine has no role in the cloud, or its credentials cannot be had.",
    NO_ACCESS_TOKEN: "No access token could be had: the token endpoint did not answer, or answered with an error.",
    NOT_CONFIGURED: "A credential or setting is missing without which the provider cannot be called.",
    "refused": "The provider refuses the request.",
    "deadline": "The time for the whole request was over.",
    CIRCUIT_OPEN: "It failed several times in a row and is left alone for a while.",
    DEPLOYMENT_FULL: "It has reached the limits that its model alias sets.",
    KILL_SWITCHED: "It is switched off.",
    NOT_CONVERTIBLE: "The provider's API cannot express the call.",
}


def sentence(reason: str, status: int | None) -> str:
    """Return a sentence about the reason of a failed attempt, without text of the provider."""
    if reason in _SENTENCES:
        return _SENTENCES[reason]
    return f"The provider answered with HTTP status {status}." if status else "The call failed."


#: A longer `Retry-After` is ignored.
MAX_RETRY_AFTER_SECONDS = 24 * 3600


class ProviderFailed(Exception):
    """An attempt at a provider has failed.

    `reason` is a short word for records: `connect_failed`, `no_connection_free`, `timeout`, `connection_closed`,
    `address_refused`, `reply_too_large`, `bad_reply`, `stream_error`, `unauthorized`, `rate_limited`, `not_configured`,
    `no_instance_role`, `no_access_token`, `model_not_found`, `refused`, `not_convertible`, or `http_<status>`. `status`
    is the HTTP status of the provider, or None if it sent none.

    Exactly one of these applies. `retryable`: the same candidate may be tried again. `move_on`: the next candidate is
    tried at once. `client_error`: the request is at fault, not the provider, and this error is the answer. With the
    reason `not_convertible`, it is the answer only if no other candidate can express the call. `retry_after` is the
    number of seconds after which the provider accepts requests again, or None if the provider does not report it.
    """

    def __init__(
        self,
        reason: str,
        *,
        status: int | None = None,
        retryable: bool = False,
        client_error: Refusal | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.reason = reason
        self.status = status
        self.retryable = retryable
        self.client_error = client_error
        self.move_on = not retryable and client_error is None
        self.retry_after = retry_after
        super().__init__(reason)


#: Reasons for which a retry at the same candidate would fail again.
_NOT_RETRYABLE = frozenset({"address_refused", "reply_too_large", NoConnectionFree.reason})


def of_transport(error: OutboundFailed, status: int | None = None) -> ProviderFailed:
    """Return the failure of a connection."""
    return ProviderFailed(error.reason, status=status, retryable=error.reason not in _NOT_RETRYABLE)


def of_status(status: int, headers: Mapping[str, str], body: bytes, secrets: Iterable[str]) -> ProviderFailed:
    """Return the failure of an answer that is not 2xx. `secrets` are removed from messages for the client."""
    if status in {401, 403}:
        # The gateway's credential is at fault, not the client's: a client that receives 401 would discard its key.
        return ProviderFailed(UNAUTHORIZED, status=status)
    retry_after = _seconds(headers.get("retry-after"))
    if status == 404:
        # Another model may still answer.
        return ProviderFailed("model_not_found", status=status)
    if status == 429:
        # Some providers send the time at which the limit resets instead of `Retry-After`.
        reset = exhausted_seconds(headers) if retry_after is None else retry_after
        return ProviderFailed(RATE_LIMITED, status=status, retry_after=reset)
    if status >= 500 or status == 408:
        return ProviderFailed(f"http_{status}", status=status, retryable=True, retry_after=retry_after)
    error_class = _REQUEST_ERRORS.get(status)
    if error_class is None:
        return ProviderFailed(f"http_{status}", status=status)
    message, code = _message_and_code(body)
    if code == "context_length_exceeded" or _TOO_LONG.search(message):
        error_class = ContextTooLong
    elif code == "content_filter":
        error_class = FilteredUpstream
    return ProviderFailed("refused", status=status, client_error=error_class(clean(message, secrets) or None))


#: Statuses that report a fault of the request.
_REQUEST_ERRORS: dict[int, type[BadRequest] | type[PayloadTooLarge] | type[Unprocessable]] = {
    400: RefusedUpstream,
    413: PayloadTooLarge,
    422: RefusedUpstream,
}
_TOO_LONG = re.compile(
    r"maximum context length|(?:prompt|input) is too long|context window|context length"
    r"|input token count .{0,40}exceeds the maximum",
    re.IGNORECASE,
)
_KEY_LIKE = re.compile(
    r"\b(?:sk|pk|rk|gk|key)[-_][A-Za-z0-9_\-]{8,}|Bearer\s+\S+|\bya29\.\S+|\beyJ[\w-]+\.[\w.-]+", re.IGNORECASE
)


class _Error(msgspec.Struct):
    message: str = ""
    code: str | int | None = None


class _AnyErrorBody(msgspec.Struct):
    error: _Error | str | None = None
    message: str | None = None
    detail: str | None = None


_decoder = msgspec.json.Decoder(_AnyErrorBody, strict=False)


def _message_and_code(body: bytes) -> tuple[str, str | None]:
    try:
        fields = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "", None
    if isinstance(fields.error, _Error):
        return fields.error.message, str(fields.error.code)
    return fields.error or fields.message or fields.detail or "", None


def clean(message: str, secrets: Iterable[str]) -> str:
    """Return a provider's message in a form that is safe for clients: short, printable, without secrets or keys."""
    for secret in secrets:
        if len(secret) >= 4:
            message = message.replace(secret, "[redacted]")
    message = _KEY_LIKE.sub("[redacted]", message)
    return "".join(letter if letter.isprintable() else " " for letter in message[:MAX_MESSAGE_CHARACTERS]).strip()


def _seconds(value: str | None) -> float | None:
    """Return the delay in seconds of a `Retry-After`, which is a number or a date (RFC 9110, 10.2.3); None if it is not
    valid."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (date.replace(tzinfo=date.tzinfo or UTC) - utc_now()).total_seconds()
    return seconds if 0 <= seconds <= MAX_RETRY_AFTER_SECONDS else None

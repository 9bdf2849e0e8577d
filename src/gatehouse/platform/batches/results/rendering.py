"""Renders the result of a line as JSON.

openai     {"id", "custom_id", "response": {"status_code", "request_id", "body"}, "error"}
anthropic  {"custom_id", "result": {"type", "message" or "error"}}

If a provider with another API did not receive fields of the request, `response` or `result` has their names in
`gateway_dropped`, which corresponds to the header `X-Gateway-Dropped`.
"""

from typing import Any, Final
from uuid import UUID

import msgspec

from gatehouse.platform.batches.ids import BATCH_PREFIX, MESSAGE_BATCH_PREFIX, shown_id

#: Codes and messages of lines that have no answer, by the status of the line.
_NOT_RUN: Final = {
    "errored": (
        "line_interrupted",
        "The gateway stopped while this line ran. The provider may have received it. Send it again in a new batch.",
    ),
    "expired": ("batch_expired", "The batch ended before this line was run, because its time was over."),
    "cancelled": ("batch_cancelled", "The batch was stopped before this line was run."),
}
_OK: Final = 200

_encode: Final = msgspec.json.Encoder().encode


class UnreadableAnswer(ValueError):
    """The answer of a provider is not JSON, so it cannot be part of a result."""


def request_id(api: str, batch_id: UUID, number: int) -> str:
    """Return the id under which the records list the call of a line."""
    return f"{shown_id(BATCH_PREFIX if api == 'openai' else MESSAGE_BATCH_PREFIX, batch_id)}-{number}"


def answered(
    api: str, batch_id: UUID, number: int, custom_id: str, *, status: int, body: bytes, dropped: str = ""
) -> bytes:
    """Return the result of a line with this answer, without a line break. `dropped` are the names of the fields that
    the provider did not receive, separated by commas. Raises `UnreadableAnswer`."""
    try:
        # A result is one line, so line breaks between the parts of the JSON are removed.
        compact = msgspec.Raw(msgspec.json.format(body, indent=-1))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise UnreadableAnswer from None
    if api == "anthropic":
        result = {"type": "succeeded", "message": compact} if status == _OK else {"type": "errored", "error": compact}
        return _encode({"custom_id": custom_id, "result": result | _named(dropped)})
    response = {"status_code": status, "request_id": request_id(api, batch_id, number), "body": compact}
    response |= _named(dropped)
    return _encode(_openai(batch_id, number, custom_id, response, None))


def not_run(api: str, batch_id: UUID, number: int, custom_id: str, line_status: str) -> bytes:
    """Return the result of a line without an answer."""
    code, message = _NOT_RUN[line_status]
    if api == "openai":
        return _encode(_openai(batch_id, number, custom_id, None, {"code": code, "message": message}))
    if line_status != "errored":
        kind = "canceled" if line_status == "cancelled" else line_status
        return _encode({"custom_id": custom_id, "result": {"type": kind}})
    error = {"type": "error", "error": {"type": "api_error", "message": message, "code": code}}
    return _encode({"custom_id": custom_id, "result": {"type": "errored", "error": error}})


def _named(dropped: str) -> dict[str, Any]:
    return {"gateway_dropped": dropped.split(",")} if dropped else {}


def _openai(batch_id: UUID, number: int, custom_id: str, response: Any, error: Any) -> dict[str, Any]:
    return {
        "id": f"batch_req_{batch_id.hex}_{number}",
        "custom_id": custom_id,
        "response": response,
        "error": error,
    }

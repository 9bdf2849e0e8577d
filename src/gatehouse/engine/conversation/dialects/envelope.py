"""The gateway's envelope for errors (docs/errors.md), plain and in Anthropic's form."""

from typing import Any

import msgspec

from gatehouse.engine.conversation.sse import frame
from gatehouse.foundation.errors import Refusal


def openai_body(error: Refusal) -> bytes:
    return msgspec.json.encode({"error": _fields(error)})


def openai_event(error: Refusal) -> bytes:
    # The event has a name. Clients that read only `data` find the same `error` object in it.
    return frame(openai_body(error), "error")


def typed_event(error: Refusal) -> bytes:
    """Return an error event for clients that distinguish events by `type` and read the error's fields at the top
    level."""
    fields = _fields(error)
    top = {"type": "error", "code": error.code, "message": error.text, "param": fields.get("param")}
    return frame(msgspec.json.encode({**top, "error": fields}), "error")


def anthropic_body(error: Refusal) -> bytes:
    return msgspec.json.encode({"type": "error", "error": _fields(error)})


def anthropic_event(error: Refusal) -> bytes:
    return frame(anthropic_body(error), "error")


def _fields(error: Refusal) -> dict[str, Any]:
    fields: dict[str, Any] = {"message": error.text, "type": error.type}
    if error.code is not None:
        fields["code"] = error.code
    return fields | error.extra

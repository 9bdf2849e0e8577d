"""Mistral's errors. The text is in `message` or `detail`: a string, a list of faults, or one nested in the other."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from gatehouse.engine.providers.failure import ProviderFailed, of_status

#: Maximum number of faults in a message.
_MAX_FAULTS = 5


class _ErrorBody(msgspec.Struct):
    message: Any = None
    detail: Any = None


_decoder = msgspec.json.Decoder(_ErrorBody)


def failure_of(status: int, headers: Mapping[str, str], body: bytes, secrets: Iterable[str]) -> ProviderFailed:
    return of_status(status, headers, msgspec.json.encode({"message": message_in(body)}), secrets)


def message_in(body: bytes) -> str:
    """Return the message of an error's body; empty if it has none."""
    try:
        error = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    return _text(error.message) or _text(error.detail)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return _text(value.get("detail"))
    if isinstance(value, list):
        return "; ".join(_fault(item) for item in value[:_MAX_FAULTS] if isinstance(item, dict))
    return ""


def _fault(fault: dict[str, Any]) -> str:
    """Return a fault with its location, without the sent value (`input`)."""
    location = ".".join(str(step) for step in fault.get("loc") or () if step != "body")
    return f"{location}: {fault.get('msg', '')}"

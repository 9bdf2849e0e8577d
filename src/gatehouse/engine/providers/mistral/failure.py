"""Mistral's errors. Its words stand in `message` or `detail`, as a text, a list of faults, or the one within the
other."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from gatehouse.engine.providers.failure import ProviderFailed, of_status

#: Faults of a body that are told: the rest is more of the same.
_FAULTS = 5


class _Body(msgspec.Struct):
    message: Any = None
    detail: Any = None


_decoder = msgspec.json.Decoder(_Body)


def failure_of(status: int, headers: Mapping[str, str], body: bytes, secrets: Iterable[str]) -> ProviderFailed:
    return of_status(status, headers, msgspec.json.encode({"message": message_in(body)}), secrets)


def message_in(body: bytes) -> str:
    try:
        told = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    return _text(told.message) or _text(told.detail)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return _text(value.get("detail"))
    if isinstance(value, list):
        return "; ".join(_fault(item) for item in value[:_FAULTS] if isinstance(item, dict))
    return ""


def _fault(fault: dict[str, Any]) -> str:
    """What is wrong and where. What was sent (`input`) is not told."""
    where = ".".join(str(step) for step in fault.get("loc") or () if step != "body")
    return f"{where}: {fault.get('msg', '')}"

"""The allowed fields as a value."""

from typing import Any

import msgspec


class RequestFields(msgspec.Struct, frozen=True, kw_only=True):
    allowed: tuple[str, ...] = ()


def read(stored: dict[str, Any]) -> RequestFields:
    return msgspec.convert(stored, RequestFields)

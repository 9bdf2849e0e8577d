"""The allowed fields as a value."""

from typing import Any

import msgspec


class RequestFieldsValues(msgspec.Struct, frozen=True, kw_only=True):
    allowed: tuple[str, ...] = ()


def read(stored: dict[str, Any]) -> RequestFieldsValues:
    return msgspec.convert(stored, RequestFieldsValues)

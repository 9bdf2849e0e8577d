"""The sampling setting as a value."""

from typing import Any

import msgspec


class DlpSamplingValues(msgspec.Struct, frozen=True, kw_only=True):
    """`share` is the share of model calls, 0.0 to 1.0. 0 means off."""

    share: float = 0.0
    retention_days: int = 30


def read(stored: dict[str, Any]) -> DlpSamplingValues:
    return msgspec.convert(stored, DlpSamplingValues)

"""The sampling setting as a value."""

from typing import Any

import msgspec


class DlpSamplingValues(msgspec.Struct, frozen=True, kw_only=True):
    """The sampling setting. `share` is the share of model calls to sample, from 0.0 (off) to 1.0."""

    share: float = 0.0
    retention_days: int = 30


def read(stored: dict[str, Any]) -> DlpSamplingValues:
    return msgspec.convert(stored, DlpSamplingValues)

"""The retention policy as a value, with what holds where nobody has set anything."""

from typing import Any

import msgspec


class RetentionPolicy(msgspec.Struct, frozen=True, kw_only=True):
    hot_retention_days: int = 90
    warm_retention_days: int = 365
    cold_retention_years: int = 7
    archiver_schedule: str = "0 2 * * *"


def read(stored: dict[str, Any]) -> RetentionPolicy:
    return msgspec.convert(stored, RetentionPolicy)

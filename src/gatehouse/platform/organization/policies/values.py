"""The policies as values. Those of sessions and second factors stand below, where each worker's replica reads them."""

from typing import Any

import msgspec

from gatehouse.platform.sign_in_policies import Concurrency, Enforcement, MfaMethod, MfaPolicy, SessionPolicy

__all__ = [
    "Concurrency", "Enforcement", "MfaMethod", "MfaPolicy", "RetentionPolicy", "SessionPolicy", "read_retention_policy",
]  # fmt: skip


class RetentionPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Windows that follow each other: `hot` in the database, then `warm` in the archive, then `cold` (decisions 5)."""

    hot_retention_days: int = 90
    warm_retention_days: int = 365
    cold_retention_years: int = 7
    archiver_schedule: str = "0 2 * * *"


def read_retention_policy(stored: dict[str, Any]) -> RetentionPolicy:
    """Of the tenant's column `retention_policy`, which holds what was set."""
    return msgspec.convert(stored, RetentionPolicy)

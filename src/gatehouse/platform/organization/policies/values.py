"""The policies as values. They stand below: where each worker's replica reads those of
sessions and second factors, and where records are kept by that of retention."""

from gatehouse.platform.records.hot import RetentionPolicy, read_retention_policy
from gatehouse.platform.sign_in_policies import Concurrency, Enforcement, MfaMethod, MfaPolicy, SessionPolicy

__all__ = [
    "Concurrency", "Enforcement", "MfaMethod", "MfaPolicy", "RetentionPolicy", "SessionPolicy", "read_retention_policy",
]  # fmt: skip

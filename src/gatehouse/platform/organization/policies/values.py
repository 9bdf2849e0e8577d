"""The policies as values. They are defined in lower layers: the replica uses the policies for sessions and second
factors, and the records use the policy for retention."""

from gatehouse.platform.live.replica.sign_in_policies import (
    ConcurrentSessions,
    Enforcement,
    MfaMethod,
    MfaRules,
    SessionRules,
)
from gatehouse.platform.records.hot import read_retention_policy

__all__ = [
    "ConcurrentSessions",
    "Enforcement",
    "MfaMethod",
    "MfaRules",
    "SessionRules",
    "read_retention_policy",
]  # fmt: skip

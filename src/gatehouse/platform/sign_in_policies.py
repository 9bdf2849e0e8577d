"""How an organization wants its people's sessions and second factors, as values, with what holds where nobody has set
anything (reference 2, Organization settings, sub-policies).

The family `organization.policies` shows and changes them; each worker's replica holds what follows from them.
"""

from datetime import datetime
from typing import Any, Literal, TypeAlias

import msgspec

Concurrency: TypeAlias = Literal["unlimited", "1", "2", "5"]
Enforcement: TypeAlias = Literal["off", "optional", "required"]
MfaMethod: TypeAlias = Literal["totp", "webauthn"]


class SessionPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A session lives `session_timeout_minutes` from sign-in or from its last refresh, and `refresh_token_ttl_days` in
    all; not used for `idle_timeout_minutes` it ends. Without refresh tokens it ends with its timeout."""

    session_timeout_minutes: int = 1440
    idle_timeout_minutes: int = 480
    concurrent_sessions: Concurrency = "unlimited"
    enforce_single_session: bool = False
    refresh_token_enabled: bool = True
    refresh_token_ttl_days: int = 30

    @property
    def most_sessions(self) -> int | None:
        if self.enforce_single_session:
            return 1
        return None if self.concurrent_sessions == "unlimited" else int(self.concurrent_sessions)


class MfaPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """`optional`: who has a method is asked. `required`: everybody is, once the grace period is over, which begins when
    the policy was set (or the user made, if that was later) and ends at the deadline at the latest."""

    enforcement_level: Enforcement = "optional"
    sensitive_endpoints_require_mfa: bool = True
    mfa_methods: tuple[MfaMethod, ...] = ("totp", "webauthn")
    grace_period_hours: int = 72
    mfa_assertion_ttl_seconds: int = 900
    enrollment_deadline: datetime | None = None


def read_session_policy(stored: dict[str, Any]) -> SessionPolicy:
    """Of the tenant's column `session_policy`, which holds what was set."""
    return msgspec.convert(stored, SessionPolicy)


def read_mfa_policy(stored: dict[str, Any]) -> MfaPolicy:
    """Of the tenant's column `mfa_policy`."""
    return msgspec.convert(stored, MfaPolicy)

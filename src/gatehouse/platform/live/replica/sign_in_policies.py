"""An organization's policies for sessions (docs/sessions.md) and second factors (docs/mfa.md), with their defaults.

The family `organization.policies` shows and changes them; each worker's replica holds the values derived from them.
"""

from datetime import datetime
from typing import Any, Literal, TypeAlias

import msgspec

Concurrency: TypeAlias = Literal["unlimited", "1", "2", "5"]
Enforcement: TypeAlias = Literal["off", "optional", "required"]
MfaMethod: TypeAlias = Literal["totp", "webauthn"]


class SessionRules(msgspec.Struct, frozen=True, kw_only=True):
    """Lifetime and number of sessions. A session ends `session_timeout_minutes` after sign-in or its last refresh,
    `refresh_token_ttl_days` after sign-in, or after `idle_timeout_minutes` without use. Without refresh tokens it ends
    with its timeout."""

    session_timeout_minutes: int = 1440
    idle_timeout_minutes: int = 480
    concurrent_sessions: Concurrency = "unlimited"
    enforce_single_session: bool = False
    refresh_token_enabled: bool = True
    refresh_token_ttl_days: int = 30

    @property
    def max_sessions(self) -> int | None:
        if self.enforce_single_session:
            return 1
        return None if self.concurrent_sessions == "unlimited" else int(self.concurrent_sessions)


class MfaRules(msgspec.Struct, frozen=True, kw_only=True):
    """Enforcement of second factors. `optional`: required of users who have enrolled one. `required`: required of all
    users after the grace period, which begins when the policy was set (or the user created, if later) and ends at the
    deadline at the latest."""

    enforcement_level: Enforcement = "optional"
    sensitive_endpoints_require_mfa: bool = True
    mfa_methods: tuple[MfaMethod, ...] = ("totp", "webauthn")
    grace_period_hours: int = 72
    mfa_assertion_ttl_seconds: int = 900
    enrollment_deadline: datetime | None = None


def read_session_policy(stored: dict[str, Any]) -> SessionRules:
    """Parse the tenant's column `session_policy`, which contains only the fields that were set."""
    return msgspec.convert(stored, SessionRules)


def read_mfa_policy(stored: dict[str, Any]) -> MfaRules:
    """Parse the tenant's column `mfa_policy`, which contains only the fields that were set."""
    return msgspec.convert(stored, MfaRules)

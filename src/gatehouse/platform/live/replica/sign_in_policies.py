"""The policies of an organization for sessions (docs/sessions.md) and second factors (docs/mfa.md), with their
defaults.

The family `organization.policies` shows and changes the policies. The replica of each worker holds values derived from
them.
"""

from datetime import datetime
from typing import Any, Literal, TypeAlias

import msgspec

ConcurrentSessions: TypeAlias = Literal["unlimited", "1", "2", "5"]
Enforcement: TypeAlias = Literal["off", "optional", "required"]
MfaMethod: TypeAlias = Literal["totp", "webauthn"]


class SessionRules(msgspec.Struct, frozen=True, kw_only=True):
    """The lifetime and the number of sessions. A session ends at the earliest of three times: `session_timeout_minutes`
    or `idle_timeout_minutes` after the sign-in or the last refresh, or `refresh_token_ttl_days` after the sign-in.
    Without refresh tokens, it ends `session_timeout_minutes` after the sign-in."""

    session_timeout_minutes: int = 1440
    idle_timeout_minutes: int = 480
    concurrent_sessions: ConcurrentSessions = "unlimited"
    enforce_single_session: bool = False
    refresh_token_enabled: bool = True
    refresh_token_ttl_days: int = 30

    @property
    def max_sessions(self) -> int | None:
        if self.enforce_single_session:
            return 1
        return None if self.concurrent_sessions == "unlimited" else int(self.concurrent_sessions)


class MfaRules(msgspec.Struct, frozen=True, kw_only=True):
    """The enforcement of second factors. `optional` requires one of users who have enrolled a method. `required`
    requires one of all users after the grace period. The period begins when the level became `required`, or when the
    user was created if that is later. It ends at `enrollment_deadline` at the latest."""

    enforcement_level: Enforcement = "optional"
    sensitive_endpoints_require_mfa: bool = True
    mfa_methods: tuple[MfaMethod, ...] = ("totp", "webauthn")
    grace_period_hours: int = 72
    mfa_assertion_ttl_seconds: int = 900
    enrollment_deadline: datetime | None = None


def read_session_policy(stored: dict[str, Any]) -> SessionRules:
    """Parse the column `session_policy` of a tenant. It contains only the fields that were set."""
    return msgspec.convert(stored, SessionRules)


def read_mfa_policy(stored: dict[str, Any]) -> MfaRules:
    """Parse the column `mfa_policy` of a tenant. It contains only the fields that were set."""
    return msgspec.convert(stored, MfaRules)

"""Decides whether an organization requires a second factor of a user (docs/mfa.md). Times are Unix times.

off        required of no user
optional   required of users who have enrolled a method
required   required of all users; of users without a method only after the grace period
"""

import os
from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from gatehouse.foundation.settings import boolean
from gatehouse.platform.live.replica.sign_in_policies import Enforcement, read_mfa_policy

#: Columns that `read` needs, for a query over `tenants t` with `JOIN`.
POLICY_COLUMNS: Final = (
    "t.mfa_policy, t.mfa_policy_changed_at, c.value AS mfa_required, c.updated_at AS mfa_required_at"
)
JOIN: Final = "LEFT JOIN system_config c ON c.tenant_id = t.id AND c.key = 'mfa_required'"
#: Columns that `enrolled` needs, for a query with the parameter `user`.
ENROLLED: Final = (
    "EXISTS (SELECT FROM mfa_totp WHERE user_id = :user AND confirmed_at IS NOT NULL) AS totp,"
    " EXISTS (SELECT FROM mfa_passkeys WHERE user_id = :user) AS webauthn"
)


class SecondFactor(msgspec.Struct, frozen=True, gc=False):
    """The policy of an organization for second factors, combined with the entry `mfa_required` of the system
    configuration."""

    level: Enforcement = "optional"
    #: whether sensitive operations require a fresh second factor
    sensitive: bool = True
    #: methods that may be enrolled and used
    methods: frozenset[str] = frozenset({"totp", "webauthn"})
    ttl_seconds: int = 900
    #: time at which the level became `required`; 0 if unknown
    since: float = 0
    grace_seconds: float = 72 * 3600
    deadline: float | None = None

    def due(self, created: float) -> float | None:
        """Return the time from which a user created at `created` must have a method, or None if never."""
        if self.level != "required":
            return None
        end = max(self.since, created) + self.grace_seconds
        return end if self.deadline is None else min(end, self.deadline)

    def asks(self, enrolled: frozenset[str], created: float, now: float) -> bool:
        """Return whether the user needs a second factor. Methods that the policy excludes are treated as not
        enrolled."""
        if self.level == "off":
            return False
        if not enrolled.isdisjoint(self.methods):
            return True
        due = self.due(created)
        return due is not None and due <= now


def read(row: Any) -> SecondFactor:
    """Build the policy from a row that has `POLICY_COLUMNS`."""
    policy = read_mfa_policy(row.mfa_policy)
    required = required_by(row) is not None
    level: Enforcement = "required" if required else policy.enforcement_level
    required_since = [row.mfa_policy_changed_at] if policy.enforcement_level == "required" else []
    required_since += [row.mfa_required_at] if required else []
    return SecondFactor(
        level,
        policy.sensitive_endpoints_require_mfa,
        frozenset(policy.mfa_methods),
        policy.mfa_assertion_ttl_seconds,
        min((_unix(moment) or 0.0 for moment in required_since), default=0.0),
        policy.grace_period_hours * 3600,
        _unix(policy.enrollment_deadline),
    )


def required_by(row: Any) -> Literal["organization", "environment"] | None:
    """Return who set the configuration `mfa_required` to true, or None if it is false. Takes a row with
    `POLICY_COLUMNS`."""
    if row.mfa_required is not None:
        return "organization" if row.mfa_required == "true" else None
    return "environment" if boolean(os.environ.get("MFA_REQUIRED", "")) is True else None


def enrolled(row: Any) -> frozenset[str]:
    """Return the enrolled methods of a user from a row that has the columns of `ENROLLED`."""
    return frozenset(name for name in ("totp", "webauthn") if getattr(row, name))


def _unix(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()

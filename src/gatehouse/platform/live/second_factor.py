"""Whether an organization asks a user for a second factor (reference 2, MFA policy; decisions 3). Times are Unix times.

off        nobody is asked
optional   who has a method is asked
required   everybody is, a user without a method once the grace period is over
"""

import os
from datetime import datetime
from typing import Any, Final

import msgspec

from gatehouse.foundation.settings import boolean
from gatehouse.platform.sign_in_policies import Enforcement, read_mfa_policy

#: Columns of a query over `tenants t` with `JOIN`, as `read` takes them.
COLUMNS: Final = "t.mfa_policy, t.mfa_policy_changed_at, c.value AS mfa_required, c.updated_at AS mfa_required_at"
JOIN: Final = "LEFT JOIN system_config c ON c.tenant_id = t.id AND c.key = 'mfa_required'"
#: Columns of a query with the parameter `user`, as `enrolled` takes them.
ENROLLED: Final = (
    "EXISTS (SELECT FROM mfa_totp WHERE user_id = :user AND confirmed_at IS NOT NULL) AS totp,"
    " EXISTS (SELECT FROM mfa_passkeys WHERE user_id = :user) AS webauthn"
)


class SecondFactor(msgspec.Struct, frozen=True, gc=False):
    """An organization's policy, with what the system configuration `mfa_required` makes of it."""

    level: Enforcement = "optional"
    #: whether sensitive operations ask for it
    sensitive: bool = True
    #: what may be enrolled and used
    methods: frozenset[str] = frozenset({"totp", "webauthn"})
    ttl_seconds: int = 900
    #: since when the level is `required`; 0 where nobody knows
    since: float = 0
    grace_seconds: float = 72 * 3600
    deadline: float | None = None

    def due(self, created: float) -> float | None:
        """From when on a user who was made at `created` needs a method. None: never."""
        if self.level != "required":
            return None
        end = max(self.since, created) + self.grace_seconds
        return end if self.deadline is None else min(end, self.deadline)

    def asks(self, enrolled: frozenset[str], created: float, now: float) -> bool:
        """Whether the user is asked. Methods that the policy does not allow count as not enrolled."""
        if self.level == "off":
            return False
        if not enrolled.isdisjoint(self.methods):
            return True
        due = self.due(created)
        return due is not None and due <= now


def read(row: Any) -> SecondFactor:
    """Of a row with `COLUMNS`."""
    policy = read_mfa_policy(row.mfa_policy)
    # What an organization did not set follows the environment (reference 2, System configuration entry).
    by_environment = boolean(os.environ.get("MFA_REQUIRED", "")) is True
    told = row.mfa_required == "true" if row.mfa_required is not None else by_environment
    level: Enforcement = "required" if told else policy.enforcement_level
    since = [row.mfa_policy_changed_at] if policy.enforcement_level == "required" else []
    since += [row.mfa_required_at] if told else []
    return SecondFactor(
        level,
        policy.sensitive_endpoints_require_mfa,
        frozenset(policy.mfa_methods),
        policy.mfa_assertion_ttl_seconds,
        min((_unix(each) or 0.0 for each in since), default=0.0),
        policy.grace_period_hours * 3600,
        _unix(policy.enrollment_deadline),
    )


def enrolled(row: Any) -> frozenset[str]:
    """The methods of the user, of a row with `ENROLLED`."""
    return frozenset(name for name in ("totp", "webauthn") if getattr(row, name))


def _unix(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()

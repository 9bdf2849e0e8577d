"""A provider's health: what a check's outcome makes of it (reference 3, Provider status). Nothing here acts."""

from datetime import datetime
from typing import Literal

import msgspec

HealthStatus = Literal["healthy", "degraded", "unreachable", "unknown"]

#: Counters stop here: no threshold is higher.
_MANY = 1_000


class HealthConfig(msgspec.Struct, frozen=True, kw_only=True):
    """When a provider is checked, and what makes it unhealthy (reference 3, Health check config)."""

    enabled: bool = True
    interval_seconds: int = 30
    timeout_ms: int = 5_000
    failure_threshold: int = 3
    recovery_threshold: int = 2


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a check saw. `degraded` is an answer that is no good one, `unreachable` no answer at all.

    `error` is a short word, `detail` a sentence; both None after a good answer, and never with a secret in them.
    """

    status: HealthStatus
    checked_at: datetime
    latency_ms: float | None = None
    error: str | None = None
    detail: str | None = None

    @property
    def good(self) -> bool:
        return self.error is None


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """`failures` and `successes` are counted in a row; `unhealthy` is what routing goes by."""

    status: HealthStatus = "unknown"
    unhealthy: bool = False
    failures: int = 0
    successes: int = 0


def next_health(health: Health, outcome: Outcome, config: HealthConfig) -> Health:
    """The only way in which health changes, whether a check was asked for or scheduled."""
    if outcome.good:
        successes = min(health.successes + 1, _MANY)
        still = health.unhealthy and successes < config.recovery_threshold
        return Health(status=outcome.status, unhealthy=still, successes=successes)
    failures = min(health.failures + 1, _MANY)
    unhealthy = health.unhealthy or failures >= config.failure_threshold
    return Health(status=outcome.status, unhealthy=unhealthy, failures=failures)

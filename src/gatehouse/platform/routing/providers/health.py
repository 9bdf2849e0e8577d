"""A provider's health as a state machine over the outcomes of checks, without side effects."""

from datetime import datetime
from typing import Literal

import msgspec

HealthStatus = Literal["healthy", "degraded", "unreachable", "unknown"]

#: Maximum value of the counters, which is above every threshold.
_MAX_COUNT = 1_000


class HealthConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The schedule and the thresholds of a provider's health checks."""

    enabled: bool = True
    interval_seconds: int = 30
    timeout_ms: int = 5_000
    failure_threshold: int = 3
    recovery_threshold: int = 2


class CheckOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check: `degraded` is an error response, `unreachable` is no response.

    `error` is a short code, `detail` a sentence; both are None on success, and contain no secret.
    """

    status: HealthStatus
    checked_at: datetime
    latency_ms: float | None = None
    error: str | None = None
    detail: str | None = None

    @property
    def good(self) -> bool:
        return self.error is None


class HealthState(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's health. `failures` and `successes` count consecutive checks; routing uses `unhealthy`."""

    status: HealthStatus = "unknown"
    unhealthy: bool = False
    failures: int = 0
    successes: int = 0


def next_health(health: HealthState, outcome: CheckOutcome, config: HealthConfig) -> HealthState:
    """Return the health after `outcome`, of a scheduled or a requested check."""
    if outcome.good:
        successes = min(health.successes + 1, _MAX_COUNT)
        unhealthy = health.unhealthy and successes < config.recovery_threshold
        return HealthState(status=outcome.status, unhealthy=unhealthy, successes=successes)
    failures = min(health.failures + 1, _MAX_COUNT)
    unhealthy = health.unhealthy or failures >= config.failure_threshold
    return HealthState(status=outcome.status, unhealthy=unhealthy, failures=failures)

"""Totals of the requests in a batch by the minute and by the hour in which they ended. `records/minutes` defines the
counts.
"""

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from typing import Final, NamedTuple, TypeAlias

import msgspec

from gatehouse.engine.records.outcome import Outcome
from gatehouse.platform.records.minutes.latency import bucket

#: Error codes of requests that were stopped by a rule, a limit, a budget or a kill switch, whatever their status.
_BLOCKED_CODES: Final = frozenset(
    {"dlp_violation", "content_filter_violation", "policy_violation", "cost_cap_exceeded", "quota_exceeded",
     "provider_unavailable", "kill_switch_active"}
)  # fmt: skip
_BLOCKED_STATUSES: Final = frozenset({402, 403, 429})
_NO_COST: Final = Decimal(0)

#: A row of `usage_minutes` or `usage_hours`. The two tables differ only in the name of the time column.
TotalsRow: TypeAlias = tuple[str, int, int, int, int, int, Decimal, str]


class MinuteKey(NamedTuple):
    """A minute of one tenant. `start` is Unix time."""

    tenant_id: str
    start: int


class MinuteTotals(msgspec.Struct):
    requests: int = 0
    errors: int = 0
    blocked: int = 0
    dlp_triggers: int = 0
    cost_usd: Decimal = _NO_COST
    #: number of requests by latency bucket
    latency: Counter[int] = msgspec.field(default_factory=Counter)

    def add(self, other: "MinuteTotals") -> None:
        self.requests += other.requests
        self.errors += other.errors
        self.blocked += other.blocked
        self.dlp_triggers += other.dlp_triggers
        self.cost_usd += other.cost_usd
        self.latency.update(other.latency)


class MinuteRows(msgspec.Struct):
    """Collects the totals of one batch."""

    by_minute: dict[MinuteKey, MinuteTotals] = {}

    def add(self, outcome: Outcome[str], latency: float | None, triggers: int) -> None:
        """Add a request. `latency` is in milliseconds, or None if unknown. `triggers` is 1 if a DLP rule acted,
        else 0."""
        end = ended_at(outcome, latency)
        minute = MinuteKey(outcome.tenant_id, end - end % 60)
        totals = self.by_minute.get(minute)
        if totals is None:
            totals = self.by_minute[minute] = MinuteTotals()
        totals.requests += 1
        totals.dlp_triggers += triggers
        if outcome.cost_usd is not None:
            totals.cost_usd += Decimal(outcome.cost_usd)
        if outcome.outcome != "success":
            if blocked(outcome):
                totals.blocked += 1
            elif failed(outcome):
                totals.errors += 1
        if latency is not None and outcome.outcome != "refused":
            totals.latency[bucket(latency)] += 1

    def minutes(self) -> list[TotalsRow]:
        """Return the rows of `usage_minutes`. They are sorted, so that concurrent keepers lock rows in the same
        order."""
        return _rows(self.by_minute)

    def hours(self) -> list[TotalsRow]:
        """Return the rows of `usage_hours`. They are sorted, so that concurrent keepers lock rows in the same order."""
        by_hour: dict[MinuteKey, MinuteTotals] = {}
        for (tenant_id, start), totals in self.by_minute.items():
            by_hour.setdefault(MinuteKey(tenant_id, start - start % 3600), MinuteTotals()).add(totals)
        return _rows(by_hour)


def _rows(totals: Mapping[MinuteKey, MinuteTotals]) -> list[TotalsRow]:
    return [
        (*key, row.requests, row.errors, row.blocked, row.dlp_triggers, row.cost_usd, _array(row.latency))
        for key, row in sorted(totals.items())
    ]


def ended_at(outcome: Outcome[str], latency: float | None) -> int:
    """Return the Unix time at which the request ended. `latency` is in milliseconds, or None if unknown."""
    return int(outcome.timestamp + (latency or 0.0) / 1000)


def failed(outcome: Outcome[str]) -> bool:
    """Return whether the provider or the gateway failed, for a request that was not blocked."""
    return outcome.outcome != "success" and (outcome.status >= 500 or outcome.outcome in {"error", "interrupted"})


def blocked(outcome: Outcome[str]) -> bool:
    """Return whether the request was stopped by a rule, a limit, a budget or a kill switch, and did not fail."""
    return outcome.error_code in _BLOCKED_CODES or (
        outcome.outcome == "refused" and outcome.status in _BLOCKED_STATUSES
    )


def _array(latency: Counter[int]) -> str:
    """Return the histogram as a PostgreSQL array in text form. Each element has the bucket in its upper and the count
    in its lower 32 bits."""
    return f"{{{','.join(str((number << 32) + count) for number, count in latency.items())}}}"

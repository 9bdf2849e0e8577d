"""A batch's requests by the minute in which they ended (`records/minutes` says what counts as what)."""

from collections import Counter
from decimal import Decimal
from typing import Final, NamedTuple

import msgspec

from gatehouse.engine.outcome import Outcome
from gatehouse.platform.records.minutes.latency import bucket

#: What a rule, a limit, a budget or a switch answers with, whatever the status and however far the answer was.
_BLOCKED: Final = frozenset(
    {"dlp_violation", "content_filter_violation", "policy_violation", "cost_cap_exceeded", "quota_exceeded",
     "provider_unavailable", "kill_switch_active"}
)  # fmt: skip
_BLOCKED_STATUSES: Final = frozenset({402, 403, 429})
_NO_COST: Final = Decimal(0)


class Minute(NamedTuple):
    """`start` is Unix time."""

    tenant_id: str
    start: int


class Ended(msgspec.Struct):
    requests: int = 0
    errors: int = 0
    blocked: int = 0
    dlp_triggers: int = 0
    cost_usd: Decimal = _NO_COST
    #: how many took how long, by bucket
    latency: Counter[int] = msgspec.field(default_factory=Counter)


class MinuteRows(msgspec.Struct):
    by_minute: dict[Minute, Ended] = {}

    def add(self, outcome: Outcome[str], latency: float | None, triggers: int) -> None:
        """`latency` in milliseconds, None where nobody knows it; `triggers` is 1 where a DLP rule did something."""
        end = int(outcome.timestamp + (latency or 0.0) / 1000)
        minute = Minute(outcome.tenant_id, end - end % 60)
        ended = self.by_minute.get(minute)
        if ended is None:
            ended = self.by_minute[minute] = Ended()
        ended.requests += 1
        ended.dlp_triggers += triggers
        if outcome.cost_usd is not None:
            ended.cost_usd += Decimal(outcome.cost_usd)
        if outcome.outcome != "success":
            if blocked(outcome):
                ended.blocked += 1
            elif outcome.status >= 500 or outcome.outcome in {"error", "interrupted"}:
                ended.errors += 1
        if latency is not None and outcome.outcome != "refused":
            ended.latency[bucket(latency)] += 1

    def minutes(self) -> list[tuple[str, int, int, int, int, int, Decimal, str]]:
        """In order, here and below: two keepers that add to the same must not wait for each other."""
        return [
            (*minute, each.requests, each.errors, each.blocked, each.dlp_triggers, each.cost_usd, _array(each.latency))
            for minute, each in sorted(self.by_minute.items())
        ]

    def hours(self) -> list[tuple[str, int, str]]:
        by_hour: dict[Minute, Counter[int]] = {}
        for (tenant_id, start), ended in self.by_minute.items():
            if ended.latency:
                by_hour.setdefault(Minute(tenant_id, start - start % 3600), Counter()).update(ended.latency)
        return [(*hour, _array(latency)) for hour, latency in sorted(by_hour.items())]


def blocked(outcome: Outcome[str]) -> bool:
    """Whether something said no, rather than failed."""
    return outcome.error_code in _BLOCKED or (outcome.outcome == "refused" and outcome.status in _BLOCKED_STATUSES)


def _array(latency: Counter[int]) -> str:
    """As PostgreSQL writes an array."""
    return f"{{{','.join(str((number << 32) + count) for number, count in latency.items())}}}"

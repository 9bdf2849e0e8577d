"""The refusal of a call by an exhausted budget, and the `X-Budget-*` headers. All hosts use both (docs/budgets.md)."""

import math
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeAlias

from gatehouse.foundation.clock import iso
from gatehouse.foundation.errors import TooManyRequests
from gatehouse.policy.budgets import NANO, Budget
from gatehouse.policy.periods import PeriodSpan

#: Amounts of the three metrics, in this order: nano USD, requests, tokens.
Triple: TypeAlias = tuple[int, int, int]
NOTHING: Final[Triple] = (0, 0, 0)
#: Names of the three metrics for clients and events.
METRICS: Final = ("usd", "requests", "tokens")
#: The smallest amounts that a call uses.
MIN_CALL_AMOUNTS: Final[Triple] = (1, 1, 1)

_HEADER_NAMES: Final = tuple(
    (f"X-Budget-Limit-{name}", f"X-Budget-Remaining-{name}", f"X-Budget-Reset-{name}")
    for name in ("USD", "Requests", "Tokens")
)
_UNITS: Final = {"usd": "dollars", "requests": "requests", "tokens": "tokens"}


class CountedBudget(Protocol):
    """One period of one budget, as the host counts it."""

    budget: Budget
    span: PeriodSpan
    limits: tuple[int | None, int | None, int | None]
    #: values of the limit headers, formatted once
    shown_limits: list[str]
    shown_end: str

    def remaining(self, metric: int) -> int | None:
        """Return the remaining amount of a metric for all callers together, or None if the metric has no limit."""


class QuotaExceeded(TooManyRequests):
    """A budget has too little left for the call: 429. The body has `tier` (`plan`, or a scope and a period) and
    `retry_after` (seconds), as the error of a rate limit has."""

    @classmethod
    def of(cls, account: CountedBudget, metric: int, now: float) -> "QuotaExceeded":
        end, name = account.span.end, account.budget.name
        wait = max(1, math.ceil(end - now))
        limit = account.limits[metric] or 0
        subject = "The plan's monthly allowance" if account.budget.plan else f"The budget {name}"
        return cls(
            f"{subject} has too little left for this call ({shown(metric, account.remaining(metric) or 0)} of"
            f" {shown(metric, limit)} {_UNITS[METRICS[metric]]}). It begins anew at {iso(end)}.",
            headers={"X-RateLimit-Reset": str(end), "Retry-After": str(wait), **left([account])},
            tier=name,
            retry_after=wait,
        )


def left(accounts: Sequence[CountedBudget]) -> dict[str, str]:
    """Return the `X-Budget-*` headers. The headers of a metric come from the budget that has the least of it left."""
    tightest: dict[int, tuple[int, CountedBudget]] = {}
    for account in accounts:
        for metric, limit in enumerate(account.limits):
            if limit is None:
                continue
            remaining = account.remaining(metric) or 0
            if metric not in tightest or remaining < tightest[metric][0]:
                tightest[metric] = remaining, account
    headers = {}
    for metric, (remaining, account) in tightest.items():
        limit_header, remaining_header, reset_header = _HEADER_NAMES[metric]
        headers[limit_header] = account.shown_limits[metric]
        headers[remaining_header] = shown(metric, remaining)
        headers[reset_header] = account.shown_end
    return headers


def shown(metric: int, amount: int) -> str:
    """Return an amount in the form of headers and messages: dollars with six decimal places, requests and tokens as
    integers."""
    return str(amount) if metric else f"{amount / NANO:.6f}"


def shown_limits(limits: Iterable[int | None]) -> list[str]:
    """Return the limit of each metric in the form of the headers. It is an empty string if the metric has no limit."""
    return ["" if limit is None else shown(metric, limit) for metric, limit in enumerate(limits)]

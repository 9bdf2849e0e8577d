"""The refusal of an exhausted budget and the `X-Budget-*` headers, for every host (docs/budgets.md)."""

import math
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeAlias

from gatehouse.foundation.clock import iso
from gatehouse.foundation.errors import TooManyRequests
from gatehouse.policy.budgets import NANO, Budget
from gatehouse.policy.periods import PeriodSpan

#: nano USD, requests, tokens
Triple: TypeAlias = tuple[int, int, int]
NOTHING: Final[Triple] = (0, 0, 0)
#: names of the three metrics, for clients and events
METRICS: Final = ("usd", "requests", "tokens")
#: The least that a call takes.
MIN_CALL_AMOUNTS: Final[Triple] = (1, 1, 1)

_HEADER_NAMES: Final = tuple(
    (f"X-Budget-Limit-{name}", f"X-Budget-Remaining-{name}", f"X-Budget-Reset-{name}")
    for name in ("USD", "Requests", "Tokens")
)
_UNITS: Final = {"usd": "dollars", "requests": "requests", "tokens": "tokens"}


class CountedBudget(Protocol):
    """One period of one budget, as its host counts it."""

    budget: Budget
    span: PeriodSpan
    limits: tuple[int | None, int | None, int | None]
    #: values of the headers, formatted once
    shown_limits: list[str]
    shown_end: str

    def remaining(self, metric: int) -> int | None:
        """Return the rest of a metric for all callers together; None if it has no limit."""


class QuotaExceeded(TooManyRequests):
    """429 with `tier` (`plan`, or a scope and a period) and `retry_after` (seconds), as rate limits have."""

    @classmethod
    def of(cls, account: CountedBudget, metric: int, now: float) -> "QuotaExceeded":
        end, name = account.span.end, account.budget.name
        wait = max(1, math.ceil(end - now))
        limit = account.limits[metric] or 0
        subject = "What the plan includes each month" if account.budget.plan else f"The budget {name}"
        return cls(
            f"{subject} has too little left for this call ({shown(metric, account.remaining(metric) or 0)} of"
            f" {shown(metric, limit)} {_UNITS[METRICS[metric]]}). It begins anew at {iso(end)}.",
            headers={"X-RateLimit-Reset": str(end), "Retry-After": str(wait), **left([account])},
            tier=name,
            retry_after=wait,
        )


def left(accounts: Sequence[CountedBudget]) -> dict[str, str]:
    """Return the `X-Budget-*` headers: for each metric those of the budget with the least left."""
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
    """Return an amount in the form of headers and messages: dollars with six decimal places, the others whole."""
    return str(amount) if metric else f"{amount / NANO:.6f}"


def shown_limits(limits: Iterable[int | None]) -> list[str]:
    """Return each metric's limit in the form of the headers, empty if there is none."""
    return ["" if limit is None else shown(metric, limit) for metric, limit in enumerate(limits)]

"""What clients are told about budgets, whoever counts them: the refusal, and what is left (decisions 7, Budgets)."""

import math
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeAlias

from gatehouse.foundation.clock import iso
from gatehouse.foundation.errors import TooManyRequests
from gatehouse.policy.budgets import NANO, Budget
from gatehouse.policy.periods import Span

#: nano USD, requests, tokens
Triple: TypeAlias = tuple[int, int, int]
NOTHING: Final[Triple] = (0, 0, 0)
#: the three metrics' names, for clients and events
METRICS: Final = ("usd", "requests", "tokens")
#: What every call takes at least.
LEAST: Final[Triple] = (1, 1, 1)

_NAMES: Final = tuple(
    (f"X-Budget-Limit-{name}", f"X-Budget-Remaining-{name}", f"X-Budget-Reset-{name}")
    for name in ("USD", "Requests", "Tokens")
)
_WORDS: Final = {"usd": "dollars", "requests": "requests", "tokens": "tokens"}


class Counted(Protocol):
    """One period of one budget, as whoever counts it knows it."""

    budget: Budget
    span: Span
    limits: tuple[int | None, int | None, int | None]
    #: what headers say, made once
    shown_limits: list[str]
    shown_end: str

    def remaining(self, metric: int) -> int | None:
        """What is left of a metric for anybody; None where it has no limit."""


class QuotaExceeded(TooManyRequests):
    """429 with `tier` (`plan`, or a scope and a period) and `retry_after` (seconds), as rate limits have."""

    @classmethod
    def of(cls, account: Counted, metric: int, now: float) -> "QuotaExceeded":
        end, name = account.span.end, account.budget.name
        wait = max(1, math.ceil(end - now))
        limit = account.limits[metric] or 0
        told = "What the plan includes each month" if account.budget.plan else f"The budget {name}"
        return cls(
            f"{told} has too little left for this call ({shown(metric, account.remaining(metric) or 0)} of"
            f" {shown(metric, limit)} {_WORDS[METRICS[metric]]}). It begins anew at {iso(end)}.",
            headers={"X-RateLimit-Reset": str(end), "Retry-After": str(wait), **left([account])},
            tier=name,
            retry_after=wait,
        )


def left(accounts: Sequence[Counted]) -> dict[str, str]:
    """`X-Budget-*`: of each metric the budget with the least left."""
    tightest: dict[int, tuple[int, Counted]] = {}
    for account in accounts:
        for metric, limit in enumerate(account.limits):
            if limit is None:
                continue
            now = account.remaining(metric) or 0
            if metric not in tightest or now < tightest[metric][0]:
                tightest[metric] = now, account
    headers = {}
    for metric, (least, account) in tightest.items():
        limited, remaining, reset = _NAMES[metric]
        headers[limited] = account.shown_limits[metric]
        headers[remaining] = shown(metric, least)
        headers[reset] = account.shown_end
    return headers


def shown(metric: int, amount: int) -> str:
    """As clients see it: dollars to the millionth, the others whole."""
    return str(amount) if metric else f"{amount / NANO:.6f}"


def shown_limits(limits: Iterable[int | None]) -> list[str]:
    return ["" if limit is None else shown(metric, limit) for metric, limit in enumerate(limits)]

"""What one outpost has spent of the budgets, and what it has set aside for calls."""

from collections.abc import Sequence
from typing import Literal, TypeAlias
from uuid import UUID

from gatehouse.engine.quotas import NOTHING, Triple, left, shown_limits
from gatehouse.policy.budgets import Budget
from gatehouse.policy.periods import Span

#: Of the outpost's own budget.
Status: TypeAlias = Literal["ok", "warning", "exceeded"]


class Account:
    """One period of one budget. `spent` is of this outpost alone."""

    __slots__ = ("budget", "limits", "reserved", "shown_end", "shown_limits", "span", "spent", "written")

    def __init__(self, budget: Budget, period: Span, spent: Triple) -> None:
        self.span = period
        self.shown_end = str(period.end)
        self.spent = self.written = spent
        self.reserved = NOTHING
        self.under(budget)

    def under(self, budget: Budget) -> None:
        """The budget as it is now."""
        self.budget = budget
        self.limits = budget.limits.nano_usd, budget.limits.requests, budget.limits.tokens
        self.shown_limits = shown_limits(self.limits)

    @property
    def need(self) -> Triple:
        spent, reserved = self.spent, self.reserved
        return spent[0] + reserved[0], spent[1] + reserved[1], spent[2] + reserved[2]

    def lacks(self, amounts: Triple, allowed: Sequence[int | None]) -> int | None:
        """The first metric that does not fit what is allowed."""
        need = self.need
        for metric, most in enumerate(allowed):
            if most is not None and need[metric] + amounts[metric] > most:
                return metric
        return None

    def remaining(self, metric: int) -> int | None:
        limit = self.limits[metric]
        return None if limit is None else max(0, limit - self.need[metric])


class Reservation:
    """See `engine.ports.Reserved`."""

    __slots__ = ("accounts", "amounts", "status")

    def __init__(self, accounts: Sequence[Account], amounts: Triple, status: Status | None) -> None:
        self.accounts = accounts
        self.amounts = amounts
        self.status = status

    @property
    def periods(self) -> tuple[tuple[UUID, int], ...]:
        # The platform knows nothing of an outpost's own.
        return tuple((each.budget.id, each.span.start) for each in self.accounts if not each.budget.own)

    def headers(self) -> dict[str, str]:
        headers = left([each for each in self.accounts if not each.budget.own])
        if self.status is not None:
            headers["X-Budget-Status"] = self.status
        return headers


def plus(one: Triple, other: Triple) -> Triple:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]

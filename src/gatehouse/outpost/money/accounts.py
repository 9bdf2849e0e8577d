"""The amounts that one outpost has spent and reserved, for each budget and period."""

from collections.abc import Sequence
from typing import Literal, TypeAlias
from uuid import UUID

from gatehouse.engine.money.quotas import (
    NOTHING,
    Triple,
    left,
    shown_limits,
)
from gatehouse.policy.budgets import Budget
from gatehouse.policy.periods import PeriodSpan

#: State of the outpost's own budget (not of an organization's).
Status: TypeAlias = Literal["ok", "warning", "exceeded"]


class BudgetAccount:
    """The amounts of one period of one budget. `spent` is the amount that this outpost alone has spent."""

    __slots__ = ("budget", "limits", "reserved", "shown_end", "shown_limits", "span", "spent", "written")

    def __init__(self, budget: Budget, period: PeriodSpan, spent: Triple) -> None:
        self.span = period
        self.shown_end = str(period.end)
        self.spent = self.written = spent
        self.reserved = NOTHING
        self.set_budget(budget)

    def set_budget(self, budget: Budget) -> None:
        """Replaces the definition of the budget. The spent amounts do not change."""
        self.budget = budget
        self.limits = budget.limits.nano_usd, budget.limits.requests, budget.limits.tokens
        self.shown_limits = shown_limits(self.limits)

    @property
    def committed(self) -> Triple:
        """Returns the sums of the spent and the reserved amounts."""
        spent, reserved = self.spent, self.reserved
        return spent[0] + reserved[0], spent[1] + reserved[1], spent[2] + reserved[2]

    def lacks(self, amounts: Triple, allowed: Sequence[int | None]) -> int | None:
        """Returns the index of the first metric (cost, requests, tokens) whose `allowed` amount does not cover the
        committed amount together with `amounts`, or None."""
        committed = self.committed
        for metric, maximum in enumerate(allowed):
            if maximum is not None and committed[metric] + amounts[metric] > maximum:
                return metric
        return None

    def remaining(self, metric: int) -> int | None:
        limit = self.limits[metric]
        return None if limit is None else max(0, limit - self.committed[metric])


class Reservation:
    """Implements `engine.ports.Reserved`."""

    __slots__ = ("accounts", "amounts", "status")

    def __init__(self, accounts: Sequence[BudgetAccount], amounts: Triple, status: Status | None) -> None:
        self.accounts = accounts
        self.amounts = amounts
        self.status = status

    @property
    def periods(self) -> tuple[tuple[UUID, int], ...]:
        # The platform does not know the outpost's own budget.
        return tuple((account.budget.id, account.span.start) for account in self.accounts if not account.budget.own)

    def headers(self) -> dict[str, str]:
        headers = left([account for account in self.accounts if not account.budget.own])
        if self.status is not None:
            headers["X-Budget-Status"] = self.status
        return headers


def add_amounts(first: Triple, second: Triple) -> Triple:
    return first[0] + second[0], first[1] + second[1], first[2] + second[2]

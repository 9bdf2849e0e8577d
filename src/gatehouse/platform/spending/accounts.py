"""One worker's account of one period of a budget. This module only calculates; nothing in it waits."""

from typing import Final, NamedTuple
from uuid import UUID

from gatehouse.engine.money.quotas import NOTHING, Triple, shown_limits
from gatehouse.policy.budgets import Amounts, Budget
from gatehouse.policy.periods import PeriodSpan

#: Time in seconds for which a worker uses `room` after an answer of the ledger.
_ROOM_VALID_SECONDS: Final = 0.5


class Waiting(NamedTuple):
    """A call that waits for the ledger. `announce` is whether its refusal is announced (`quota_exceeded`)."""

    amounts: Triple
    announce: bool


class LeaseRequest(NamedTuple):
    """A worker's request to the ledger for the worker's lease on one period."""

    budget: Budget
    span: PeriodSpan
    #: whether it is unknown how much an earlier account of this worker has spent
    fresh: bool
    enforced: bool
    #: the part of the present lease that the worker may spend until the ledger answers
    kept: Triple
    #: the amounts that are spent or reserved
    committed: Triple
    waiting: tuple[Waiting, ...]
    #: the expected amounts of the next requests
    ahead: Triple
    #: the metric for which a request was refused, if `quota_exceeded` may not have been announced yet
    refused_metric: int | None
    #: the user of the last call
    user_id: UUID | None = None


class Grant(NamedTuple):
    """The answer of the ledger to a `LeaseRequest`."""

    #: the new lease
    granted: Triple
    #: the worker's previous lease; if the request was `fresh`, the previous lease is treated as spent
    previous: Triple
    #: the largest lease that the ledger could have granted to this worker
    room: Triple
    #: the amounts that all workers have spent, as stored in the database
    recorded: Triple
    #: whether `quota_exceeded` was announced
    exceeded: bool


def limits_of(limits: Amounts) -> tuple[int | None, int | None, int | None]:
    """Return the limits in the order of a `Triple`."""
    return limits.nano_usd, limits.requests, limits.tokens


def plus(one: Triple, other: Triple) -> Triple:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


class BudgetAccount:
    """A worker's lease, reservations and spending in one period of a budget."""

    __slots__ = (
        "_answered_at", "_request_pending", "budget", "enforced", "exceeded", "fresh", "granted", "last_used_at",
        "limited_metrics", "limits", "recorded", "refused_metric", "reserved", "reserved_since_request", "room",
        "shown_end", "shown_limits", "span", "spent", "user_id", "waiting",
    )  # fmt: skip

    def __init__(self, budget: Budget, span: PeriodSpan, now: float) -> None:
        self.budget = budget
        self._set_limits(limits_of(budget.limits))
        self.span = span
        self.shown_end = str(span.end)
        #: whether it is unknown how much an earlier account of this worker has spent
        self.fresh = True
        #: whether the last call could have been refused
        self.enforced = True
        self.granted = self.spent = self.reserved = NOTHING
        #: the sum of the reservations since the last request to the ledger, including settled ones
        self.reserved_since_request = NOTHING
        self.waiting: list[Waiting] = []
        self.room = self.recorded = NOTHING
        #: the metric for which a request was refused, if it was not reported to the ledger yet
        self.refused_metric: int | None = None
        #: the user of the last call
        self.user_id: UUID | None = None
        #: whether `quota_exceeded` was announced
        self.exceeded = False
        #: monotonic time in seconds of the last use
        self.last_used_at = now
        self._answered_at = -_ROOM_VALID_SECONDS
        #: whether a request to the ledger has no answer yet; the ledger may or may not have processed it
        self._request_pending = False

    def update_budget(self, budget: Budget, *, enforced: bool) -> None:
        """Apply the active budget. If its limits changed, nothing more is spent from the lease under the old
        limits."""
        self.enforced = enforced
        if budget is not self.budget:
            self.budget = budget
            limits = limits_of(budget.limits)
            if limits != self.limits:
                self._set_limits(limits)
                self.granted = self.committed
                self.exceeded = False
                self._answered_at = -_ROOM_VALID_SECONDS

    def _set_limits(self, limits: tuple[int | None, int | None, int | None]) -> None:
        self.limits = limits
        self.limited_metrics = tuple(metric for metric, limit in enumerate(limits) if limit is not None)
        self.shown_limits = shown_limits(limits)

    @property
    def blocks(self) -> bool:
        """Return whether calls that do not fit are refused."""
        return self.budget.blocks and self.enforced

    @property
    def committed(self) -> Triple:
        """Return the amounts that are spent or reserved."""
        return plus(self.spent, self.reserved)

    def lacking_metric(self, amounts: Triple) -> int | None:
        """Return the first metric for which `amounts` do not fit into the lease, or None."""
        spent, reserved, granted = self.spent, self.reserved, self.granted
        for metric in self.limited_metrics:
            if spent[metric] + reserved[metric] + amounts[metric] > granted[metric]:
                return metric
        return None

    def exhausted_metric(self, amounts: Triple, now: float) -> int | None:
        """Return the first metric that is exhausted, or None.
        A metric is exhausted if `amounts` alone exceed its limit. It is also exhausted if the ledger answered recently
        and `amounts` fit neither into the lease nor into the `room` of that answer."""
        is_recent = now - self._answered_at < _ROOM_VALID_SECONDS
        spent, reserved, granted, room = self.spent, self.reserved, self.granted, self.room
        for metric in self.limited_metrics:
            required = spent[metric] + reserved[metric] + amounts[metric]
            if is_recent and required > granted[metric] and required > room[metric]:
                return metric
            if amounts[metric] > (self.limits[metric] or 0):
                return metric
        return None

    def reserve(self, amounts: Triple, now: float) -> None:
        # The sums are written out here and below instead of calling `plus`, because this runs for every request.
        usd, requests, tokens = amounts
        reserved, since_request = self.reserved, self.reserved_since_request
        self.reserved = (reserved[0] + usd, reserved[1] + requests, reserved[2] + tokens)
        self.reserved_since_request = (since_request[0] + usd, since_request[1] + requests, since_request[2] + tokens)
        self.last_used_at = now

    def settle(self, amounts: Triple, used: Triple, now: float) -> None:
        """Release a reservation of `amounts`, of which `used` was spent."""
        usd, requests, tokens = amounts
        reserved, spent = self.reserved, self.spent
        self.reserved = (reserved[0] - usd, reserved[1] - requests, reserved[2] - tokens)
        self.spent = (spent[0] + used[0], spent[1] + used[1], spent[2] + used[2])
        self.last_used_at = now

    def lease_request(self, *, again: bool = False, stopping: bool = False) -> LeaseRequest | None:
        """Return the next request to the ledger, or None if it would change nothing. With `again`, a request is
        returned in any case.

        The part of the lease that the request does not keep cannot be spent from now on. With `stopping`, nothing is
        requested for later calls.
        """
        committed, since_request = self.committed, self.reserved_since_request
        ahead = NOTHING if stopping else (2 * since_request[0], 2 * since_request[1], 2 * since_request[2])
        needed = plus(committed, ahead)
        for waiting in self.waiting:
            needed = plus(needed, waiting.amounts)
        kept = (min(self.granted[0], needed[0]), min(self.granted[1], needed[1]), min(self.granted[2], needed[2]))
        unchanged = (
            kept == self.granted
            and since_request == NOTHING
            and not self.waiting
            and self.lacking_metric(NOTHING) is None
        )
        refused_metric, self.refused_metric = None if self.exceeded else self.refused_metric, None
        if unchanged and refused_metric is None and not self.fresh and not self._request_pending and not again:
            return None
        self.granted, self.reserved_since_request, self._request_pending = kept, NOTHING, True
        return LeaseRequest(
            self.budget, self.span, self.fresh, self.enforced, kept, committed, tuple(self.waiting), ahead,
            refused_metric, self.user_id,
        )  # fmt: skip

    def apply_grant(self, request: LeaseRequest, grant: Grant, now: float) -> None:
        """Apply the ledger's answer to `request`."""
        if request.fresh:
            self.fresh = False
            self.spent = plus(self.spent, grant.previous)
        self.granted, self.room, self.recorded = grant.granted, grant.room, grant.recorded
        self.exceeded = grant.exceeded
        self._answered_at, self._request_pending = now, False

    def remaining(self, metric: int) -> int | None:
        """Return the remaining amount of a metric for all workers, as far as this worker knows, or None if the metric
        has no limit."""
        limit = self.limits[metric]
        if limit is None:
            return None
        return max(0, min(self.room[metric], limit) - self.spent[metric] - self.reserved[metric])

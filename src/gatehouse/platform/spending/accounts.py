"""What one worker knows of one period of one budget. Everything here is arithmetic: nothing waits."""

from typing import Final, NamedTuple
from uuid import UUID

from gatehouse.engine.quotas import NOTHING, Triple, shown_limits
from gatehouse.policy.budgets import Amounts, Budget
from gatehouse.policy.periods import Span

#: Seconds for which the ledger's word on what there is at all is believed.
_BELIEVED: Final = 0.5


class Ask(NamedTuple):
    """To the ledger. `keep`: what this worker goes on spending from meanwhile, of what it was granted before.
    `need`: spent and set aside; `waiting`: what each waiting request wants; `ahead`: what the next ones will want;
    `refused`: the metric for which one was refused, where listeners may not know it yet."""

    budget: Budget
    span: Span
    fresh: bool
    enforced: bool
    keep: Triple
    need: Triple
    waiting: tuple[Triple, ...]
    ahead: Triple
    refused: int | None
    #: whose call came last
    user_id: UUID | None = None


class Grant(NamedTuple):
    """`had`: what the ledger held for this worker before, all of it spent where the account is fresh. `room`: what this
    worker could have at most, as far as the ledger knows. `recorded`: what is stored of everybody's spending."""

    granted: Triple
    had: Triple
    room: Triple
    recorded: Triple
    #: whether listeners were told that the limit is reached
    exceeded: bool


def limits_of(limits: Amounts) -> tuple[int | None, int | None, int | None]:
    return limits.nano_usd, limits.requests, limits.tokens


def plus(one: Triple, other: Triple) -> Triple:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


class Account:
    __slots__ = (
        "_told_at", "_untold", "budget", "enforced", "exceeded", "fresh", "granted", "gross", "limited", "limits",
        "quiet_since", "recorded", "refused", "reserved", "room", "shown_end", "shown_limits", "span", "spent",
        "user_id", "waiting",
    )  # fmt: skip

    def __init__(self, budget: Budget, span: Span, now: float) -> None:
        self.budget = budget
        self._limit(limits_of(budget.limits))
        self.span = span
        self.shown_end = str(span.end)
        #: what an earlier account of this worker has spent is not known yet
        self.fresh = True
        #: whether the last call was to be refused where it does not fit
        self.enforced = True
        self.granted = self.spent = self.reserved = NOTHING
        #: set aside since the ledger was asked last, whatever became of it
        self.gross = NOTHING
        #: what each of the requests wants that wait
        self.waiting: list[Triple] = []
        self.room = self.recorded = NOTHING
        #: the metric for which a request was refused, of which the ledger has not heard
        self.refused: int | None = None
        #: whose call came last
        self.user_id: UUID | None = None
        #: whether listeners know that the limit is reached
        self.exceeded = False
        #: when this worker last had anything to do with it; monotonic seconds
        self.quiet_since = now
        self._told_at = -_BELIEVED
        #: whether the ledger was asked and has not answered: it may have heard, or not
        self._untold = False

    def under(self, budget: Budget, *, enforced: bool) -> None:
        """The budget as it is now. After a change nothing is spent from what was granted under the old one."""
        self.enforced = enforced
        if budget is not self.budget:
            self.budget = budget
            limits = limits_of(budget.limits)
            if limits != self.limits:
                self._limit(limits)
                self.granted = self.need
                self.exceeded = False
                self._told_at = -_BELIEVED

    def _limit(self, limits: tuple[int | None, int | None, int | None]) -> None:
        self.limits = limits
        #: the metrics that have one
        self.limited = tuple(metric for metric, limit in enumerate(limits) if limit is not None)
        self.shown_limits = shown_limits(limits)

    @property
    def blocks(self) -> bool:
        return self.budget.blocks and self.enforced

    @property
    def need(self) -> Triple:
        return plus(self.spent, self.reserved)

    def lacks(self, amounts: Triple) -> int | None:
        """The first metric that does not fit what this worker was granted."""
        spent, reserved, granted = self.spent, self.reserved, self.granted
        for metric in self.limited:
            if spent[metric] + reserved[metric] + amounts[metric] > granted[metric]:
                return metric
        return None

    def full(self, amounts: Triple, now: float) -> int | None:
        """The first metric of which there is too little, whoever asks for it: for good, or as the ledger said a moment
        ago."""
        believed = now - self._told_at < _BELIEVED
        spent, reserved, granted, room = self.spent, self.reserved, self.granted, self.room
        for metric in self.limited:
            wanted = spent[metric] + reserved[metric] + amounts[metric]
            if believed and wanted > granted[metric] and wanted > room[metric]:
                return metric
            if amounts[metric] > (self.limits[metric] or 0):
                return metric
        return None

    def reserve(self, amounts: Triple, now: float) -> None:
        # Added up in place here and below: each call of a request comes by.
        usd, requests, tokens = amounts
        reserved, gross = self.reserved, self.gross
        self.reserved = (reserved[0] + usd, reserved[1] + requests, reserved[2] + tokens)
        self.gross = (gross[0] + usd, gross[1] + requests, gross[2] + tokens)
        self.quiet_since = now

    def settle(self, reserved: Triple, spent: Triple, now: float) -> None:
        usd, requests, tokens = reserved
        held, used = self.reserved, self.spent
        self.reserved = (held[0] - usd, held[1] - requests, held[2] - tokens)
        self.spent = (used[0] + spent[0], used[1] + spent[1], used[2] + spent[2])
        self.quiet_since = now

    def ask(self, *, again: bool = False, ending: bool = False) -> Ask | None:
        """What to ask the ledger for; None where nothing would change, unless `again`. What is not needed is given up
        here already. `ending`: no call follows, so nothing is taken ahead."""
        need = self.need
        ahead = NOTHING if ending else (2 * self.gross[0], 2 * self.gross[1], 2 * self.gross[2])
        want = plus(need, ahead)
        for each in self.waiting:
            want = plus(want, each)
        keep = (min(self.granted[0], want[0]), min(self.granted[1], want[1]), min(self.granted[2], want[2]))
        same = keep == self.granted and self.gross == NOTHING and not self.waiting and self.lacks(NOTHING) is None
        refused, self.refused = None if self.exceeded else self.refused, None
        if same and refused is None and not self.fresh and not self._untold and not again:
            return None
        self.granted, self.gross, self._untold = keep, NOTHING, True
        waiting = tuple(self.waiting)
        return Ask(
            self.budget, self.span, self.fresh, self.enforced, keep, need, waiting, ahead, refused, self.user_id
        )  # fmt: skip

    def take(self, ask: Ask, grant: Grant, now: float) -> None:
        """What the ledger answered."""
        if ask.fresh:
            self.fresh = False
            self.spent = plus(self.spent, grant.had)
        self.granted, self.room, self.recorded = grant.granted, grant.room, grant.recorded
        self.exceeded = grant.exceeded
        self._told_at, self._untold = now, False

    def remaining(self, metric: int) -> int | None:
        """What is left of a metric for anybody, as far as this worker knows; None where it has no limit."""
        limit = self.limits[metric]
        if limit is None:
            return None
        return max(0, min(self.room[metric], limit) - self.spent[metric] - self.reserved[metric])

"""Enforces the outpost's own monthly budget and the organization's budgets (docs/outposts.md, "Budgets").

Of its own budget, an outpost may spend its share of the month's limit (`leases`). It requests a missing amount from its
peers. The organization's budgets are part of the bundle. Each outpost compares them only with the amounts that it has
spent itself.
"""

import asyncio
import contextlib
import math
from collections.abc import Sequence
from typing import Final, Protocol
from uuid import UUID
from zoneinfo import ZoneInfo

import structlog

from gatehouse.engine.money.quotas import (
    MIN_CALL_AMOUNTS,
    NOTHING,
    QuotaExceeded,
    Triple,
    shown,
)
from gatehouse.engine.ports import Reserved
from gatehouse.foundation.clock import Clock, iso
from gatehouse.foundation.errors import Refusal, TooManyRequests, Unavailable
from gatehouse.foundation.identity import TenantId
from gatehouse.outpost.money.accounts import (
    BudgetAccount,
    Reservation,
    Status,
    add_amounts,
)
from gatehouse.outpost.money.leases import LeaseLimits, Leases, Pair
from gatehouse.outpost.money.tally import Tally
from gatehouse.outpost.settings import OutpostSettings
from gatehouse.outpost.state import BudgetSet, LocalState
from gatehouse.policy.budgets import NANO, Budget, BudgetRecord, CallAmounts, compile_budget
from gatehouse.policy.periods import PeriodSpan, span

log = structlog.get_logger(__name__)

#: The status is `warning` if at least this fraction of the limit is used.
_WARNING_FRACTION: Final = 0.8
#: Maximum number of times that one call requests amounts from the peers. A call needs several requests if other calls
#: spend the obtained amounts first.
_MAX_SHARE_REQUESTS: Final = 3
#: Seconds between two syncs of the tally, and between two removals of ended periods.
_SYNC_INTERVAL_SECONDS, _CLEANUP_INTERVAL_SECONDS = 1.0, 60.0
#: `Retry-After` of a refusal that lasts until an operator sets the budget again.
_EXPIRED_RETRY_AFTER_SECONDS: Final = 3600
_UTC: Final = ZoneInfo("UTC")
_METRIC_NAMES: Final = ("dollars", "requests", "tokens")


class BudgetExceeded(TooManyRequests):
    """The outpost's own budget does not cover the call (docs/outposts.md, "Errors")."""

    type = "budget_exceeded"
    code = "budget_exceeded"
    message = "The outpost's monthly budget is exhausted."


class OutpostBudgetUnavailable(Unavailable):
    code = "budget_unavailable"
    message = "The state of the budget cannot be stored now, so no calls are made. An operator has to check the disk."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "5"})


class SharePeers(Protocol):
    """The interface of the peers for the outpost's budget. `start` is the beginning of a month as Unix time."""

    async def begin(self, start: int) -> None:
        """Begins the month with this outpost's part of the limit. Raises `OSError`."""

    async def obtain(self, start: int) -> bool:
        """Requests the missing amounts (`LocalSpend.wanted`) from the peers. Takes at most a second. Returns whether a
        peer has given an amount."""

    def empty(self, start: int) -> bool:
        """Returns whether no peer had an unused amount at the last request, less than a second ago."""

    def spent(self, start: int) -> Pair:
        """Returns the amounts that the peers have spent and reserved according to their last reports."""


class LocalSpend:
    """Implements the engine's `Spend`. Call `start` before the first model call and `stop` after the last."""

    def __init__(
        self,
        outpost_id: UUID,
        settings: OutpostSettings,
        state: LocalState,
        *,
        tally: Tally,
        leases: Leases,
        clock: Clock,
    ) -> None:
        self._outpost_id = outpost_id
        self._settings_budget = BudgetSet(usd=settings.budget_monthly_usd, requests=settings.budget_monthly_requests)
        self._state = state
        self._tally = tally
        self._leases = leases
        self._clock = clock
        self._accounts: dict[UUID, BudgetAccount] = {}
        #: Amounts of the calls that wait for peers.
        self._pending_amounts: list[Triple] = []
        self._task: asyncio.Task[None] | None = None
        self._write_failed = False
        self._cached_limits = BudgetSet(), LeaseLimits(None, None)
        self.peers: SharePeers

    @property
    def set(self) -> BudgetSet:
        """Returns the budget that an operator has set, else the budget of the settings."""
        operator_budget = self._state.current.budget
        return self._settings_budget if operator_budget is None else operator_budget

    @property
    def limits(self) -> LeaseLimits:
        budget_set = self.set
        if budget_set is not self._cached_limits[0]:
            self._cached_limits = (
                budget_set,
                LeaseLimits(None if budget_set.usd is None else int(budget_set.usd * NANO), budget_set.requests),
            )
        return self._cached_limits[1]

    @property
    def expired(self) -> bool:
        budget_set = self.set
        return budget_set.ended or (budget_set.expires_at is not None and budget_set.expires_at <= self._now())

    def month(self) -> PeriodSpan:
        """Returns the current month of the outpost's own budget."""
        return span("month", self._now(), _UTC)

    def start(self) -> None:
        self._task = asyncio.create_task(self._maintain(), name="budgets")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await asyncio.to_thread(self._tally.close)

    def exhausted(self, budgets: Sequence[Budget]) -> Refusal | None:
        now = self._clock.now()
        for budget in budgets:
            account = self._account_of(budget, now)
            if budget.own:
                start = account.span.start
                peers_empty = self._leases.begun(start) and self.peers.empty(start)
                if self.expired or (peers_empty and self._lacks(account, MIN_CALL_AMOUNTS) is not None):
                    return self._exceeded(account, MIN_CALL_AMOUNTS)
            elif budget.blocks and (metric := self._lacks(account, MIN_CALL_AMOUNTS)) is not None:
                return QuotaExceeded.of(account, metric, now)
        return None

    async def reserve(
        self,
        budgets: Sequence[Budget],
        estimate: CallAmounts,
        *,
        enforced: bool,
        user_id: UUID | None = None,
        announce: bool = True,
    ) -> Reserved:
        amounts = estimate.nano_usd, estimate.requests, estimate.tokens
        accounts = self._checked(budgets, amounts, enforced=enforced)
        own = next((account for account in accounts if account.budget.own), None)
        if own is not None and not self._fits(own, amounts):
            await self._obtained(own.budget, amounts)
            # There must be no `await` between this check and the reservation.
            accounts = self._checked(budgets, amounts, enforced=enforced)
            own = next(account for account in accounts if account.budget.own)
            if not self._fits(own, amounts):
                raise self._exceeded(own, amounts)
        reservation = Reservation(accounts, amounts, None if own is None else self._status(own, amounts))
        for account in accounts:
            account.reserved = add_amounts(account.reserved, amounts)
        try:
            for account in accounts:
                self._write(account)
        except OSError as error:
            self.settle(reservation, None)
            if not self._write_failed:
                log.warning("outpost.budget_unwritable", reason=str(error))
            self._write_failed = True
            raise OutpostBudgetUnavailable from None
        self._write_failed = False
        return reservation

    def settle(self, reserved: Reserved, spent: CallAmounts | None) -> None:
        assert isinstance(reserved, Reservation)
        used = NOTHING if spent is None else (spent.nano_usd, spent.requests, spent.tokens)
        usd, requests, tokens = reserved.amounts
        for account in reserved.accounts:
            account.reserved = add_amounts(account.reserved, (-usd, -requests, -tokens))
            account.spent = add_amounts(account.spent, used)
            # If the write fails, the tally still contains the reserved amount, which is larger than the spent one.
            with contextlib.suppress(OSError):
                self._write(account)

    def unused(self, start: int) -> Pair:
        """Returns the amounts of this outpost's share that are neither spent nor reserved, and that it can give to
        peers."""
        own = self._own(start)
        if own is None or self.expired or not self._leases.begun(start):
            return 0, 0
        share, committed = self._leases.share(start, self.limits), own.committed
        # Without a limit the outpost has no share and gives nothing. An amount that it gave would increase the total of
        # all shares beyond the limit.
        return max(0, (share[0] or 0) - committed[0]), max(0, (share[1] or 0) - committed[1])

    def wanted(self, start: int) -> Pair:
        """Returns the amounts that the waiting calls need in addition to this outpost's share."""
        own = self._own(start)
        if own is None:
            return 0, 0
        share, committed = self._leases.share(start, self.limits), own.committed
        for amounts in self._pending_amounts:
            committed = add_amounts(committed, amounts)
        missing_usd = 0 if share[0] is None else max(0, committed[0] - share[0])
        return missing_usd, 0 if share[1] is None else max(0, committed[1] - share[1])

    def spent(self, start: int) -> Pair:
        """Returns the amounts of its own budget that this outpost has spent and reserved in the month."""
        own = self._own(start)
        return (0, 0) if own is None else own.committed[:2]

    def share(self, start: int) -> tuple[int | None, int | None]:
        """Returns this outpost's share of the month's limits. None is unlimited."""
        return self._leases.share(start, self.limits)

    def status(self) -> Status | None:
        """Returns the status of the outpost's own budget, or None if it has no budget."""
        own = self._own(self.month().start)
        if own is None:
            return None
        if self.expired or (
            not self._fits(own, MIN_CALL_AMOUNTS) and (self.peers.empty(own.span.start) or self._used(own) >= 1)
        ):
            return "exceeded"
        return self._status(own, NOTHING)

    def _own(self, start: int) -> BudgetAccount | None:
        """Returns the account of the outpost's own budget for the month. Returns None if there is no budget, or if
        another month is current."""
        if self.set == BudgetSet():
            return None
        known_account = self._accounts.get(self._outpost_id)
        if known_account is not None:
            budget = known_account.budget
        else:
            # No call has been made since the process started. The amounts that were spent before still count.
            record = own_budget(self.set, self._outpost_id, TenantId(self._outpost_id))
            assert record is not None
            budget = compile_budget(record, TenantId(self._outpost_id), _UTC)
        account = self._account_of(budget, self._clock.now())
        return account if account.span.start == start else None

    def _now(self) -> float:
        """Returns the Unix time for the outpost's own budget. It is never before the beginning of the current month:
        after the clock has been set back, no month begins again, and no ended budget becomes valid again."""
        return max(self._clock.now(), self._leases.latest)

    def _fits(self, own: BudgetAccount, amounts: Triple) -> bool:
        return self._leases.begun(own.span.start) and self._lacks(own, amounts) is None

    def _lacks(self, account: BudgetAccount, amounts: Triple) -> int | None:
        if not account.budget.own:
            return account.lacks(amounts, account.limits)
        return account.lacks(amounts, self._leases.share(account.span.start, self.limits))

    def _checked(self, budgets: Sequence[Budget], amounts: Triple, *, enforced: bool) -> list[BudgetAccount]:
        """Returns the accounts of the current periods. Raises a refusal if the call cannot be made even if the peers
        give all of their shares."""
        now = self._clock.now()
        accounts = [self._account_of(budget, now) for budget in budgets]
        for account in accounts:
            if account.budget.own:
                if self.expired:
                    raise self._exceeded(account, amounts)
            elif account.budget.blocks and enforced and (metric := self._lacks(account, amounts)) is not None:
                raise QuotaExceeded.of(account, metric, now)
        return accounts

    async def _obtained(self, own: Budget, amounts: Triple) -> None:
        """Obtains the amounts that the call lacks from the peers, as far as they give them. Raises
        `OutpostBudgetUnavailable`."""
        for _ in range(_MAX_SHARE_REQUESTS):
            account = self._account_of(own, self._clock.now())
            start = account.span.start
            if not self._leases.begun(start):
                try:
                    await self.peers.begin(start)
                except OSError:
                    raise OutpostBudgetUnavailable from None
            if self._fits(account, amounts) or account.lacks(amounts, self.limits) is not None:
                return
            self._pending_amounts.append(amounts)
            try:
                if not await self.peers.obtain(start):
                    return
            finally:
                self._pending_amounts.remove(amounts)

    def _exceeded(self, own: BudgetAccount, amounts: Triple) -> BudgetExceeded:
        now = self._clock.now()
        if self.expired:
            message = (
                f"The outpost's budget has expired at {iso(self.set.expires_at or 0)}. An operator has to set it again."
            )
            retry_after = _EXPIRED_RETRY_AFTER_SECONDS
        else:
            metric = self._lacks(own, amounts) or 0
            limit, share = own.limits[metric] or 0, self._leases.share(own.span.start, self.limits)
            free = max(0, (share[metric] or 0) - own.committed[metric]) if metric < len(share) else 0
            message = (
                f"The outpost's monthly budget has too little left for this call ({shown(metric, free)} of"
                f" {shown(metric, limit)} {_METRIC_NAMES[metric]}). The next month begins at {iso(own.span.end)}."
            )
            retry_after = max(1, math.ceil(own.span.end - now))
        return BudgetExceeded(message, headers={"X-Budget-Status": "exceeded", "Retry-After": str(retry_after)})

    def _status(self, own: BudgetAccount, amounts: Triple) -> Status:
        return "warning" if self._used(own, amounts) >= _WARNING_FRACTION else "ok"

    def _used(self, own: BudgetAccount, amounts: Triple = NOTHING) -> float:
        """Returns the amount that this outpost and its peers have spent as a fraction of the limit. Of several metrics,
        the largest fraction is returned."""
        committed, others = add_amounts(own.committed, amounts), self.peers.spent(own.span.start)
        fraction = 0.0
        for metric, limit in enumerate(self.limits):
            if limit is not None:
                fraction = max(fraction, (committed[metric] + others[metric]) / limit if limit else math.inf)
        return fraction

    def _account_of(self, budget: Budget, now: float) -> BudgetAccount:
        """Returns the account of the current period. If the clock has been set back, this is the last period that has
        begun, and not an earlier one."""
        now = self._now() if budget.own else now
        account = self._accounts.get(budget.id)
        if account is None or now >= account.span.end or account.budget.zone != budget.zone:
            account = self._roll_over(budget, now, account)
        elif account.budget is not budget:
            account.set_budget(budget)
        return account

    def _roll_over(self, budget: Budget, now: float, previous: BudgetAccount | None) -> BudgetAccount:
        period = span(budget.period, now, budget.zone)
        spent = self._tally.take(budget.id, period)
        if previous is not None:
            self._tally.drop(budget.id, previous.span)
            if now < previous.span.end:
                # The time zone was changed during the period. The amounts that have been spent still count.
                spent = previous.committed
        account = self._accounts[budget.id] = BudgetAccount(budget, period, spent)
        return account

    def _write(self, account: BudgetAccount) -> None:
        """Writes the amounts of an account to the tally if they have changed. Raises `OSError`."""
        committed, budget = account.committed, account.budget
        if committed != account.written and budget.period != "minute" and self._accounts.get(budget.id) is account:
            self._tally.write(budget.id, account.span, committed)
            account.written = committed

    async def _maintain(self) -> None:
        last_cleanup = 0.0
        while True:
            await asyncio.sleep(_SYNC_INTERVAL_SECONDS)
            if self._tally.dirty:
                await asyncio.to_thread(self._tally.sync)
            operator_budget = self._state.current.budget
            if operator_budget is not None and not operator_budget.ended and self.expired:
                with contextlib.suppress(OSError):
                    await self._state.end_budget(operator_budget)
            if self._clock.monotonic() - last_cleanup >= _CLEANUP_INTERVAL_SECONDS:
                last_cleanup, now = self._clock.monotonic(), self._clock.now()
                for budget_id, account in list(self._accounts.items()):
                    if account.span.end <= now and account.reserved == NOTHING:
                        del self._accounts[budget_id]
                        self._tally.drop(budget_id, account.span)


def own_budget(budget_set: BudgetSet, outpost_id: UUID, tenant_id: TenantId) -> BudgetRecord | None:
    """Returns the outpost's own budget in the form of an organization's budget, or None without an own budget."""
    if budget_set == BudgetSet():
        return None
    return BudgetRecord(
        id=outpost_id,
        scope_type="tenant",
        scope_id=tenant_id,
        period="month",
        limit_usd=budget_set.usd,
        limit_requests=budget_set.requests,
        own=True,
    )

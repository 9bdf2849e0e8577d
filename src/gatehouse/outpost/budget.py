"""What may be spent here: the outpost's own month, and the organization's budgets (decisions 9).

The own month is this outpost's share of the limit (`leases`); what is missing is asked of the peers. The organization's
budgets come with the bundle and hold against what this outpost itself has spent: each outpost counts for itself.
"""

import asyncio
import contextlib
import math
from collections.abc import Sequence
from typing import Final, Protocol
from uuid import UUID
from zoneinfo import ZoneInfo

import structlog

from gatehouse.engine.ports import Reserved
from gatehouse.engine.quotas import LEAST, NOTHING, QuotaExceeded, Triple, shown
from gatehouse.foundation.clock import Clock, iso
from gatehouse.foundation.errors import Refusal, TooManyRequests, Unavailable
from gatehouse.foundation.identity import TenantId
from gatehouse.outpost.accounts import Account, Reservation, Status, plus
from gatehouse.outpost.leases import Leases, Limits, Pair
from gatehouse.outpost.settings import OutpostSettings
from gatehouse.outpost.state import BudgetSet, LocalState
from gatehouse.outpost.tally import Tally
from gatehouse.policy.budgets import NANO, Budget, BudgetRecord, Taking, compile_budget
from gatehouse.policy.periods import Span, span

log = structlog.get_logger(__name__)

#: Of the limit, when answers begin to warn.
_WARNING: Final = 0.8
#: Times that a call asks the peers: others may take what was given for it.
_TRIES: Final = 3
#: Seconds between two syncs of what is spent, and between two looks at periods that are over.
_SYNC, _LOOK = 1.0, 60.0
#: Seconds after which a client may try again whose outpost has to be given a budget by an operator.
_LATER: Final = 3600
_UTC: Final = ZoneInfo("UTC")
_WORDS: Final = ("dollars", "requests", "tokens")


class BudgetExceeded(TooManyRequests):
    """Reference 1, Gateway and outpost proxy errors."""

    type = "budget_exceeded"
    code = "budget_exceeded"
    message = "The outpost's monthly budget is spent."


class BudgetUnavailable(Unavailable):
    code = "budget_unavailable"
    message = "What is spent cannot be written down now, so nothing is spent. An operator has to look at the disk."

    def __init__(self) -> None:
        super().__init__(headers={"Retry-After": "5"})


class Sharing(Protocol):
    """The peers, as they are asked here."""

    async def begin(self, start: int) -> None:
        """Has the month begun, with this outpost's part of it. Raises `OSError`."""

    async def obtain(self, start: int) -> bool:
        """Whether a peer has given something of what is wanted (`LocalSpend.wanted`). Takes a second at most."""

    def empty(self, start: int) -> bool:
        """Whether nobody has had anything to give a moment ago."""

    def spent(self, start: int) -> Pair:
        """What the others have spent and set aside, as far as they have told."""


class LocalSpend:
    """The engine's `Spend`. `start` before the first call, `stop` after the last."""

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
        self._settings = BudgetSet(usd=settings.budget_monthly_usd, requests=settings.budget_monthly_requests)
        self._state = state
        self._tally = tally
        self._leases = leases
        self._clock = clock
        self._accounts: dict[UUID, Account] = {}
        #: what each call wants that waits for peers
        self._waiting: list[Triple] = []
        self._task: asyncio.Task[None] | None = None
        self._failing = False
        self._limits = BudgetSet(), Limits(None, None)
        self.peers: Sharing

    @property
    def set(self) -> BudgetSet:
        """What operators have said, else the settings."""
        said = self._state.said.budget
        return self._settings if said is None else said

    @property
    def limits(self) -> Limits:
        found = self.set
        if found is not self._limits[0]:
            self._limits = found, Limits(None if found.usd is None else int(found.usd * NANO), found.requests)
        return self._limits[1]

    @property
    def expired(self) -> bool:
        found = self.set
        return found.ended or (found.expires_at is not None and found.expires_at <= self._now())

    def month(self) -> Span:
        """The own budget's."""
        return span("month", self._now(), _UTC)

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep(), name="budgets")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await asyncio.to_thread(self._tally.close)

    def exhausted(self, budgets: Sequence[Budget]) -> Refusal | None:
        now = self._clock.now()
        for budget in budgets:
            account = self._open(budget, now)
            if budget.own:
                start = account.span.start
                asked = self._leases.begun(start) and self.peers.empty(start)
                if self.expired or (asked and self._lacks(account, LEAST) is not None):
                    return self._exceeded(account, LEAST)
            elif budget.blocks and (metric := self._lacks(account, LEAST)) is not None:
                return QuotaExceeded.of(account, metric, now)
        return None

    async def reserve(
        self, budgets: Sequence[Budget], taking: Taking, *, enforced: bool, user_id: UUID | None = None
    ) -> Reserved:
        amounts = taking.nano_usd, taking.requests, taking.tokens
        accounts = self._checked(budgets, amounts, enforced=enforced)
        own = next((each for each in accounts if each.budget.own), None)
        if own is not None and not self._fits(own, amounts):
            await self._obtained(own.budget, amounts)
            # Without a turn of the loop between this look and what is set aside.
            accounts = self._checked(budgets, amounts, enforced=enforced)
            own = next(each for each in accounts if each.budget.own)
            if not self._fits(own, amounts):
                raise self._exceeded(own, amounts)
        reservation = Reservation(accounts, amounts, None if own is None else self._status(own, amounts))
        for account in accounts:
            account.reserved = plus(account.reserved, amounts)
        try:
            for account in accounts:
                self._write(account)
        except OSError as error:
            self.settle(reservation, None)
            if not self._failing:
                log.warning("outpost.budget_unwritable", reason=str(error))
            self._failing = True
            raise BudgetUnavailable from None
        self._failing = False
        return reservation

    def settle(self, reserved: Reserved, spent: Taking | None) -> None:
        assert isinstance(reserved, Reservation)
        used = NOTHING if spent is None else (spent.nano_usd, spent.requests, spent.tokens)
        usd, requests, tokens = reserved.amounts
        for account in reserved.accounts:
            account.reserved = plus(account.reserved, (-usd, -requests, -tokens))
            account.spent = plus(account.spent, used)
            # What was set aside stands there, and is more.
            with contextlib.suppress(OSError):
                self._write(account)

    def unused(self, start: int) -> Pair:
        """What this outpost can do without, of the own budget's month."""
        own = self._own(start)
        if own is None or self.expired or not self._leases.begun(start):
            return 0, 0
        share, need = self._leases.share(start, self.limits), own.need
        # Who has no limit has nothing to give either: it would be more than all have.
        return max(0, (share[0] or 0) - need[0]), max(0, (share[1] or 0) - need[1])

    def wanted(self, start: int) -> Pair:
        """What the calls lack that wait for it."""
        own = self._own(start)
        if own is None:
            return 0, 0
        share, need = self._leases.share(start, self.limits), own.need
        for each in self._waiting:
            need = plus(need, each)
        usd = 0 if share[0] is None else max(0, need[0] - share[0])
        return usd, 0 if share[1] is None else max(0, need[1] - share[1])

    def spent(self, start: int) -> Pair:
        """By this outpost, of the own budget's month: with what is set aside."""
        own = self._own(start)
        return (0, 0) if own is None else own.need[:2]

    def share(self, start: int) -> tuple[int | None, int | None]:
        """Of the own budget's month, this outpost's; None: without end."""
        return self._leases.share(start, self.limits)

    def status(self) -> Status | None:
        """Of the own budget; None where there is none."""
        own = self._own(self.month().start)
        if own is None:
            return None
        if self.expired or (not self._fits(own, LEAST) and (self.peers.empty(own.span.start) or self._used(own) >= 1)):
            return "exceeded"
        return self._status(own, NOTHING)

    def _own(self, start: int) -> Account | None:
        """Of the own budget's month, where there is a budget."""
        if self.set == BudgetSet():
            return None
        known = self._accounts.get(self._outpost_id)
        if known is not None:
            budget = known.budget
        else:
            # Nobody has called since the start: what was spent before still counts.
            record = own_budget(self.set, self._outpost_id, TenantId(self._outpost_id))
            assert record is not None
            budget = compile_budget(record, TenantId(self._outpost_id), _UTC)
        account = self._open(budget, self._clock.now())
        return account if account.span.start == start else None

    def _now(self) -> float:
        """For the own budget: a clock that goes back makes no month, and no budget that has ended, anew."""
        return max(self._clock.now(), self._leases.latest)

    def _fits(self, own: Account, amounts: Triple) -> bool:
        return self._leases.begun(own.span.start) and self._lacks(own, amounts) is None

    def _lacks(self, account: Account, amounts: Triple) -> int | None:
        if not account.budget.own:
            return account.lacks(amounts, account.limits)
        return account.lacks(amounts, self._leases.share(account.span.start, self.limits))

    def _checked(self, budgets: Sequence[Budget], amounts: Triple, *, enforced: bool) -> list[Account]:
        """The accounts of the periods that are now. Raises what nobody's help could change."""
        now = self._clock.now()
        accounts = [self._open(budget, now) for budget in budgets]
        for account in accounts:
            if account.budget.own:
                if self.expired:
                    raise self._exceeded(account, amounts)
            elif account.budget.blocks and enforced and (metric := self._lacks(account, amounts)) is not None:
                raise QuotaExceeded.of(account, metric, now)
        return accounts

    async def _obtained(self, own: Budget, amounts: Triple) -> None:
        """Tries to have what the call lacks. Raises `BudgetUnavailable`."""
        for _ in range(_TRIES):
            account = self._open(own, self._clock.now())
            start = account.span.start
            if not self._leases.begun(start):
                try:
                    await self.peers.begin(start)
                except OSError:
                    raise BudgetUnavailable from None
            if self._fits(account, amounts) or account.lacks(amounts, self.limits) is not None:
                return
            self._waiting.append(amounts)
            try:
                if not await self.peers.obtain(start):
                    return
            finally:
                self._waiting.remove(amounts)

    def _exceeded(self, own: Account, amounts: Triple) -> BudgetExceeded:
        now = self._clock.now()
        if self.expired:
            told = (
                f"The outpost's budget was set until {iso(self.set.expires_at or 0)}. An operator has to set it anew."
            )
            wait = _LATER
        else:
            metric = self._lacks(own, amounts) or 0
            limit, share = own.limits[metric] or 0, self._leases.share(own.span.start, self.limits)
            free = max(0, (share[metric] or 0) - own.need[metric]) if metric < len(share) else 0
            told = (
                f"The outpost's monthly budget has too little left for this call ({shown(metric, free)} of"
                f" {shown(metric, limit)} {_WORDS[metric]}). It begins anew at {iso(own.span.end)}."
            )
            wait = max(1, math.ceil(own.span.end - now))
        return BudgetExceeded(told, headers={"X-Budget-Status": "exceeded", "Retry-After": str(wait)})

    def _status(self, own: Account, amounts: Triple) -> Status:
        return "warning" if self._used(own, amounts) >= _WARNING else "ok"

    def _used(self, own: Account, amounts: Triple = NOTHING) -> float:
        """What all together have spent, as a part of the limit: of the metric of which it is the most."""
        need, others = plus(own.need, amounts), self.peers.spent(own.span.start)
        most = 0.0
        for metric, limit in enumerate(self.limits):
            if limit is not None:
                most = max(most, (need[metric] + others[metric]) / limit if limit else math.inf)
        return most

    def _open(self, budget: Budget, now: float) -> Account:
        """The account of the period that is now. A clock that goes back does not go back to a former one."""
        now = self._now() if budget.own else now
        account = self._accounts.get(budget.id)
        if account is None or now >= account.span.end or account.budget.zone != budget.zone:
            account = self._turn(budget, now, account)
        elif account.budget is not budget:
            account.under(budget)
        return account

    def _turn(self, budget: Budget, now: float, before: Account | None) -> Account:
        period = span(budget.period, now, budget.zone)
        spent = self._tally.take(budget.id, period)
        if before is not None:
            self._tally.drop(budget.id, before.span)
            if now < before.span.end:
                # Another time zone: nothing that was spent is forgotten for that.
                spent = before.need
        account = self._accounts[budget.id] = Account(budget, period, spent)
        return account

    def _write(self, account: Account) -> None:
        """Raises `OSError`."""
        need, budget = account.need, account.budget
        if need != account.written and budget.period != "minute" and self._accounts.get(budget.id) is account:
            self._tally.write(budget.id, account.span, need)
            account.written = need

    async def _keep(self) -> None:
        looked = 0.0
        while True:
            await asyncio.sleep(_SYNC)
            if self._tally.dirty:
                await asyncio.to_thread(self._tally.sync)
            said = self._state.said.budget
            if said is not None and not said.ended and self.expired:
                with contextlib.suppress(OSError):
                    await self._state.end_budget(said)
            if self._clock.monotonic() - looked >= _LOOK:
                looked, now = self._clock.monotonic(), self._clock.now()
                for budget_id, account in list(self._accounts.items()):
                    if account.span.end <= now and account.reserved == NOTHING:
                        del self._accounts[budget_id]
                        self._tally.drop(budget_id, account.span)


def own_budget(said: BudgetSet, outpost_id: UUID, tenant_id: TenantId) -> BudgetRecord | None:
    """What is laid over an organization's budgets."""
    if said == BudgetSet():
        return None
    return BudgetRecord(
        id=outpost_id,
        scope_type="tenant",
        scope_id=tenant_id,
        period="month",
        limit_usd=said.usd,
        limit_requests=said.requests,
        own=True,
    )

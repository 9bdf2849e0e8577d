"""Implements the engine's port `Spend`: the accounts of this worker, and the task that requests their leases from the
ledger.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from gatehouse.engine.money.quotas import (
    MIN_CALL_AMOUNTS,
    NOTHING,
    QuotaExceeded,
    Triple,
    left,
)
from gatehouse.engine.ports import Reserved
from gatehouse.foundation.clock import Clock
from gatehouse.foundation.errors import Refusal, Unavailable
from gatehouse.foundation.storage.database import Database
from gatehouse.foundation.tasks import is_running
from gatehouse.platform.metrics import PlatformMetrics
from gatehouse.platform.spending.accounts import BudgetAccount, Waiting
from gatehouse.platform.spending.ledger import lease
from gatehouse.policy.budgets import NANO, Budget, CallAmounts
from gatehouse.policy.periods import PeriodSpan, span

log = structlog.get_logger(__name__)

#: Interval between two rounds over all accounts.
_ROUND_INTERVAL_SECONDS: Final = 0.5
#: Time limit for the answer of the ledger to a waiting call.
_LEDGER_TIMEOUT_SECONDS: Final = 1.0
#: If other calls use up the grant of a call, the call requests again for this time, and at least this many times.
_RETRY_SECONDS: Final = 2.0
_MIN_RETRIES: Final = 3
#: Maximum number of accounts in one transaction.
_BATCH_ENTRIES: Final = 500
#: Time after its last use for which an account is compared with the recorded spending.
_RECORDING_SECONDS: Final = 10.0
#: Time after its last use at which an account is dropped.
_IDLE_SECONDS: Final = 60.0


class BudgetUnavailable(Unavailable):
    code = "budget_unavailable"
    message = "The state of a budget is temporarily unknown, so nothing can be spent from it. Try again later."


class BudgetReservation:
    """A reservation for one call. Implements `engine.ports.Reserved`."""

    __slots__ = ("accounts", "amounts")

    def __init__(self, accounts: Sequence[BudgetAccount], amounts: Triple) -> None:
        self.accounts = accounts
        self.amounts = amounts

    @property
    def periods(self) -> tuple[tuple[UUID, int], ...]:
        return tuple((account.budget.id, account.span.start) for account in self.accounts)

    def headers(self) -> dict[str, str]:
        return left(self.accounts)


class _GroupMonth(NamedTuple):
    """The spending and limit of a group in a month, in USD, for metrics. `end` is Unix time."""

    spend: float
    limit: float
    end: int

    def spend_at(self, now: float) -> float:
        # The spending is zero in the next month until a call is made there.
        return self.spend if now < self.end else 0.0


class Spender:
    """The budgets of one worker. Call `start` before the first call, and `stop` after the last one."""

    def __init__(self, database: Database, clock: Clock, metrics: PlatformMetrics | None = None) -> None:
        self._database = database
        self._clock = clock
        self._metrics = metrics
        self._accounts: dict[UUID, BudgetAccount] = {}
        #: accounts of other periods, by budget and start of the period; they are kept until everything is settled and
        #: reported
        self._other_periods: dict[tuple[UUID, int], BudgetAccount] = {}
        #: accounts whose leases calls are waiting for; the future's result is whether the ledger answered
        self._awaited: dict[BudgetAccount, asyncio.Future[bool]] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        #: the current month of each group, by the group's id
        self._group_months: dict[UUID, _GroupMonth] = {}
        self._writer_id: UUID
        #: whether the unavailability of the database was logged
        self._logged = False

    async def start(self, writer_id: UUID) -> None:
        """Start the task. `writer_id` is the id of the worker's journal, which records the worker's spending."""
        self._writer_id = writer_id
        self._task = asyncio.create_task(self._run(), name="budgets")

    async def stop(self) -> None:
        """Return the unspent amounts to the ledger."""
        if self._task is None:
            return
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        with contextlib.suppress(SQLAlchemyError, OSError, TimeoutError):
            async with asyncio.timeout(_LEDGER_TIMEOUT_SECONDS):
                await self._request_leases(self._all_accounts(), stopping=True)

    def exhausted(self, budgets: Sequence[Budget]) -> Refusal | None:
        now = time.monotonic()
        for budget in budgets:
            account = self._accounts.get(budget.id)
            # The cost of the call is not known yet, so only an exhausted budget refuses the call here.
            if account is not None and budget.blocks and account.budget is budget:
                metric = account.exhausted_metric(MIN_CALL_AMOUNTS, now)
                if metric is not None and account.span.end > self._clock.now():
                    return QuotaExceeded.of(account, metric, self._clock.now())
        return None

    async def reserve(
        self,
        budgets: Sequence[Budget],
        taking: CallAmounts,
        *,
        enforced: bool,
        user_id: UUID | None = None,
        announce: bool = True,
    ) -> Reserved:
        amounts = (taking.nano_usd, taking.requests, taking.tokens)
        accounts = self._open(budgets, enforced=enforced)
        for account in accounts:
            if account.lacking_metric(amounts) is not None:
                waiting = Waiting(amounts, announce)
                accounts = await self._wait_for_leases(budgets, waiting, enforced=enforced, user_id=user_id)
                break
        now = time.monotonic()
        for account in accounts:
            account.reserve(amounts, now)
            account.user_id = user_id
        return BudgetReservation(accounts, amounts)

    def settle(self, reserved: Reserved, spent: CallAmounts | None) -> None:
        assert isinstance(reserved, BudgetReservation)
        used = NOTHING if spent is None else (spent.nano_usd, spent.requests, spent.tokens)
        now = time.monotonic()
        for account in reserved.accounts:
            account.settle(reserved.amounts, used, now)

    def release(self, reserved: Reserved, amounts: CallAmounts) -> None:
        """Release a part of a reservation. The rest stays reserved."""
        assert isinstance(reserved, BudgetReservation)
        part = (amounts.nano_usd, amounts.requests, amounts.tokens)
        now = time.monotonic()
        for account in reserved.accounts:
            account.settle(part, NOTHING, now)
        usd, requests, tokens = reserved.amounts
        reserved.amounts = (usd - part[0], requests - part[1], tokens - part[2])

    def _open(self, budgets: Sequence[Budget], *, enforced: bool) -> list[BudgetAccount]:
        """Return the accounts of the current periods of the budgets."""
        now = self._clock.now()
        return [self._account(budget, now, enforced=enforced) for budget in budgets]

    def _account(self, budget: Budget, now: float, *, enforced: bool) -> BudgetAccount:
        account = self._accounts.get(budget.id)
        if account is None or not account.span.start <= now < account.span.end or account.budget.zone != budget.zone:
            account = self._change_period(budget, span(budget.period, now, budget.zone), account)
        account.update_budget(budget, enforced=enforced)
        return account

    def _change_period(self, budget: Budget, period: PeriodSpan, before: BudgetAccount | None) -> BudgetAccount:
        """Return the account of another period. Each period has only one account, even if clocks are set back or time
        zones change."""
        if before is not None:
            self._other_periods[budget.id, before.span.start] = before
        account = self._other_periods.pop((budget.id, period.start), None) or BudgetAccount(
            budget, period, time.monotonic()
        )
        account.span = period
        self._accounts[budget.id] = account
        return account

    async def _wait_for_leases(
        self, budgets: Sequence[Budget], waiting: Waiting, *, enforced: bool, user_id: UUID | None
    ) -> list[BudgetAccount]:
        """Return the accounts once the call fits. Nothing is awaited between that check and the return. Raises
        `QuotaExceeded` and `BudgetUnavailable`."""
        deadline, retries = time.monotonic() + _RETRY_SECONDS, 0
        while True:
            accounts = self._open(budgets, enforced=enforced)
            lacking = [account for account in accounts if account.lacking_metric(waiting.amounts) is not None]
            for account in lacking:
                account.user_id = user_id
            self._refuse_exhausted(lacking, waiting)
            if not any(account.blocks or account.fresh for account in lacking):
                return accounts
            # If other calls used up each grant, it is unknown whether the budget is exhausted.
            timed_out = retries >= _MIN_RETRIES and time.monotonic() >= deadline
            if timed_out or not await self._wait_for_ledger(lacking, waiting):
                if any(account.blocks for account in lacking):
                    raise BudgetUnavailable(headers={"Retry-After": "1"})
                return accounts
            retries += 1

    def _refuse_exhausted(self, lacking: Sequence[BudgetAccount], waiting: Waiting) -> None:
        """Refuse the call if less than its amounts is left in a budget. Raises `QuotaExceeded`."""
        amounts = waiting.amounts
        for account in lacking:
            if account.blocks and (metric := account.exhausted_metric(amounts, time.monotonic())) is not None:
                # A call that alone exceeds the whole limit does not mean that the limit is reached, so it is not
                # announced.
                if waiting.announce and amounts[metric] <= (account.limits[metric] or 0):
                    account.refused_metric = metric
                raise QuotaExceeded.of(account, metric, self._clock.now())

    async def _wait_for_ledger(self, lacking: Sequence[BudgetAccount], waiting: Waiting) -> bool:
        """Wait until the ledger has answered for all these accounts. Returns False if it did not answer in time."""
        for account in lacking:
            account.waiting.append(waiting)
        try:
            async with asyncio.timeout(_LEDGER_TIMEOUT_SECONDS):
                while not all([await asyncio.shield(answer) for answer in [*map(self._answer, lacking)]]):
                    pass
        except TimeoutError:
            return False
        finally:
            for account in lacking:
                account.waiting.remove(waiting)
        return True

    def _answer(self, account: BudgetAccount) -> asyncio.Future[bool]:
        """Return the future of the ledger's next answer for an account, and wake the task."""
        answer = self._awaited.get(account)
        if answer is None:
            answer = self._awaited[account] = asyncio.get_running_loop().create_future()
            self._wake.set()
        return answer

    async def _run(self) -> None:
        """Serve waiting calls at once, and all accounts in rounds, until cancelled."""
        due = time.monotonic()
        while is_running():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, due - time.monotonic())):
                    await self._wake.wait()
            self._wake.clear()
            try:
                await self._serve_waiting()
                if time.monotonic() >= due:
                    await self._round()
                    due = time.monotonic() + _ROUND_INTERVAL_SECONDS
                self._logged = False
            except (SQLAlchemyError, OSError) as error:
                if not self._logged:
                    log.warning("budgets.database_away", reason=type(error).__name__)
                    self._logged = True
                await asyncio.sleep(_ROUND_INTERVAL_SECONDS / 5)
            except Exception:
                log.exception("budgets.fault")
                await asyncio.sleep(_ROUND_INTERVAL_SECONDS)

    async def _serve_waiting(self) -> None:
        """Request the leases that calls are waiting for. Calls that receive no answer request again."""
        for batch in _batches(self._awaited):
            answers = [self._awaited.pop(account) for account in batch]
            answered = False
            try:
                await self._request_leases(batch)
                answered = True
            finally:
                for answer in answers:
                    answer.set_result(answered)

    async def _round(self) -> None:
        """Request the leases of all accounts, and drop idle accounts. Waiting calls are served between two
        transactions."""
        now = time.monotonic()
        settled = [
            key for key, account in self._other_periods.items() if account.reserved == NOTHING and not account.waiting
        ]
        for batch in _batches(self._all_accounts()):
            await self._request_leases(batch)
            await self._serve_waiting()
        for key in settled:
            if key in self._other_periods and self._other_periods[key].reserved == NOTHING:
                del self._other_periods[key]
        for budget_id, account in list(self._accounts.items()):
            if account.reserved == NOTHING and not account.waiting and now - account.last_used_at > _IDLE_SECONDS:
                del self._accounts[budget_id]

    def _all_accounts(self) -> list[BudgetAccount]:
        return [*self._accounts.values(), *self._other_periods.values()]

    async def _request_leases(self, accounts: Iterable[BudgetAccount], *, stopping: bool = False) -> None:
        """Request the leases of those accounts that need another lease, in one transaction. With `stopping`, nothing is
        requested for later calls."""
        requests = []
        now = time.monotonic()
        for account in accounts:
            # Spending is recorded a moment later, so the leases of recently used accounts are requested again.
            again = (account.budget.plan or account.budget.scope_type == "group") and (
                now - account.last_used_at < _RECORDING_SECONDS and account.recorded != account.spent
            )
            request = account.lease_request(again=again, stopping=stopping)
            if request is not None:
                requests.append((account, request))
        if not requests:
            return
        async with self._database.service() as session:
            grants = await lease(session, self._writer_id, [request for _, request in requests])
            await session.commit()
        for (account, request), grant in zip(requests, grants, strict=True):
            account.apply_grant(request, grant, time.monotonic())
            self._update_metrics(account)

    def _update_metrics(self, account: BudgetAccount) -> None:
        """Show the month of a group in the metrics, if the account belongs to a group with a limit in USD."""
        budget = account.budget
        if self._metrics is None or budget.scope_type != "group" or budget.period != "month":
            return
        limit = budget.limits.nano_usd
        if limit is None:
            return
        registered = budget.scope_id in self._group_months
        self._group_months[budget.scope_id] = _GroupMonth(account.recorded[0] / NANO, limit / NANO, account.span.end)
        if not registered:
            months, clock, labels = self._group_months, self._clock, (str(budget.scope_id),)
            self._metrics.group_spend.read(lambda: months[budget.scope_id].spend_at(clock.now()), labels)
            self._metrics.group_limit.read(lambda: months[budget.scope_id].limit, labels)


def _batches(accounts: Iterable[BudgetAccount]) -> Iterator[tuple[BudgetAccount, ...]]:
    all_accounts = tuple(accounts)
    return (all_accounts[start : start + _BATCH_ENTRIES] for start in range(0, len(all_accounts), _BATCH_ENTRIES))

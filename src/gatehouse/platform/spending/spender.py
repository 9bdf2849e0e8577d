"""The engine's port `Spend`: this worker's accounts, and the task that asks the ledger for them."""

import asyncio
import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from gatehouse.engine.ports import Reserved
from gatehouse.engine.quotas import LEAST, NOTHING, QuotaExceeded, Triple, left
from gatehouse.foundation.clock import Clock
from gatehouse.foundation.errors import Refusal, Unavailable
from gatehouse.foundation.storage.database import Database
from gatehouse.foundation.tasks import wanted
from gatehouse.platform.metrics import Figures
from gatehouse.platform.spending.accounts import Account
from gatehouse.platform.spending.ledger import lease
from gatehouse.policy.budgets import NANO, Budget, Taking
from gatehouse.policy.periods import Span, span

log = structlog.get_logger(__name__)

#: Seconds between two looks at the accounts while nobody waits.
_PAUSE: Final = 0.5
#: Seconds that a request waits for an answer of the ledger at most.
_PATIENCE: Final = 1.0
#: Seconds in which it asks again, this often at least: others may take what was granted for it.
_CONTENDED: Final = 2.0
_TRIES: Final = 3
#: Periods that one transaction asks for.
_AT_ONCE: Final = 500
#: Seconds without a call after which an account is looked at for the last time, and dropped.
_QUIET: Final = 10.0
_DROPPED: Final = 60.0


class BudgetUnavailable(Unavailable):
    code = "budget_unavailable"
    message = "What is left of a budget cannot be told now, so nothing is spent from it. Try again in a moment."


class Reservation:
    """See `engine.ports.Reserved`."""

    __slots__ = ("accounts", "amounts")

    def __init__(self, accounts: Sequence[Account], amounts: Triple) -> None:
        self.accounts = accounts
        self.amounts = amounts

    @property
    def periods(self) -> tuple[tuple[UUID, int], ...]:
        return tuple((account.budget.id, account.span.start) for account in self.accounts)

    def headers(self) -> dict[str, str]:
        return left(self.accounts)


class _Shown(NamedTuple):
    """A group's month, in USD, until Unix time `end`."""

    spend: float
    limit: float
    end: int

    def spend_at(self, now: float) -> float:
        # Of the next month this worker knows nothing before a call.
        return self.spend if now < self.end else 0.0


class Spender:
    """One worker's. `start` before the first call, `stop` after the last."""

    def __init__(self, database: Database, clock: Clock, figures: Figures | None = None) -> None:
        self._database = database
        self._clock = clock
        self._figures = figures
        self._accounts: dict[UUID, Account] = {}
        #: of other periods, until everything is settled and told; by the budget and when the period began
        self._former: dict[tuple[UUID, int], Account] = {}
        #: those that requests wait for, and what is resolved when the ledger was asked: whether it answered
        self._lacking: dict[Account, asyncio.Future[bool]] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        #: spend and limit of groups' months, for metrics
        self._shown: dict[UUID, _Shown] = {}
        self._writer_id: UUID
        self._told = False

    async def start(self, writer_id: UUID) -> None:
        """`writer_id` is the journal's: what this worker spends is on record there."""
        self._writer_id = writer_id
        self._task = asyncio.create_task(self._keep(), name="budgets")

    async def stop(self) -> None:
        """Gives back what is not spent."""
        if self._task is None:
            return
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        with contextlib.suppress(SQLAlchemyError, OSError, TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await self._ask(self._all(), ending=True)

    def exhausted(self, budgets: Sequence[Budget]) -> Refusal | None:
        now = time.monotonic()
        for budget in budgets:
            account = self._accounts.get(budget.id)
            # Not by what a call will cost, which is not known yet: by whether there is anything at all.
            if account is not None and budget.blocks and account.budget is budget:
                metric = account.full(LEAST, now)
                if metric is not None and account.span.end > self._clock.now():
                    return QuotaExceeded.of(account, metric, self._clock.now())
        return None

    async def reserve(
        self, budgets: Sequence[Budget], taking: Taking, *, enforced: bool, user_id: UUID | None = None
    ) -> Reserved:
        amounts = (taking.nano_usd, taking.requests, taking.tokens)
        accounts = self._open(budgets, enforced=enforced)
        for account in accounts:
            if account.lacks(amounts) is not None:
                accounts = await self._obtained(budgets, amounts, enforced=enforced, user_id=user_id)
                break
        now = time.monotonic()
        for account in accounts:
            account.reserve(amounts, now)
            account.user_id = user_id
        return Reservation(accounts, amounts)

    def settle(self, reserved: Reserved, spent: Taking | None) -> None:
        assert isinstance(reserved, Reservation)
        used = NOTHING if spent is None else (spent.nano_usd, spent.requests, spent.tokens)
        now = time.monotonic()
        for account in reserved.accounts:
            account.settle(reserved.amounts, used, now)

    def _open(self, budgets: Sequence[Budget], *, enforced: bool) -> list[Account]:
        """The accounts of the periods that are now."""
        now = self._clock.now()
        return [self._account(budget, now, enforced=enforced) for budget in budgets]

    def _account(self, budget: Budget, now: float, *, enforced: bool) -> Account:
        account = self._accounts.get(budget.id)
        if account is None or not account.span.start <= now < account.span.end or account.budget.zone != budget.zone:
            account = self._turn(budget, span(budget.period, now, budget.zone), account)
        account.under(budget, enforced=enforced)
        return account

    def _turn(self, budget: Budget, now: Span, before: Account | None) -> Account:
        """The account of another period. Of each there is one alone: clocks go back, and time zones change."""
        if before is not None:
            self._former[budget.id, before.span.start] = before
        account = self._former.pop((budget.id, now.start), None) or Account(budget, now, time.monotonic())
        account.span = now
        self._accounts[budget.id] = account
        return account

    async def _obtained(
        self, budgets: Sequence[Budget], amounts: Triple, *, enforced: bool, user_id: UUID | None
    ) -> list[Account]:
        """The accounts once the call fits, without a turn of the loop since. Raises `QuotaExceeded`,
        `BudgetUnavailable`."""
        until, tries = time.monotonic() + _CONTENDED, 0
        while True:
            accounts = self._open(budgets, enforced=enforced)
            lacking = [account for account in accounts if account.lacks(amounts) is not None]
            for account in lacking:
                account.user_id = user_id
            self._refuse(lacking, amounts)
            if not any(account.blocks or account.fresh for account in lacking):
                return accounts
            # Where others were faster each time, the ledger does not say that the budget is spent.
            late = tries >= _TRIES and time.monotonic() >= until
            if late or not await self._asked_for(lacking, amounts):
                if any(account.blocks for account in lacking):
                    raise BudgetUnavailable(headers={"Retry-After": "1"})
                return accounts
            tries += 1

    def _refuse(self, lacking: Sequence[Account], amounts: Triple) -> None:
        """Raises `QuotaExceeded` for a budget that has not so much left."""
        for account in lacking:
            if account.blocks and (metric := account.full(amounts, time.monotonic())) is not None:
                # Listeners hear that the limit is reached, not that somebody wanted more than all of it.
                if amounts[metric] <= (account.limits[metric] or 0):
                    account.refused = metric
                raise QuotaExceeded.of(account, metric, self._clock.now())

    async def _asked_for(self, lacking: Sequence[Account], amounts: Triple) -> bool:
        """Waits until the ledger was asked for what the call wants. False: it did not answer in time."""
        for account in lacking:
            account.waiting.append(amounts)
        try:
            async with asyncio.timeout(_PATIENCE):
                while not all([await asyncio.shield(each) for each in [*map(self._answer, lacking)]]):
                    pass
        except TimeoutError:
            return False
        finally:
            for account in lacking:
                account.waiting.remove(amounts)
        return True

    def _answer(self, account: Account) -> asyncio.Future[bool]:
        answer = self._lacking.get(account)
        if answer is None:
            answer = self._lacking[account] = asyncio.get_running_loop().create_future()
            self._wake.set()
        return answer

    async def _keep(self) -> None:
        due = time.monotonic()
        while wanted():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, due - time.monotonic())):
                    await self._wake.wait()
            self._wake.clear()
            try:
                await self._serve()
                if time.monotonic() >= due:
                    await self._round()
                    due = time.monotonic() + _PAUSE
                self._told = False
            except (SQLAlchemyError, OSError) as error:
                if not self._told:
                    log.warning("budgets.database_away", reason=type(error).__name__)
                    self._told = True
                await asyncio.sleep(_PAUSE / 5)
            except Exception:
                log.exception("budgets.fault")
                await asyncio.sleep(_PAUSE)

    async def _serve(self) -> None:
        """Asks for all that is waited for now. Who gets no answer asks again."""
        for some in _batches(self._lacking):
            answers = [self._lacking.pop(account) for account in some]
            answered = False
            try:
                await self._ask(some)
                answered = True
            finally:
                for answer in answers:
                    answer.set_result(answered)

    async def _round(self) -> None:
        """Looks at all accounts. Those who wait meanwhile are served between two transactions."""
        now = time.monotonic()
        settled = [key for key, account in self._former.items() if account.reserved == NOTHING and not account.waiting]
        for some in _batches(self._all()):
            await self._ask(some)
            await self._serve()
        for key in settled:
            if key in self._former and self._former[key].reserved == NOTHING:
                del self._former[key]
        for budget_id, account in list(self._accounts.items()):
            if account.reserved == NOTHING and not account.waiting and now - account.quiet_since > _DROPPED:
                del self._accounts[budget_id]

    def _all(self) -> list[Account]:
        return [*self._accounts.values(), *self._former.values()]

    async def _ask(self, accounts: Iterable[Account], *, ending: bool = False) -> None:
        asked = []
        now = time.monotonic()
        for account in accounts:
            # What is on record comes a moment after it was spent: looked at again while that may be so.
            again = (account.budget.plan or account.budget.scope_type == "group") and (
                now - account.quiet_since < _QUIET and account.recorded != account.spent
            )
            ask = account.ask(again=again, ending=ending)
            if ask is not None:
                asked.append((account, ask))
        if not asked:
            return
        async with self._database.service() as session:
            grants = await lease(session, self._writer_id, [ask for _, ask in asked])
            await session.commit()
        for (account, ask), grant in zip(asked, grants, strict=True):
            account.take(ask, grant, time.monotonic())
            self._show(account)

    def _show(self, account: Account) -> None:
        budget = account.budget
        if self._figures is None or budget.scope_type != "group" or budget.period != "month":
            return
        limit = budget.limits.nano_usd
        if limit is None:
            return
        seen = budget.scope_id in self._shown
        self._shown[budget.scope_id] = _Shown(account.recorded[0] / NANO, limit / NANO, account.span.end)
        if not seen:
            shown, clock, labels = self._shown, self._clock, (str(budget.scope_id),)
            self._figures.group_spend.read(lambda: shown[budget.scope_id].spend_at(clock.now()), labels)
            self._figures.group_limit.read(lambda: shown[budget.scope_id].limit, labels)


def _batches(accounts: Iterable[Account]) -> Iterator[tuple[Account, ...]]:
    every = tuple(accounts)
    return (every[first : first + _AT_ONCE] for first in range(0, len(every), _AT_ONCE))

"""Scheduling of long work: fair between organizations and users, bounded, and ended when no caller waits for it."""

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from gatehouse.engine.dlp import turns
from gatehouse.engine.dlp.errors import DlpUnavailable
from gatehouse.engine.dlp.steps import Steps, finish
from gatehouse.engine.dlp.turns import FairScheduler, OverBudget, WorkBudget, WorkOwner

STEP_SECONDS = 0.001


class Clock:
    """A clock that advances by one step's time with each step, so that the tests count steps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.steps: list[str] = []

    def work(self, name: str, count: int, *, gate: threading.Event | None = None) -> Steps[str]:
        for _ in range(count):
            if gate is not None:
                gate.wait(10)
            self.now += STEP_SECONDS
            self.steps.append(name)
            yield
        return name


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(turns, "thread_time", lambda: clock.now)
    # All work waits for its turn.
    monkeypatch.setattr(turns, "INLINE_WORK_SECONDS", 0.0)
    return clock


async def queued(pool: FairScheduler, count: int) -> None:
    while pool.waiting < count:
        await asyncio.sleep(0)


async def idle(pool: FairScheduler) -> None:
    """Wait until the scheduler is idle. Its thread ends a moment after the result is available."""
    async with asyncio.timeout(60):
        while pool._organizations:
            await asyncio.sleep(0)


async def blocked(pool: FairScheduler, clock: Clock) -> tuple[threading.Event, "asyncio.Task[str]"]:
    """Start work that waits until the event is set, so that other work queues meanwhile."""
    gate = threading.Event()
    task = asyncio.create_task(pool.run(WorkOwner("first", "first"), clock.work("first", 1, gate=gate)))
    await queued(pool, 1)
    return gate, task


def share_until_done(steps: list[str], name: str) -> float:
    """Return the share of the steps of `name` among all steps up to its last one."""
    last = len(steps) - steps[::-1].index(name)
    return steps[:last].count(name) / last


async def test_a_users_many_texts_get_an_equal_share(clock: Clock) -> None:
    pool = FairScheduler()
    gate, first = await blocked(pool, clock)
    hostile = [asyncio.create_task(pool.run(WorkOwner("a", "h"), clock.work(f"h{n}", 500))) for n in range(10)]
    await queued(pool, 11)
    other = asyncio.create_task(pool.run(WorkOwner("b", "o"), clock.work("other", 200)))
    same = asyncio.create_task(pool.run(WorkOwner("a", "s"), clock.work("same", 200)))
    await queued(pool, 13)
    gate.set()
    assert await other == "other"
    assert await same == "same"
    await asyncio.gather(first, *hostile)
    # The share may differ by one turn.
    assert share_until_done(clock.steps, "other") > 0.48
    # The organization has a share of one half, and the user has half of this share.
    assert share_until_done(clock.steps, "same") > 0.24


async def test_many_users_of_an_organization_get_one_organizations_share(clock: Clock) -> None:
    pool = FairScheduler()
    gate, first = await blocked(pool, clock)
    many = [asyncio.create_task(pool.run(WorkOwner("a", n), clock.work(f"u{n}", 300))) for n in range(20)]
    other = asyncio.create_task(pool.run(WorkOwner("b", "o"), clock.work("other", 200)))
    await queued(pool, 22)
    gate.set()
    await asyncio.gather(first, other, *many)
    assert share_until_done(clock.steps, "other") > 0.48


async def test_later_work_gets_no_compensation_for_earlier_time(clock: Clock) -> None:
    pool = FairScheduler()
    gate, half = threading.Event(), threading.Event()

    def in_two_halves() -> Steps[str]:
        yield from clock.work("early", 500)
        half.set()
        gate.wait(10)
        return (yield from clock.work("early", 500))

    early = asyncio.create_task(pool.run(WorkOwner("a", "e"), in_two_halves()))
    await asyncio.to_thread(half.wait, 10)
    late = asyncio.create_task(pool.run(WorkOwner("b", "l"), clock.work("late", 500)))
    await queued(pool, 2)
    gate.set()
    await asyncio.gather(early, late)
    assert share_until_done(clock.steps[500:], "late") < 0.55


async def test_short_work_runs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = FairScheduler()
    threads: list[int] = []

    def work() -> Steps[int]:
        threads.append(threading.get_ident())
        yield
        return 7

    monkeypatch.setattr(pool, "_start", lambda: pytest.fail("a thread was started"))
    monkeypatch.setattr(turns, "INLINE_WORK_SECONDS", 60.0)
    assert await pool.run(WorkOwner("a", "u"), work()) == 7
    assert threads == [threading.get_ident()]


async def test_exceptions_of_the_work_propagate(clock: Clock) -> None:
    def work() -> Steps[None]:
        yield
        raise LookupError("no such thing")

    pool = FairScheduler()
    with pytest.raises(LookupError, match="no such thing"):
        await pool.run(WorkOwner("a", "u"), work())
    assert pool.waiting == 0
    assert await pool.run(WorkOwner("a", "u"), clock.work("next", 2)) == "next"


async def test_abandoned_work_ends_at_its_next_step(clock: Clock) -> None:
    pool = FairScheduler()
    ended = threading.Event()

    def endless() -> Steps[None]:
        try:
            while True:
                clock.now += STEP_SECONDS
                yield
        finally:
            ended.set()

    task = asyncio.create_task(pool.run(WorkOwner("a", "u"), endless()))
    while clock.now < 0.1:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(ended.wait, 10)
    assert pool.waiting == 0


async def test_work_abandoned_before_its_turn_is_removed(clock: Clock) -> None:
    pool = FairScheduler()
    gate, first = await blocked(pool, clock)
    for _ in range(3 * turns.MAX_WAITING_TURNS):
        task = asyncio.create_task(pool.run(WorkOwner("a", "u"), clock.work("left", 1)))
        await queued(pool, 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert list(pool._organizations) == ["first"]
    gate.set()
    await first
    assert "left" not in clock.steps


@pytest.mark.parametrize(
    ("owner", "limit"),
    [
        (lambda _: WorkOwner("a", "u"), turns.MAX_WAITING_TURNS_PER_USER),
        (lambda n: WorkOwner("a", n), turns.MAX_WAITING_TURNS_PER_ORGANIZATION),
        (lambda n: WorkOwner(n, n), turns.MAX_WAITING_TURNS - 1),
    ],
)
async def test_the_number_of_waiting_works_is_bounded(
    clock: Clock, owner: Callable[[int], WorkOwner], limit: int
) -> None:
    pool = FairScheduler()
    gate, first = await blocked(pool, clock)
    tasks = [asyncio.create_task(pool.run(owner(n), clock.work("waits", 1))) for n in range(limit)]
    await queued(pool, limit + 1)
    with pytest.raises(DlpUnavailable) as refused:
        await pool.run(owner(limit), clock.work("refused", 1))
    assert refused.value.headers["Retry-After"] == "5"
    if limit < turns.MAX_WAITING_TURNS_PER_ORGANIZATION + 1:
        # Work of other owners is still accepted.
        tasks.append(asyncio.create_task(pool.run(WorkOwner("other", "o"), clock.work("other", 1))))
        await queued(pool, limit + 2)
    gate.set()
    await asyncio.gather(first, *tasks)
    assert "refused" not in clock.steps
    assert pool.waiting == 0
    await idle(pool)


async def test_a_budget_bounds_the_work(clock: Clock) -> None:
    pool, budget = FairScheduler(), WorkBudget(work_seconds=0.1005, timeout_seconds=1000)
    assert await pool.run(WorkOwner("a", "u"), clock.work("first", 60), budget) == "first"
    with pytest.raises(OverBudget) as over:
        await pool.run(WorkOwner("a", "u"), clock.work("second", 60), budget)
    assert over.value.reason == "work"
    assert clock.steps.count("second") == 41


async def test_a_budget_bounds_working_and_waiting(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(turns, "monotonic", lambda: now + 100 * clock.now)
    pool, budget = FairScheduler(), WorkBudget(work_seconds=1000, timeout_seconds=5)
    gate, first = await blocked(pool, clock)
    waits = asyncio.create_task(pool.run(WorkOwner("a", "u"), clock.work("waits", 200), budget))
    beside = asyncio.create_task(pool.run(WorkOwner("b", "u"), clock.work("beside", 200)))
    await queued(pool, 3)
    gate.set()
    with pytest.raises(OverBudget) as over:
        await waits
    assert over.value.reason == "timeout"
    # 5 seconds are 50 steps, half of which belong to the other work.
    assert 20 <= clock.steps.count("waits") <= 30
    await asyncio.gather(first, beside)


async def test_several_threads_work_concurrently(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "INLINE_WORK_SECONDS", 0.0)
    together = threading.Barrier(3)

    def work() -> Steps[int]:
        yield
        return together.wait(10)

    pool = FairScheduler(threads=3)
    assert sorted(await asyncio.gather(*(pool.run(WorkOwner("a", "u"), work()) for _ in range(3)))) == [0, 1, 2]


def test_finish_returns_the_result(clock: Clock) -> None:
    assert finish(clock.work("x", 3)) == "x"
    assert clock.steps == ["x"] * 3


async def test_the_providers_time_between_two_units_of_work_is_not_counted(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(turns, "monotonic", lambda: now[0])
    pool, budget = FairScheduler(), WorkBudget(work_seconds=1000, timeout_seconds=5)
    assert await pool.run(WorkOwner("a", "u"), clock.work("request", 3), budget) == "request"
    now[0] += 1000
    assert await pool.run(WorkOwner("a", "u"), clock.work("answer", 3), budget) == "answer"


async def test_large_work_does_not_begin_on_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def work() -> Steps[None]:
        threads.append(threading.get_ident())
        yield

    monkeypatch.setattr(turns, "INLINE_WORK_SECONDS", 60.0)
    await FairScheduler().run(WorkOwner("a", "u"), work(), size=turns.MAX_INLINE_CHARACTERS)
    assert threads != [threading.get_ident()]


async def test_work_that_runs_at_once_is_charged(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "INLINE_WORK_SECONDS", 1.0)
    pool, budget = FairScheduler(), WorkBudget(work_seconds=3.5 * STEP_SECONDS, timeout_seconds=60)
    owner = WorkOwner("organization", "user")
    for count in range(2):
        assert await pool.run(owner, clock.work("short", 2), budget) == "short"
        assert budget.is_spent is (count == 1)

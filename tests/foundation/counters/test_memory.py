"""The sliding window of rate limits in memory (docs/rate-limits.md)."""

import asyncio
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.clock import HandClock

from gatehouse.foundation.counters.memory import MemoryCounters


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def counters(clock: HandClock) -> MemoryCounters:
    return MemoryCounters(clock)


async def test_of_500_parallel_takes_exactly_the_limit_is_admitted(counters: MemoryCounters) -> None:
    decisions = await asyncio.gather(*[counters.take("user:a", 60) for _ in range(500)])
    assert sum(t.allowed for t in decisions) == 60


async def test_remaining_counts_down_and_reset_is_the_time_of_the_next_free_slot(
    counters: MemoryCounters, clock: HandClock
) -> None:
    first = await counters.take("user:a", 3)
    clock.move(20)
    second = await counters.take("user:a", 3)
    assert (first.rate.remaining, second.rate.remaining) == (2, 1)
    assert first.rate.reset == second.rate.reset == clock.start + 60
    assert (first.retry_after, second.retry_after) == (0, 0)


async def test_the_window_slides_instead_of_restarting(counters: MemoryCounters, clock: HandClock) -> None:
    assert (await counters.take("user:a", 2)).allowed
    clock.move(30)
    assert (await counters.take("user:a", 2)).allowed
    clock.move(29.9)
    assert not (await counters.take("user:a", 2)).allowed
    clock.move(0.1)
    assert (await counters.take("user:a", 2)).allowed
    assert not (await counters.take("user:a", 2)).allowed


async def test_a_refused_request_is_not_counted(counters: MemoryCounters, clock: HandClock) -> None:
    await counters.take("user:a", 1)
    for _ in range(59):
        clock.move(1)
        assert not (await counters.take("user:a", 1)).allowed
    clock.move(1)
    assert (await counters.take("user:a", 1)).allowed


async def test_keys_do_not_share_a_count(counters: MemoryCounters) -> None:
    await counters.take("user:a", 1)
    assert (await counters.take("user:b", 1)).allowed


async def test_either_all_claims_of_a_request_are_counted_or_none(counters: MemoryCounters) -> None:
    await counters.take("ip:a", 1)
    refused = await counters.take_all(("login:x", 2), ("ip:a", 1))
    assert (refused.allowed, refused.claim, refused.rate.limit) == (False, 1, 1)
    passed = await counters.take_all(("login:x", 2), ("ip:b", 100))
    assert (passed.allowed, passed.claim, passed.rate.remaining) == (True, 0, 1)


async def test_a_process_without_a_part_of_a_limit_admits_nothing(counters: MemoryCounters) -> None:
    for taken in (await counters.take("a", 10, own_limit=0), counters.take_now(("a", 0)), counters.take_now(("b", 0))):
        assert (taken.allowed, taken.rate.limit, taken.retry_after) == (False, 0, 60)
    assert len(counters) == 0


async def test_a_process_that_lost_its_part_of_a_limit_admits_nothing(
    counters: MemoryCounters, clock: HandClock
) -> None:
    for key in ("a", "b", "k"):
        assert counters.take_now((key, 1)).allowed
    clock.move(100)
    # Two expired keys are dropped with each request, so the window of the third is empty.
    assert not counters.take_now(("k", 0)).allowed


async def test_a_lowered_limit_reports_when_a_slot_is_free_again(counters: MemoryCounters, clock: HandClock) -> None:
    for _ in range(4):
        await counters.take("user:a", 10)
        clock.move(10)
    refused = await counters.take("user:a", 2)
    assert refused.retry_after == 40
    clock.move(refused.retry_after)
    assert (await counters.take("user:a", 2)).allowed


@settings(max_examples=60, deadline=None)
@example(
    limit=1, gaps=[0.004, 0.0]
)  # the difference to 60.004 seconds is, as a float, not a whole number of microseconds
@given(
    limit=st.integers(1, 8),
    gaps=st.lists(st.one_of(st.just(0.0), st.floats(0, 0.3), st.floats(0, 40)), min_size=1, max_size=80),
)
def test_no_60_seconds_exceed_the_limit_and_waiting_for_retry_after_succeeds(limit: int, gaps: list[float]) -> None:
    clock = HandClock()
    counters = MemoryCounters(clock)
    admitted: list[float] = []
    for gap in gaps:
        clock.move(gap)
        decision = counters.take_now(("k", limit))
        if not decision.allowed:
            assert decision.retry_after >= 1
            assert decision.rate.reset >= clock.now()
            clock.move(decision.retry_after)
            decision = counters.take_now(("k", limit))
        assert decision.allowed
        admitted.append(clock.monotonic())
        # The counter has a resolution of one microsecond.
        assert sum(clock.monotonic() - t < 60 - 2e-6 for t in admitted) <= limit


@settings(max_examples=200, deadline=None)
@example(limit=2, moments=[0.0, 0.09, 60.04, 60.05])  # that of 0.09 is still one of the last 60 seconds
@given(
    limit=st.integers(1, 4),
    moments=st.lists(
        st.one_of(st.floats(0, 0.2), st.floats(60, 60.2), st.floats(120, 120.2), st.floats(0, 121)),
        min_size=2,
        max_size=60,
    ).map(sorted),
)
def test_no_60_seconds_exceed_the_limit_whenever_requests_arrive(limit: int, moments: list[float]) -> None:
    """The clients do not wait for `retry_after`, and send requests at any fraction of a second."""
    clock = HandClock()
    counters = MemoryCounters(clock)
    admitted: list[float] = []
    for moment in moments:
        clock.passed = moment
        if counters.take_now(("k", limit)).allowed:
            admitted.append(clock.monotonic())
            assert sum(clock.monotonic() - t < 60 - 2e-6 for t in admitted) <= limit


async def test_the_size_of_a_key_does_not_depend_on_its_limit(clock: HandClock) -> None:
    counters = MemoryCounters(clock)
    for _ in range(20_000):
        clock.move(0.006)
        await counters.take("oauth:a", 10**6)
    window = counters._windows["oauth:a"]
    assert len(window.ends) <= 601
    assert window.used == sum(window.counts)
    assert math.isclose(window.used, 10_000, rel_tol=0.01)


async def test_expired_keys_are_purged(counters: MemoryCounters, clock: HandClock) -> None:
    for number in range(100):
        await counters.take(f"ip:{number}", 60)
    clock.move(30)
    await counters.take("ip:0", 60)
    clock.move(30)
    counters.purge()
    assert len(counters) == 1


async def test_counting_purges_expired_keys_faster_than_new_ones_arrive(
    counters: MemoryCounters, clock: HandClock
) -> None:
    for number in range(100):
        await counters.take(f"ip:{number}", 60)
    clock.move(61)
    for number in range(100, 150):
        await counters.take(f"ip:{number}", 60)
    assert len(counters) == 50


async def test_a_key_that_a_refused_pair_of_claims_emptied_is_purged(
    counters: MemoryCounters, clock: HandClock
) -> None:
    await counters.take_all(("login:x", 10), ("ip:a", 1))
    await counters.take("ip:b", 1)
    clock.move(60)
    for _ in range(3):
        await counters.take("ip:a", 1)
        await counters.take_all(("login:x", 10), ("ip:a", 1))
    clock.move(60)
    counters.purge()
    assert len(counters) == 0


async def test_many_addresses_use_bounded_memory(clock: HandClock) -> None:
    counters = MemoryCounters(clock, max_keys=100)
    for number in range(1000):
        await counters.take(f"ip:{number}", 60)
        await counters.take("user:busy", 2000)
    assert len(counters) == 100
    assert (await counters.take("user:busy", 2000)).rate.remaining == 999

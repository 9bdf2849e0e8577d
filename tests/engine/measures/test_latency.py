"""Latencies of models: medians over five minutes, for several workers together."""

import pytest
from tests.support.clock import HandClock

from gatehouse.engine.measures.latency import Latencies
from gatehouse.foundation.ids import new_id

MODEL, OTHER = new_id(), new_id()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


def settled(latencies: Latencies) -> bytes | None:
    report = latencies.report()
    latencies.settle()
    return report


def test_the_median_is_off_by_five_percent_at_most(clock: HandClock) -> None:
    latencies = Latencies(clock)
    for milliseconds in range(1, 1_001):
        latencies.answered(MODEL, milliseconds, stream=False)
    settled(latencies)
    assert latencies.medians(stream=False)[MODEL.int] == pytest.approx(500, rel=0.05)


def test_the_first_answer_counts_at_once(clock: HandClock) -> None:
    latencies = Latencies(clock)
    latencies.answered(MODEL, 120, stream=False)
    assert latencies.medians(stream=False) == {MODEL.int: 120}


def test_streams_are_counted_apart(clock: HandClock) -> None:
    latencies = Latencies(clock)
    latencies.answered(MODEL, 2_000, stream=False)
    latencies.answered(MODEL, 100, stream=True)
    settled(latencies)
    assert latencies.medians(stream=False)[MODEL.int] == pytest.approx(2_000, rel=0.05)
    assert latencies.medians(stream=True)[MODEL.int] == pytest.approx(100, rel=0.05)


def test_latencies_of_other_workers_count_too(clock: HandClock) -> None:
    one, two = Latencies(clock), Latencies(clock)
    for _ in range(3):
        one.answered(MODEL, 1_000, stream=False)
    two.answered(MODEL, 10, stream=False)
    two.answered(OTHER, 10, stream=False)
    report = settled(one)
    assert report is not None
    two.take(report, age=0)
    settled(two)
    assert two.medians(stream=False)[MODEL.int] == pytest.approx(1_000, rel=0.05)
    assert set(one.medians(stream=False)) == {MODEL.int}


def test_a_latency_counts_for_five_minutes(clock: HandClock) -> None:
    latencies = Latencies(clock)
    for _ in range(5):
        latencies.answered(MODEL, 1_000, stream=False)
    settled(latencies)
    clock.move(200)
    latencies.answered(MODEL, 10, stream=False)
    settled(latencies)
    assert latencies.medians(stream=False)[MODEL.int] == pytest.approx(1_000, rel=0.05)
    clock.move(110)
    settled(latencies)
    assert latencies.medians(stream=False)[MODEL.int] == pytest.approx(10, rel=0.05)


def test_the_last_median_is_kept_for_an_hour(clock: HandClock) -> None:
    latencies = Latencies(clock)
    latencies.answered(MODEL, 100, stream=False)
    settled(latencies)
    clock.move(3_500)
    settled(latencies)
    assert MODEL.int in latencies.medians(stream=False)
    clock.move(200)
    settled(latencies)
    assert MODEL.int not in latencies.medians(stream=False)


def test_a_report_has_its_stated_age(clock: HandClock) -> None:
    one, two = Latencies(clock), Latencies(clock)
    one.answered(MODEL, 100, stream=False)
    report = one.report()
    assert report is not None
    clock.move(1_000)
    two.take(report, age=301)
    two.settle()
    assert two.medians(stream=False) == {}
    two.take(report, age=280)
    two.settle()
    assert MODEL.int in two.medians(stream=False)


def test_there_is_no_report_without_new_latencies(clock: HandClock) -> None:
    latencies = Latencies(clock)
    latencies.answered(MODEL, 100, stream=False)
    assert latencies.report() is not None
    assert latencies.report() is None


def test_an_unknown_model_is_tried_once_a_minute(clock: HandClock) -> None:
    latencies = Latencies(clock)
    tries = []
    for seconds in (0, 1, 58, 1, 59):
        clock.move(seconds)
        tries.append(latencies.may_try(MODEL))
    assert tries == [True, False, False, True, False]


@pytest.mark.parametrize("milliseconds", [0.0, 0.4, 1e12])
def test_any_latency_can_be_counted(clock: HandClock, milliseconds: float) -> None:
    latencies = Latencies(clock)
    latencies.answered(MODEL, milliseconds, stream=False)
    settled(latencies)
    assert latencies.medians(stream=False)[MODEL.int] > 0


def test_the_state_changes_whenever_medians_change(clock: HandClock) -> None:
    latencies = Latencies(clock)
    states = [latencies.state(stream=False), latencies.state(stream=True)]
    latencies.answered(MODEL, 120, stream=False)
    states.append(latencies.state(stream=False))
    latencies.answered(MODEL, 120, stream=False)
    assert latencies.state(stream=False) == states[-1]
    settled(latencies)
    states.append(latencies.state(stream=False))
    assert len(set(states)) == len(states)

"""Percentiles computed from buckets."""

import math
import random
from collections import Counter

import pytest

from gatehouse.platform.records.minutes.latency import bucket, percentile


def percentile_of(latencies: list[float], share: float) -> float | None:
    return percentile(Counter(map(bucket, latencies)), share)


@pytest.mark.parametrize("share", [0.5, 0.95, 0.99, 1.0])
def test_a_percentile_deviates_by_at_most_five_percent(share: float) -> None:
    dice = random.Random(5)
    for middle in (0.2, 3.0, 80.0, 2500.0, 600_000.0):
        for size in (1, 2, 19, 20, 21, 1000):
            latencies = sorted(min(3_600_000, max(0.1, dice.lognormvariate(math.log(middle), 1))) for _ in range(size))
            truth = latencies[math.ceil(share * size) - 1]
            assert percentile_of(latencies, share) == pytest.approx(truth, rel=0.05)


def test_every_latency_has_a_bucket() -> None:
    """This includes the bounds of buckets. Buckets are in ascending order."""
    times = [0.1 * 1.1**number * (1 + shift) for number in range(183) for shift in (-1e-9, 1e-9)]
    numbers = [bucket(time_) for time_ in times]
    assert numbers == sorted(numbers)
    assert all(
        0.1 * 1.1 ** (n - 1) * 0.999 <= item <= 0.1 * 1.1**n * 1.001 for item, n in zip(times, numbers, strict=True)
    )


@pytest.mark.parametrize(("latency", "nearest"), [(0.0, 0.1), (0.01, 0.1), (-5.0, 0.1), (1e12, 3_600_000)])
def test_latencies_outside_the_range_count_in_the_nearest_bucket(latency: float, nearest: float) -> None:
    assert percentile_of([latency], 0.95) == pytest.approx(nearest, rel=0.06)


def test_there_is_no_percentile_without_latencies() -> None:
    assert percentile_of([], 0.95) is None

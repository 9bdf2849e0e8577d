"""Measures the sustained rate: the rate of requests at which records are stored as fast as they are created."""

import time

from rig.gateways.gatehouse import Gatehouse
from rig.measure import Bench, Sample, note

CONNECTIONS = 256
#: maximum number of steady loads that are tried
TRIES = 5


def measure(bench: Bench, gateway: Gatehouse) -> Sample:
    """Measure the sustained rate. The first guess is computed from a burst and the time until all its records are
    stored. Steady loads then check the guess."""
    seconds = bench.plan.sustained_seconds
    gateway.settle()
    recorded, begun = gateway.recorded(), time.monotonic()
    burst = bench.run(gateway, connections=64, seconds=seconds / 2, settle=False)
    behind = gateway.backlog()
    done = gateway.settle()
    # All requests must be recorded, because a figure without recording would not be comparable.
    if (lost := burst.result.requests - (gateway.recorded() - recorded)) > 0:
        bench.faults.append(f"gatehouse: {lost} of {burst.result.requests} requests left no usage record")
        return Sample(burst_s=burst.result.rate)
    rate = burst.result.requests / (done - begun)
    sample = Sample(burst_s=burst.result.rate, burst_backlog=behind, drain_s=done - begun - burst.result.seconds)
    note(f"burst {burst.result.rate:,.0f}/s, {behind:,.0f} records behind; all recorded at {rate:,.0f}/s")
    best = 0.0
    for _ in range(TRIES):
        reached, growth = _steady(bench, gateway, rate)
        note(f"steady load of {reached:,.0f}/s: backlog grows by {growth:,.0f} records/s")
        holds = growth < 0.02 * reached
        if best and (not holds or reached < 1.03 * best):
            break
        best = reached if holds else 0.0
        rate = rate * 1.15 if holds else (reached - growth) * 0.97
    if best:
        sample["sustained_s"] = best
    return sample


def _steady(bench: Bench, gateway: Gatehouse, rate: float) -> tuple[float, float]:
    """Return the requests per second that were reached, and the growth of the backlog in the second half, in records
    per second."""
    seconds = bench.plan.sustained_seconds
    points: list[tuple[float, float]] = []
    # A request takes about half a millisecond. The rate that is actually reached is measured.
    pause = max(1, round(CONNECTIONS / rate * 1000 - 0.5))
    run = bench.run(
        gateway,
        connections=CONNECTIONS,
        seconds=seconds,
        pause_ms=pause,
        meanwhile=lambda at: points.append((at, gateway.backlog())),
    )
    return run.result.rate, _slope([point for point in points if seconds / 2 <= point[0] <= seconds])


def _slope(points: list[tuple[float, float]]) -> float:
    """Return the slope of the points by least squares."""
    if len(points) < 2:
        return 0.0
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread

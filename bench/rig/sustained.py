"""The rate that can go on for ever: records reach the database as fast as requests make them."""

import time

from rig.gateways.gatehouse import Gatehouse
from rig.measure import Bench, Sample, note

CONNECTIONS = 256
#: steady loads that are tried
TRIES = 5


def measure(bench: Bench, gateway: Gatehouse) -> Sample:
    """A burst and the time until all of it is recorded give a first guess; a steady load shows whether it holds."""
    seconds = bench.plan.sustained_seconds
    gateway.settle()
    recorded, begun = gateway.recorded(), time.monotonic()
    burst = bench.run(gateway, connections=64, seconds=seconds / 2, settle=False)
    behind = gateway.backlog()
    done = gateway.settle()
    # A figure without the records would be another product's.
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
    """Requests a second that were reached, and records a second by which the backlog grew in the second half."""
    seconds = bench.plan.sustained_seconds
    points: list[tuple[float, float]] = []
    # Half a millisecond is what a request takes; what is reached is measured.
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
    """Least squares."""
    if len(points) < 2:
        return 0.0
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread

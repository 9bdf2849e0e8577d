"""The rate that can go on for ever: records reach the database as fast as requests make them."""

import time

from rig.gateways.gatehouse import Gatehouse
from rig.measure import Bench, Sample, note

CONNECTIONS = 256
#: tries at ever lower rates
TRIES = 5


def measure(bench: Bench, gateway: Gatehouse) -> Sample:
    """A burst and the time until all of it is recorded give a first guess; a steady load shows whether it holds."""
    seconds = bench.plan.sustained_seconds
    gateway.settle()
    recorded, begun = gateway.recorded(), time.monotonic()
    burst = bench.run(gateway, connections=64, seconds=seconds / 2, settle=False)
    behind = burst.result.requests - (gateway.recorded() - recorded)
    done = gateway.settle()
    # A figure without the records would be another product's.
    if (lost := burst.result.requests - (gateway.recorded() - recorded)) > 0:
        bench.faults.append(f"gatehouse: {lost} of {burst.result.requests} requests left no usage record")
        return Sample(burst_s=burst.result.rate)
    rate = burst.result.requests / (done - begun)
    sample = Sample(burst_s=burst.result.rate, burst_backlog=behind, drain_s=done - begun - burst.result.seconds)
    note(f"burst {burst.result.rate:,.0f}/s, all recorded at {rate:,.0f}/s")
    for _ in range(TRIES):
        reached, growth = _steady(bench, gateway, rate)
        note(f"steady load of {reached:,.0f}/s: backlog grows by {growth:,.0f} records/s")
        if growth < 0.02 * reached:
            sample["sustained_s"] = reached
            return sample
        rate = (reached - growth) * 0.97
    return sample


def _steady(bench: Bench, gateway: Gatehouse, rate: float) -> tuple[float, float]:
    """Requests a second that were reached, and records a second by which the backlog grew in the second half."""
    seconds = bench.plan.sustained_seconds
    gateway.settle()
    served, recorded = bench.mock.stats().served, gateway.recorded()
    points: list[tuple[float, int]] = []

    def look(at: float) -> None:
        backlog = (bench.mock.stats().served - served) - (gateway.recorded() - recorded)
        points.append((at, backlog))

    # Half a millisecond is what a request takes; what is reached is measured.
    pause = max(1, round(CONNECTIONS / rate * 1000 - 0.5))
    run = bench.run(
        gateway, connections=CONNECTIONS, seconds=seconds, pause_ms=pause, settle=False, meanwhile=look
    )  # fmt: skip
    gateway.settle()
    return run.result.rate, _slope([point for point in points if seconds / 2 <= point[0] <= seconds])


def _slope(points: list[tuple[float, int]]) -> float:
    """Least squares."""
    if len(points) < 2:
        return 0.0
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread

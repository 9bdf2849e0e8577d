"""Checks that the figures of the soak do not grow. If there are too few samples of a figure, the check fails."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bench.rig.soak_watch import Look


@dataclass(frozen=True)
class Bound:
    """The maximum growth of a figure from the beginning to the end, as a share and as an absolute value."""

    share: float
    more: float

    def broken(self, first: float, last: float) -> bool:
        return last > first * (1 + self.share) + self.more


@dataclass(frozen=True)
class Bounds:
    memory: Bound
    descriptors: Bound
    tasks: Bound
    #: The minimum and maximum age of a process, in seconds, for a sample.
    ages: tuple[float, float]


#: Bounds for processes that are never killed. In 20 minutes at 60 requests per second, a worker answers 20,000 requests
#: between the two ends. A leak of 400 bytes per request, or of a descriptor or task in 3,000 requests, exceeds these
#: bounds. Smaller changes are normal variations of the heap and of the calls in progress.
_SPARED: Final = Bounds(Bound(0.05, 3.0), Bound(0, 6), Bound(0, 6), (20.0, float("inf")))
#: Bounds for processes that are killed repeatedly. The successors are compared at the same age, because a process warms
#: up for one or two minutes. A fifth of the samples comes from two processes, and an outage adds up to 5 MiB and some
#: connections to one of them.
_KILLED: Final = Bounds(Bound(0.05, 5.0), Bound(0, 6), Bound(0, 6), (20.0, 60.0))
#: Bounds for PostgreSQL. It has 25 processes, one for each connection. After an outage, the pools may open up to four
#: more connections. Each needs 8 to 10 descriptors, without those of data files, and 2 MiB.
_DATABASE: Final = Bounds(Bound(0.05, 8.0), Bound(0, 40), Bound(0, 4), (20.0, 60.0))
ROLES: Final = {
    "spared worker": _SPARED, "other worker": _KILLED, "keeper": _KILLED, "Redis": _KILLED, "PostgreSQL": _DATABASE,
}  # fmt: skip

#: Minimum samples, of which a fifth are two samples, and minimum calls, of which a third are 500 calls.
LOOKS, CALLS = 10, 1_500
#: Bounds for the latency. Because of other work on the machine, the slowest calls of one minute may take 1.6 times as
#: long as those of another minute. The median hardly changes.
P50, P99, SLOWEST = Bound(0.5, 5.0), Bound(1.0, 50.0), Bound(0.5, 25.0)


def fault(there_is: bool, text: str) -> bool:
    """Print a fault if there is one. Return whether there is none."""
    if there_is:
        print(f"FAULT: {text}")
    return not there_is


def ends(values: Sequence[float]) -> tuple[float, float]:
    """Return the medians of the first and the last fifth of the values."""
    fifth = max(1, len(values) // 5)
    return statistics.median(values[:fifth]), statistics.median(values[-fifth:])


def within_bounds(seen: Mapping[str, Iterable[Look]]) -> bool:
    """Print the growth of all processes, and return whether it is within the bounds. `seen` has the samples in quiet
    moments after the warm-up."""
    print(f"\n{'process':15}{'looks':>6}{'MiB':>8}{'to':>8}{'fds':>8}{'to':>6}{'tasks':>8}{'to':>6}")
    faults: list[str] = []
    for role, bounds in ROLES.items():
        looks = [look for look in seen.get(role, ()) if bounds.ages[0] <= look.age <= bounds.ages[1]]
        figures: dict[str, tuple[Bound, Sequence[float]]] = {
            "memory": (bounds.memory, [look.mib for look in looks]),
            "descriptors": (bounds.descriptors, [look.descriptors for look in looks]),
        }
        if role != "Redis":
            figures["tasks"] = (bounds.tasks, [look.tasks for look in looks if look.tasks is not None])
        line = f"{role:15}{len(looks):6}"
        for name, (bound, values) in figures.items():
            if len(values) < LOOKS:
                faults.append(f"not shown: {role}, {name}: {len(values)} looks, of {LOOKS} that it takes")
            if values:
                first, last = ends(values)
                line += f"{first:8.1f}{last:8.1f}" if name == "memory" else f"{first:8.0f}{last:6.0f}"
                if bound.broken(first, last):
                    faults.append(f"{role}: {name} grow{'s' if name == 'memory' else ''}")
        print(line)
    for item in faults:
        fault(True, item)
    return not faults


def latency(quiet: Sequence[tuple[float, float]]) -> bool:
    """Print the latency, and return whether it is within the bounds. `quiet` has the time and the milliseconds of each
    call in a quiet moment."""
    if len(quiet) < CALLS:
        return fault(True, f"not shown: latency: {len(quiet)} calls in quiet moments, of {CALLS} that it takes")
    third = len(quiet) // 3
    early, late = ([took for _, took in part] for part in (quiet[:third], quiet[-third:]))
    print(f"\nlatency in quiet moments ({len(quiet)} plain calls)")
    good = True
    for name, bound, of in (("p50", P50, _p50), ("p99", P99, _p99), ("slowest of a hundred", SLOWEST, _slowest)):
        first, last = of(early), of(late)
        print(f"{name:21}{first:7.1f} to {last:.1f} ms")
        good &= fault(bound.broken(first, last), f"the latency grows: {name}")
    return good


def _p50(took: Sequence[float]) -> float:
    return statistics.median(took)


def _p99(took: Sequence[float]) -> float:
    return statistics.quantiles(took, n=100)[98]


def _slowest(took: Sequence[float]) -> float:
    """Return the median of the maxima of each hundred consecutive calls. It is similar to the p99. If the machine stops
    for some seconds, only one hundred calls are affected, so that the bound can be stricter."""
    return statistics.median(max(took[at : at + 100]) for at in range(0, len(took) - 99, 100))

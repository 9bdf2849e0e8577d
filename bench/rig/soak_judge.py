"""Whether what the soak has seen is flat. What was seen too seldom is not shown, and that fails a run as well."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bench.rig.soak_watch import Look


@dataclass(frozen=True)
class Bound:
    """How much more it may be at the end than at the beginning."""

    share: float
    more: float

    def broken(self, first: float, last: float) -> bool:
        return last > first * (1 + self.share) + self.more


@dataclass(frozen=True)
class Bounds:
    memory: Bound
    descriptors: Bound
    tasks: Bound
    #: Seconds of a process's life in which it is looked at.
    ages: tuple[float, float]


#: Of 20 minutes at 60 requests a second, 20,000 requests of a worker lie between the two ends: one that leaks 400 bytes
#: a request, or a descriptor or a task in three thousand, breaks these. Less is how its heap moves, and the few calls
#: that it has at a moment.
_SPARED: Final = Bounds(Bound(0.05, 3.0), Bound(0, 6), Bound(0, 6), (20.0, float("inf")))
#: Of what is killed again and again the successors are compared, each at the same age: it warms up for a minute or two.
#: Two lives make a fifth, and an outage in one of them takes up to 5 MiB and some connections.
_KILLED: Final = Bounds(Bound(0.05, 5.0), Bound(0, 6), Bound(0, 6), (20.0, 60.0))
#: PostgreSQL has 25 processes, one for each connection. Four more after an outage, as the pools open them, are nothing
#: that grows; each takes 8 to 10 descriptors beside data files, and 2 MiB.
_DATABASE: Final = Bounds(Bound(0.05, 8.0), Bound(0, 40), Bound(0, 4), (20.0, 60.0))
ROLES: Final = {
    "spared worker": _SPARED, "other worker": _KILLED, "keeper": _KILLED, "Redis": _KILLED, "PostgreSQL": _DATABASE,
}  # fmt: skip

#: Looks of which a fifth is still two; calls of whose third there are five hundreds.
LOOKS, CALLS = 10, 1_500
#: Other work on the machine makes the slowest calls of a minute up to 1.6 times as slow as those of another; the
#: middle hardly moves.
P50, P99, SLOWEST = Bound(0.5, 5.0), Bound(1.0, 50.0), Bound(0.5, 25.0)


def fault(there_is: bool, text: str) -> bool:
    """Tells it. True where there is none."""
    if there_is:
        print(f"FAULT: {text}")
    return not there_is


def ends(values: Sequence[float]) -> tuple[float, float]:
    """Medians of the first and the last fifth."""
    fifth = max(1, len(values) // 5)
    return statistics.median(values[:fifth]), statistics.median(values[-fifth:])


def within_bounds(seen: Mapping[str, Iterable[Look]]) -> bool:
    """`seen`: the looks in quiet moments behind the warm-up."""
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
    """`quiet`: calls in quiet moments, when each was and how many milliseconds it took."""
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
    """The median of the slowest of each hundred in a row: as the p99, but where the machine stands still for some
    seconds that spoils one hundred and not all, so that the bound can be closer."""
    return statistics.median(max(took[at : at + 100]) for at in range(0, len(took) - 99, 100))

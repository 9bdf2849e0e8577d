"""Measures the cost that a second worker adds to a request, and how evenly connections are distributed.

    .venv/bin/python bench/workers.py [--rounds 5] [--seconds 6]

A Gatehouse with one worker and a Gatehouse with two workers are measured in turn, with 64 connections. Neither is bound
to a core.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from rig import install

# The Python of the project has psutil.
install.use_project_python()

import psutil  # noqa: E402
from rig.gateways import Gatehouse, Site  # noqa: E402
from rig.measure import Bench, Cores, Plan, note  # noqa: E402
from rig.upstream import Mock  # noqa: E402

OUT = Path(__file__).parent / "out"
CONNECTIONS = 64


class Two(Gatehouse):
    name = "two"
    workers = 2


def split(gateway: Gatehouse) -> list[int]:
    """Return the current number of connections of each worker."""
    results = []
    for pid in gateway.processes()["gateway"]:
        process = psutil.Process(pid)
        if process.cmdline()[0] == "gatehouse: gateway":
            wires = [
                connection
                for connection in process.net_connections(kind="tcp")
                if connection.laddr.port == gateway.port
            ]
            results.append(sum(wire.status == psutil.CONN_ESTABLISHED for wire in wires))
    return sorted(results)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6.0)
    arguments = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="gatehouse-bench-"))
    mock = Mock(OUT, core=0)
    site = Site(mock.url, work, OUT / "env", f"0-{(os.cpu_count() or 1) - 1}", install.find_gatehouse())
    bench = Bench(mock, Cores(gateway=1, load=0), Plan())
    both = [Gatehouse(site), Two(site)]
    cost: dict[str, list[float]] = {item.name: [] for item in both}
    splits: list[list[int]] = []
    try:
        for item in both:
            note(f"starting {item.name}")
            item.start()
        for turn in range(-1, arguments.rounds):
            for item in both if turn % 2 else reversed(both):
                seen: list[list[int]] = []
                run = bench.run(
                    item,
                    connections=CONNECTIONS,
                    seconds=arguments.seconds,
                    meanwhile=lambda at, seen=seen, item=item: at > 1 and not seen and seen.append(split(item)),
                )
                # The first round is not counted.
                if turn >= 0:
                    cost[item.name].append(run.cpu_us("gateway"))
                    if item.workers > 1:
                        splits += seen
    finally:
        for item in both:
            item.stop()
        mock.stop()
        shutil.rmtree(work, ignore_errors=True)
    one, two = (statistics.median(cost[item.name]) for item in both)
    print(f"CPU per request: one worker {one:.1f} us, two {two:.1f} us: {two / one:.3f} times (goal: at most 1.05)")
    print(f"rounds: {[[round(us, 1) for us in of] for of in cost.values()]}")
    shares = [min(of) / max(1, sum(of)) for of in splits]
    print(f"connections of the two workers: {splits}: the smaller has {min(shares):.0%} or more (goal: 45 %)")
    print("\n".join(bench.faults))
    return 0


if __name__ == "__main__":
    sys.exit(main())

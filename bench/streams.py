"""Measures the memory and the CPU time of a worker with thousands of open streams, each with one chunk per second.

    .venv/bin/python bench/streams.py [--streams 5000,10000] [--seconds 40]

A worker needs two descriptors for each stream. A number of streams that `ulimit -n` does not allow is not measured.
"""

import argparse
import resource
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from rig import install, processes
from rig.gateways import Gatehouse, Site
from rig.load import Route
from rig.measure import Bench, Cores, Plan, note
from rig.upstream import Mock

OUT = Path(__file__).parent / "out"
#: seconds within which all streams are started
BEGINNING = 15.0


class Crowded(Gatehouse):
    settings: Mapping[str, str] = {"PROVIDER_MAX_CONNECTIONS": "20000", "PROVIDER_MAX_CONNECTIONS_EACH": "20000"}


def main() -> int:
    install.use_project_python()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", default="5000,10000")
    parser.add_argument("--seconds", type=float, default=40.0)
    chosen = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    OUT.mkdir(exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="gatehouse-bench-"))
    mock = Mock(OUT, core=0)
    bench = Bench(mock, Cores(gateway=1, load=0), Plan())
    gateway = Crowded(Site(mock.url, work, OUT / "env", 1, install.find_gatehouse()))
    try:
        note("starting")
        gateway.start()
        idle = processes.memory_mib(gateway.processes()["gateway"])
        for streams in map(int, chosen.streams.split(",")):
            if most < 2 * streams + 500:
                print(f"{streams:,} streams: not measured: ulimit -n is {most:,}")
                continue
            crowd(bench, gateway, mock, streams, chosen.seconds, idle)
    finally:
        gateway.stop()
        mock.stop()
        shutil.rmtree(work, ignore_errors=True)
    print("\n".join(bench.faults))
    return 0


def crowd(bench: Bench, gateway: Gatehouse, mock: Mock, streams: int, seconds: float, idle: float) -> None:
    memory: list[float] = []
    looks: list[tuple[float, float]] = []

    def look(at: float) -> None:
        if at > BEGINNING:
            pids = gateway.processes()["gateway"]
            memory.append(processes.memory_mib(pids))
            looks.append((at, processes.cpu_seconds(pids)))

    mock.stats(reset_peak=True)
    bench.run(
        gateway, connections=streams, seconds=seconds, route=Route.SECONDS, stream=True, settle=False, meanwhile=look
    )
    (began, before), (ended, after) = looks[0], looks[-1]
    print(
        f"{mock.stats().streams_peak:,} of {streams:,} streams open: {max(memory):.0f} MiB (idle {idle:.0f};"
        f" goal: 512), {(after - before) / (ended - began):.2f} of a core (goal: 0.25)"
    )


if __name__ == "__main__":
    sys.exit(main())

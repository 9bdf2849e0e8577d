"""Measures the memory and the CPU time of a worker with thousands of open streams, each with one chunk per second.

    .venv/bin/python bench/streams.py [--streams 5000,10000] [--seconds 40]

Each stream needs two descriptors of the worker. The script skips numbers of streams for which `ulimit -n` is too low.
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
RAMP_UP_SECONDS = 15.0


class ManyConnections(Gatehouse):
    """A Gatehouse whose limit of connections to providers is above the number of streams."""

    settings: Mapping[str, str] = {"PROVIDER_MAX_CONNECTIONS": "20000", "PROVIDER_MAX_CONNECTIONS_EACH": "20000"}


def main() -> int:
    install.use_project_python()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", default="5000,10000")
    parser.add_argument("--seconds", type=float, default=40.0)
    arguments = parser.parse_args()
    _, max_descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max_descriptors, max_descriptors))
    OUT.mkdir(exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="gatehouse-bench-"))
    mock = Mock(OUT, core=0)
    bench = Bench(mock, Cores(gateway=1, load=0), Plan())
    gateway = ManyConnections(Site(mock.url, work, OUT / "env", 1, install.find_gatehouse()))
    try:
        note("starting")
        gateway.start()
        idle = processes.memory_mib(gateway.processes()["gateway"])
        for streams in map(int, arguments.streams.split(",")):
            needed_descriptors = 2 * streams + 500
            if max_descriptors < needed_descriptors:
                print(
                    f"{streams:,} streams are not measured: they need {needed_descriptors:,} descriptors,"
                    f" and `ulimit -n` allows {max_descriptors:,}"
                )
                continue
            measure_streams(bench, gateway, mock, streams, arguments.seconds, idle)
    finally:
        gateway.stop()
        mock.stop()
        shutil.rmtree(work, ignore_errors=True)
    print("\n".join(bench.faults))
    return 0


def measure_streams(
    bench: Bench, gateway: Gatehouse, mock: Mock, streams: int, seconds: float, idle_mib: float
) -> None:
    memory: list[float] = []
    cpu_samples: list[tuple[float, float]] = []

    def take_sample(at: float) -> None:
        if at > RAMP_UP_SECONDS:
            pids = gateway.processes()["gateway"]
            memory.append(processes.memory_mib(pids))
            cpu_samples.append((at, processes.cpu_seconds(pids)))

    mock.stats(reset_peak=True)
    bench.run(
        gateway,
        connections=streams,
        seconds=seconds,
        route=Route.CHUNK_PER_SECOND,
        stream=True,
        settle=False,
        meanwhile=take_sample,
    )
    (began, before), (ended, after) = cpu_samples[0], cpu_samples[-1]
    print(
        f"{mock.stats().streams_peak:,} of {streams:,} streams open: {max(memory):.0f} MiB (idle {idle_mib:.0f};"
        f" goal: 512), {(after - before) / (ended - began):.2f} of a core (goal: 0.25)"
    )


if __name__ == "__main__":
    sys.exit(main())

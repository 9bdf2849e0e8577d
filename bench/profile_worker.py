"""Profiles Gatehouse's worker under load with py-spy.

python bench/profile_worker.py [--stream] [--connections 64] [--seconds 15] [--role gateway|recording]

Writes a flame graph, and prints the functions in which the samples were taken. The exit status is the same as that of
compare.py.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from rig import install, processes
from rig.gateways import Gatehouse, Site
from rig.load import Route
from rig.measure import Bench, Cores, Plan, note
from rig.upstream import Mock

OUT = Path(__file__).parent / "out"
#: threads that wait for work, but count as busy for py-spy
IDLE = ("_worker (concurrent/futures/thread.py", "Condition.wait (threading.py")
#: share of samples above which a frame is not printed, because it contains almost everything, such as `main`
EVERYTHING = 0.97


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stream", action="store_true", help="streams of 50 chunks, not plain requests")
    parser.add_argument("--slow", action="store_true", help="a provider that takes 60 ms")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--role", choices=("gateway", "recording"), default="gateway")
    parser.add_argument("--native", action="store_true", help="frames of C extensions too (slower)")
    parser.add_argument("--lines", action="store_true", help="count lines, not functions")
    parser.add_argument("--top", type=int, default=40)
    parser.add_argument("--env", type=Path, default=OUT / "env", help="where py-spy is installed (bench/out/env)")
    parser.add_argument("--gatehouse", type=Path, help="the gatehouse command; default: beside this Python")
    parser.add_argument("--gateway-core", type=int, default=1)
    parser.add_argument("--load-core", type=int, default=0)
    return parser.parse_args()


def python_process(gateway: Gatehouse, role: str) -> int:
    """Return the id of the busiest Python process of a role."""
    pids = [pid for pid in gateway.processes()[role] if "postgres" not in processes.command_line(pid).split(" ")[0]]
    return max(pids, key=lambda pid: processes.cpu_seconds([pid]))


def package(frame: str) -> str:
    """Return the package of a frame: `gatehouse/engine` for `function (gatehouse/engine/run.py:98)`, or the name of a
    library, such as `aiohttp`."""
    parts = frame.rpartition("(")[2].split("/")
    return "/".join(parts[: 2 if parts[0] == "gatehouse" else 1]).partition(":")[0].rstrip(")")


def show(folded: Path, top: int) -> None:
    """Print the busiest packages and functions, without and with the functions that they call."""
    packages, self_counts, total_counts, total = Counter[str](), Counter[str](), Counter[str](), 0
    for line in folded.read_text().splitlines():
        stack, _, samples = line.rpartition(" ")
        frames = stack.split(";")
        if frames[-1].startswith(IDLE):
            continue
        total += int(samples)
        self_counts[frames[-1]] += int(samples)
        packages[package(frames[-1])] += int(samples)
        for frame in set(frames):
            total_counts[frame] += int(samples)
    for title, counts in (
        ("packages, by themselves", packages),
        ("functions, without callees", self_counts),
        ("functions, with callees", total_counts),
    ):
        print(f"\n{title}")
        listed = [(frame, count) for frame, count in counts.most_common() if count < EVERYTHING * total]
        for frame, count in listed[:top]:
            print(f"{count / max(1, total):6.1%}  {frame}")


def main() -> int:
    install.use_project_python()
    arguments = options()
    gatehouse = install.find_gatehouse(arguments.gatehouse)
    if lines := install.missing(["gatehouse"], gatehouse):
        note("The profile cannot be taken; missing:\n" + "\n".join(f"  {line}" for line in lines))
        return 2
    OUT.mkdir(exist_ok=True)
    spy = install.py_spy(arguments.env.absolute(), OUT / "install.log")
    cores = Cores(gateway=arguments.gateway_core, load=arguments.load_core)
    os.sched_setaffinity(0, {cores.load})
    work = Path(tempfile.mkdtemp(prefix="gatehouse-bench-"))
    mock = Mock(OUT, core=cores.load)
    site = Site(upstream=mock.url, work=work, env=arguments.env, core=cores.gateway, gatehouse=gatehouse)
    gateway = Gatehouse(site)
    folded = OUT / f"profile-{arguments.role}.txt"
    try:
        gateway.start()
        bench = Bench(mock, cores, Plan.quick())
        route = Route.SLOW if arguments.slow else Route.IMMEDIATE
        bench.run(
            gateway, connections=arguments.connections, seconds=2, stream=arguments.stream, route=route, settle=False
        )
        command = [str(spy), "record", "--pid", str(python_process(gateway, arguments.role)), "--format", "raw"]
        command += ["--output", str(folded), "--duration", str(round(arguments.seconds)), "--rate", "200"]
        command += (["--native"] if arguments.native else []) + ([] if arguments.lines else ["--function"])
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as recorder:
            run = bench.run(
                gateway,
                connections=arguments.connections,
                seconds=arguments.seconds + 2,
                stream=arguments.stream,
                route=route,
                settle=False,
            )
            _, text = recorder.communicate()
    finally:
        gateway.stop()
        mock.stop()
        shutil.rmtree(work, ignore_errors=True)
    if not folded.exists():
        note(f"py-spy wrote nothing: {text}")
        return 1
    show(folded, arguments.top)
    note(f"\n{run.result.rate:,.0f} requests/s, {run.cpu_us('gateway'):,.0f} us CPU per request, while py-spy runs")
    note(f"stacks for a flame graph (flamegraph.pl, speedscope.app): {folded}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

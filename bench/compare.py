"""Compares Gatehouse with other gateways on this machine, in one run (see README.md in this folder).

python bench/compare.py [--quick] [--only NAMES] [--env DIR]

Exit status: 0 if all gateways were measured, 1 if a gateway could not be measured, 2 if a tool is missing. The missing
tools are listed.
"""

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rig import gateways, install, published, report, sustained
from rig.gateways import Gateway
from rig.load import NoAnswer
from rig.measure import Bench, Cores, Plan, Sample, note
from rig.tls import TlsFront
from rig.upstream import Mock

HERE = Path(__file__).parent
OUT = HERE / "out"
#: share of the gateway's core that other processes may use before the report contains a warning
QUIET = 0.03


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one short round; figures are rough")
    parser.add_argument("--only", help=f"gateways, comma-separated, of {','.join(gateways.ALL)}")
    parser.add_argument("--env", type=Path, default=OUT / "env", help="where peers are installed (bench/out/env)")
    parser.add_argument("--gatehouse", type=Path, help="the gatehouse command; default: beside this Python")
    parser.add_argument("--publish", action="store_true", help="write docs/benchmarks.md and its pictures")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float, help="of one measurement")
    parser.add_argument("--soak", type=int, help="requests of the memory soak")
    parser.add_argument("--no-memory", action="store_true", help="speed only")
    parser.add_argument("--no-speed", action="store_true", help="memory only")
    parser.add_argument("--gateway-core", type=int, default=1)
    parser.add_argument("--load-core", type=int, default=0)
    return parser.parse_args()


def plan_of(arguments: argparse.Namespace) -> Plan:
    plan = Plan.quick() if arguments.quick else Plan()
    changes = {name: getattr(arguments, name) for name in ("rounds", "seconds", "soak") if getattr(arguments, name)}
    if "soak" in changes:
        changes["soak_early"] = changes["soak"] // 10
    return replace(plan, **changes)


class Comparison:
    """One run: the samples of the gateways, and remarks that a reader of the figures needs."""

    def __init__(self, bench: Bench, site: gateways.Site, names: list[str]) -> None:
        self._bench, self._site, self._names = bench, site, names
        self.speed: dict[str, list[Sample]] = {}
        self.memory: dict[str, list[Sample]] = {}
        self.remarks: list[str] = []
        self.failed: list[str] = []

    def _start(self, name: str) -> Gateway | None:
        gateway = gateways.ALL[name](self._site)
        note(f"starting {name}")
        try:
            gateway.start()
        except (NoAnswer, OSError) as error:
            gateway.stop()
            self.failed.append(name)
            self._remark(f"{name}: not measured: {error}")
            return None
        for remark in gateway.remarks:
            self._remark(f"{name}: {remark}")
        return gateway

    def _remark(self, text: str) -> None:
        if text not in self.remarks:
            note(text)
            self.remarks.append(text)

    def measure_speed(self) -> None:
        """Measure speed. All gateways run at the same time. Each round measures every gateway, and begins with a
        different one."""
        running: dict[str, Gateway] = {}
        try:
            # Gatehouse is started first. If it does not start, the others need not be started.
            for name in sorted(self._names, key=report.OURS.__ne__):
                if gateway := self._start(name):
                    running[name] = gateway
                elif name == report.OURS:
                    # Without Gatehouse, an hour of figures of the other gateways would be useless.
                    return
            order = [name for name in self._names if name in running]
            for turn in range(self._bench.plan.rounds):
                for name in order[turn % len(order) :] + order[: turn % len(order)]:
                    note(f"round {turn + 1} of {self._bench.plan.rounds}: {name}")
                    self.speed.setdefault(name, []).append(self._bench.speed(running[name]))
            ours = running.get("gatehouse")
            if isinstance(ours, gateways.Gatehouse):
                self.speed[ours.name][0] |= sustained.measure(self._bench, ours)
        finally:
            for gateway in running.values():
                gateway.stop()

    def measure_memory(self) -> None:
        """Measure memory. Each gateway runs alone and is newly started."""
        for name in self._names:
            if name in self.failed or name == "direct" or not (gateway := self._start(name)):
                continue
            try:
                note(f"memory: {name}")
                self.memory[name] = [self._bench.memory(gateway)]
            finally:
                gateway.stop()

    def _warnings(self, figures: report.Figures) -> list[str]:
        measured = [(name, own) for name, own in figures.items() if name != "direct"]
        loud = {name: own["foreign"] for name, own in measured if own.get("foreign", 0) > QUIET}
        if not loud:
            return []
        shares = ", ".join(f"{name} {share:.0%}" for name, share in loud.items())
        return [f"other processes used the gateway's core during these measurements: {shares}"]

    def figures(self) -> report.Figures:
        speed, memory = report.medians(self.speed), report.medians(self.memory)
        return {
            name: speed.get(name, {}) | memory.get(name, {}) for name in self._names if name in speed or name in memory
        }

    def print(self) -> None:
        figures = self.figures()
        parts = [report.table(figures), report.ratios(figures), "\n".join(g.line() for g in report.goals(figures))]
        parts += ["\n".join(f"- {line}" for line in [*self.remarks, *self._warnings(figures), *self._bench.faults])]
        print("\n" + "\n\n".join(part for part in parts if part))

    def save(self, path: Path) -> dict[str, Any]:
        """Write the measurements to a file, and return them."""
        machine = {
            "cpus": os.cpu_count(),
            "processor": _processor(),
            "system": platform.platform(),
            "python": platform.python_version(),
            "load_average": os.getloadavg(),
        }
        figures = self.figures()
        goals = [asdict(goal) | {"met": goal.met} for goal in report.goals(figures)]
        result = {
            "date": time.strftime("%Y-%m-%d"),
            "machine": machine,
            "versions": {
                "gatehouse": published.ours(self._site.gatehouse),
                "litellm": install.LITELLM,
                "portkey": install.PORTKEY,
                "tensorzero": install.TENSORZERO,
                "nginx": install.nginx(),
            },
            **self._bench.facts(),
            "remarks": [*self.remarks, *self._warnings(figures)],
            "medians": figures,
            "goals": goals,
            "rounds": {"speed": self.speed, "memory": self.memory},
        }
        path.write_text(json.dumps(result, indent=1) + "\n")
        return result


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def main() -> int:
    install.use_project_python()
    arguments = options()
    names = arguments.only.split(",") if arguments.only else list(gateways.ALL)
    if unknown := [name for name in names if name not in gateways.ALL]:
        note(f"no such gateway: {', '.join(unknown)}")
        return 2
    names = ["direct", *(name for name in gateways.ALL if name in names and name != "direct")]
    gatehouse = install.find_gatehouse(arguments.gatehouse)
    lines = install.missing(names, gatehouse)
    cores = Cores(gateway=arguments.gateway_core, load=arguments.load_core)
    if not {cores.gateway, cores.load} <= os.sched_getaffinity(0):
        lines.append(f"two cores, {cores.gateway} and {cores.load}: see --gateway-core and --load-core")
    if lines:
        note("The benchmark cannot run; missing:\n" + "\n".join(f"  {line}" for line in lines))
        return 2
    OUT.mkdir(exist_ok=True)
    env = arguments.env.absolute()
    try:
        install.peers(names, env, OUT / "install.log")
    except subprocess.CalledProcessError as error:
        note(f"a peer cannot be installed ({error}); see {OUT / 'install.log'}, or leave it out with --only")
        return 2
    # The benchmark itself does not run on the core of the gateways.
    os.sched_setaffinity(0, {cores.load})
    # On SIGTERM, the processes that were started must be stopped too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    work = Path(tempfile.mkdtemp(prefix="gatehouse-bench-"))
    mock = Mock(OUT, core=cores.load)
    over_tls = any(gateways.ALL[name].over_tls for name in names)
    front = TlsFront(work, mock.url, core=cores.load) if over_tls else None
    site = gateways.Site(mock.url, work, env, cores.gateway, gatehouse, beside=cores.load)
    if front is not None:
        site = replace(site, upstream_over_tls=front.url, authority=front.authority)
    comparison = Comparison(Bench(mock, cores, plan_of(arguments)), site, names)
    try:
        if not arguments.no_speed:
            comparison.measure_speed()
        if not arguments.no_memory and report.OURS not in comparison.failed:
            comparison.measure_memory()
    except KeyboardInterrupt:
        comparison.remarks.append("interrupted: these are the figures so far")
        comparison.failed.append("the rest")
    finally:
        if front is not None:
            front.stop()
        mock.stop()
        shutil.rmtree(work, ignore_errors=True)
    comparison.print()
    path = OUT / f"compare-{time.strftime('%Y%m%d-%H%M%S')}.json"
    result = comparison.save(path)
    shutil.copyfile(path, OUT / "compare.json")
    if arguments.publish:
        published.write(result, install.matplotlib(env, OUT / "install.log"))
        note(f"written: {published.PAGE}")
    note(f"all samples: {path}")
    return 1 if comparison.failed else 0


if __name__ == "__main__":
    sys.exit(main())

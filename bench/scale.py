"""Compares the cost of a request with 1,000 tenants, 100,000 API keys and 1,000,000 usage records, and with one of
each.

python bench/scale.py [--quick]

Two Gatehouses run at the same time, one with a single tenant and one with many, and are measured in turn. The exit
status is the same as that of compare.py.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from rig import crowd, install, postgres, processes, report
from rig.gateways import Gatehouse, Site
from rig.measure import Bench, Cores, Plan, Sample, note
from rig.upstream import Mock

OUT = Path(__file__).parent / "out"
#: number of keys that are used in turn in the third measurement
IN_TURN = 10_000


class ManyTenants(Gatehouse):
    """A Gatehouse with many tenants. Its callers are not administrators."""

    def environment(self) -> dict[str, str]:
        return super().environment() | {"RATE_LIMIT_REQUESTS_PER_MINUTE": "100000000"}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, one short round")
    parser.add_argument("--tenants", type=int, default=1_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--gatehouse", type=Path, help="the gatehouse command; default: beside this Python")
    parser.add_argument("--gateway-core", type=int, default=1)
    parser.add_argument("--load-core", type=int, default=0)
    return parser.parse_args()


def one(bench: Bench, gateway: Gatehouse, *, keys: int = 0) -> Sample:
    plan, crowd_keys = bench.plan, (crowd.KEY, keys) if keys else None
    # The policy of a tenant is compiled at its first request. This must not be part of the measurement.
    bench.run(gateway, connections=64, seconds=plan.warm_up * (3 if keys else 1), keys=crowd_keys)
    full = bench.run(gateway, connections=64, seconds=plan.seconds, keys=crowd_keys)
    single = bench.run(gateway, connections=1, seconds=plan.seconds, keys=crowd_keys)
    return Sample(
        cpu_us=full.cpu_us("gateway"),
        recording_cpu_us=full.cpu_us("recording"),
        requests_s=full.result.rate,
        p50_us=single.result.p50_us,
        p99_us=single.result.p99_us,
        memory_mib=processes.memory_mib(gateway.processes()["gateway"]),
        foreign=full.foreign,
    )


def measure(bench: Bench, site: Site, arguments: argparse.Namespace) -> dict[str, list[Sample]]:
    samples: dict[str, list[Sample]] = {"one tenant": [], "many tenants": [], "many tenants, keys in turn": []}
    alone, crowded = ManyTenants(site), ManyTenants(site)
    try:
        alone.start()
        crowded.start()
        note(
            f"{arguments.tenants:,} tenants, {arguments.keys:,} keys, {arguments.records:,} usage records are inserted"
        )
        with postgres.connect(crowded.home) as connection:
            crowd.settle_in(connection, tenants=arguments.tenants, keys=arguments.keys, records=arguments.records)
        crowded.restart()
        for turn in range(bench.plan.rounds):
            note(f"round {turn + 1} of {bench.plan.rounds}")
            samples["one tenant"].append(one(bench, alone))
            samples["many tenants"].append(one(bench, crowded))
            samples["many tenants, keys in turn"].append(one(bench, crowded, keys=min(IN_TURN, arguments.keys)))
    finally:
        alone.stop()
        crowded.stop()
    return samples


def main() -> int:
    install.use_project_python()
    arguments = options()
    gatehouse = install.find_gatehouse(arguments.gatehouse)
    if lines := install.missing(["gatehouse"], gatehouse):
        note("The benchmark cannot run; missing:\n" + "\n".join(f"  {line}" for line in lines))
        return 2
    plan = replace(Plan(), rounds=3)
    if arguments.quick:
        plan = Plan.quick()
        arguments.tenants, arguments.keys, arguments.records = (
            arguments.tenants // 10,
            arguments.keys // 10,
            arguments.records // 10,
        )
    OUT.mkdir(exist_ok=True)
    cores = Cores(gateway=arguments.gateway_core, load=arguments.load_core)
    os.sched_setaffinity(0, {cores.load})
    work = Path(tempfile.mkdtemp(prefix="gatehouse-bench-"))
    mock = Mock(OUT, core=cores.load)
    bench = Bench(mock, cores, plan)
    try:
        site = Site(upstream=mock.url, work=work, env=OUT / "env", core=cores.gateway, gatehouse=gatehouse)
        samples = measure(bench, site, arguments)
    finally:
        mock.stop()
        shutil.rmtree(work, ignore_errors=True)
    figures = report.medians(samples)
    print("\n" + report.plain_table(figures))
    factor = figures["many tenants"]["cpu_us"] / figures["one tenant"]["cpu_us"]
    print(f"\n{report.Goal('CPU per request with many tenants, ratio to one tenant', factor, 1.1).line()}")
    print("\n".join(f"- {line}" for line in bench.faults))
    path = OUT / "scale.json"
    rows = {"tenants": arguments.tenants, "keys": arguments.keys, "records": arguments.records}
    path.write_text(json.dumps({"rows": rows, **bench.facts(), "medians": figures, "rounds": samples}, indent=1) + "\n")
    note(f"all samples: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

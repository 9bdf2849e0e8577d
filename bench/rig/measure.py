"""The measurements. Each measurement runs the load on one gateway, and returns numbers."""

import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from rig import load, processes
from rig.gateways import Gateway
from rig.load import Route
from rig.processes import Usage
from rig.upstream import Mock

#: maps a metric to a number; a metric that could not be measured is left out
Sample = dict[str, float]


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Cores:
    gateway: int
    load: int


@dataclass(frozen=True)
class Plan:
    """The durations and sizes of the measurements. They are small with `--quick`."""

    rounds: int = 5
    seconds: float = 6.0
    warm_up: float = 2.0
    soak_early: int = 10_000
    soak: int = 100_000
    #: maximum duration of the soak; for a slow gateway, it then ends with fewer requests
    soak_seconds: float = 1800.0
    streams: int = 1000
    streams_seconds: float = 20.0
    sustained_seconds: float = 30.0

    @classmethod
    def quick(cls) -> "Plan":
        return cls(
            rounds=1,
            seconds=2.0,
            warm_up=1.0,
            soak_early=1_000,
            soak=5_000,
            soak_seconds=20.0,
            streams=200,
            streams_seconds=8.0,
            sustained_seconds=10.0,
        )


@dataclass
class Measured:
    """The result of one run on one gateway."""

    result: load.Result
    #: processor seconds by role
    cpu: dict[str, float]
    #: the share of time in which the gateway and its processes used their core; `foreign` is that of other processes
    busy: float
    foreign: float

    def cpu_us(self, role: str) -> float:
        return self.cpu.get(role, 0.0) / max(1, self.result.requests) * 1e6


@dataclass
class Bench:
    """Runs the load on gateways, all on the same cores, and collects faults."""

    mock: Mock
    cores: Cores
    plan: Plan
    faults: list[str] = field(default_factory=list)

    def run(
        self,
        gateway: Gateway,
        *,
        connections: int,
        seconds: float,
        route: Route = Route.IMMEDIATE,
        stream: bool = False,
        pause_ms: int | None = None,
        keys: tuple[str, int] | None = None,
        settle: bool = True,
        meanwhile: Callable[[float], None] | None = None,
    ) -> Measured:
        core_before = Usage.of(self.cores.gateway)
        before = self._cpu_since({}, gateway)
        result = load.run(
            gateway.target(route),
            connections=connections,
            seconds=seconds,
            core=self.cores.load,
            stream=stream,
            pause_ms=pause_ms,
            keys=keys,
            meanwhile=meanwhile,
        )
        during = self._cpu_since(before, gateway)
        core_after = Usage.of(self.cores.gateway)
        if settle:
            gateway.settle()
        # Recording continues after the load has ended, and is part of its cost.
        cpu = {**self._cpu_since(before, gateway), "gateway": during["gateway"]}
        if result.refused or result.broken:
            what = f"{gateway.name}, {connections} connections, {route.name}, stream={stream}"
            self.faults.append(f"{what}: {result.refused} refused, {result.broken} broken of {result.requests}")
        own = sum(seconds for role, seconds in during.items() if role not in gateway.apart)
        return Measured(
            result,
            cpu,
            busy=own / (core_after.at - core_before.at),
            foreign=core_after.foreign_share(core_before, own),
        )

    @staticmethod
    def _cpu_since(before: dict[str, float], gateway: Gateway) -> dict[str, float]:
        roles = gateway.processes().items()
        return {role: processes.cpu_seconds(pids) - before.get(role, 0.0) for role, pids in roles}

    def speed(self, gateway: Gateway) -> Sample:
        """Measure one round: throughput and CPU with 64 connections, latency with 1 and 16, and streams with 16."""
        plan, sample = self.plan, Sample()
        self.run(gateway, connections=64, seconds=plan.warm_up)
        full = self.run(gateway, connections=64, seconds=plan.seconds)
        sample["requests_s"] = full.result.rate
        sample["cpu_us"] = full.cpu_us("gateway")
        sample["busy"] = full.busy
        sample["foreign"] = full.foreign
        if "recording" in full.cpu:
            sample["recording_cpu_us"] = full.cpu_us("recording")
        for connections in (1, 16):
            run = self.run(gateway, connections=connections, seconds=plan.seconds)
            sample[f"p50_us_{connections}"] = run.result.p50_us
            sample[f"p99_us_{connections}"] = run.result.p99_us
        slow = self.run(gateway, connections=64, seconds=plan.seconds, route=Route.SLOW)
        sample["slow_cpu_us"] = slow.cpu_us("gateway")
        self.run(gateway, connections=16, seconds=plan.warm_up, stream=True)
        streams = self.run(gateway, connections=16, seconds=plan.seconds, stream=True)
        sample["streams_s"] = streams.result.rate
        sample["stream_cpu_us"] = streams.cpu_us("gateway")
        sample["stream_busy"] = streams.busy
        return sample

    def memory(self, gateway: Gateway) -> Sample:
        """Measure the memory of a newly started gateway: idle, during a soak, and with many open streams."""
        plan, sample = self.plan, Sample()

        def now() -> float:
            return processes.memory_mib(gateway.processes()["gateway"])

        gateway.settle()
        sample["idle_mib"] = now()
        begun = time.monotonic()
        early = self._soak(gateway, plan.soak_early, begun)
        sample["early_requests"], sample["early_mib"] = early, now()
        late = early + self._soak(gateway, plan.soak - early, begun)
        gateway.settle()
        sample["late_requests"], sample["late_mib"] = late, now()
        sample["growth"] = sample["late_mib"] / sample["early_mib"] - 1
        for role, pids in gateway.processes().items():
            if role != "gateway":
                sample[f"{role}_mib"] = processes.memory_mib(pids)
        peak = [0.0]
        self.mock.stats(reset_peak=True)
        self.run(
            gateway,
            connections=plan.streams,
            seconds=plan.streams_seconds,
            route=Route.GAPS,
            stream=True,
            meanwhile=lambda _: peak.append(now()),
        )
        sample["streams_mib"] = max(peak)
        sample["streams_open"] = self.mock.stats().streams_peak
        return sample

    def _soak(self, gateway: Gateway, target: int, begun: float) -> int:
        done, seconds = 0, 1.0
        while done < target and time.monotonic() - begun < self.plan.soak_seconds:
            result = self.run(gateway, connections=64, seconds=seconds, settle=False).result
            done += result.requests
            left_over = self.plan.soak_seconds - (time.monotonic() - begun)
            seconds = max(1.0, min((target - done) / max(1.0, result.rate), 30.0, left_over))
        return done

    def facts(self) -> dict[str, object]:
        return {"plan": asdict(self.plan), "cores": asdict(self.cores), "faults": self.faults}

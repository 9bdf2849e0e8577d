"""Figures for Prometheus, over all processes of a home.

Each process counts in plain dictionaries, and once a second writes what it has into a file of its own under
`GATEHOUSE_HOME/metrics`. Whoever is scraped adds the files up. The request path pays a look-up and an addition, a
tenth of what a shared memory map would cost it; a killed process loses the last second.

    requests = Counter(Family("service_x_total", "What it counts.", ("status",)))
    metrics = Metrics(directory, [requests])
    requests.add(("200",))
"""

import asyncio
import contextlib
import os
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

Labels: TypeAlias = tuple[str, ...]

#: Series that a family holds in a process at most; what would be one more is counted under `other`.
MAX_SERIES: Final = 2_000
#: Seconds after which a process that writes no more has no present state.
SILENT: Final = 10.0
#: Files of ended processes that are remembered as added up, so that no scrape sees them twice or not at all.
_REMEMBERED: Final = 64
_ENDED: Final = "ended.json"


class Family(msgspec.Struct, frozen=True):
    """`merge` says what several processes' values of a gauge make."""

    name: str
    help: str
    labels: Labels = ()
    merge: Literal["sum", "max"] = "sum"


class Counter:
    """Only goes up."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.values: dict[Labels, float] = {}

    def add(self, labels: Labels = (), by: float = 1.0) -> None:
        try:
            self.values[labels] += by
        except KeyError:
            labels = _within(self.values, labels)
            self.values[labels] = self.values.get(labels, 0.0) + by


class Series(msgspec.Struct):
    """One histogram's buckets (each without the smaller ones) and the sum of what was observed."""

    buckets: list[int]
    sum: float = 0.0


class Histogram:
    """`bounds` are the buckets' upper ends; above the last is one more."""

    def __init__(self, family: Family, bounds: tuple[float, ...]) -> None:
        self.family = family
        self.bounds = bounds
        self.series: dict[Labels, Series] = {}

    def observe(self, value: float, labels: Labels = ()) -> None:
        try:
            series = self.series[labels]
        except KeyError:
            empty = Series([0] * (len(self.bounds) + 1))
            series = self.series.setdefault(_within(self.series, labels), empty)
        series.sum += value
        series.buckets[bisect_left(self.bounds, value)] += 1


class Gauge:
    """A value of now, read from its sources when the process writes. A process without a source has none."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.sources: dict[Labels, Callable[[], float]] = {}

    def read(self, source: Callable[[], float], labels: Labels = ()) -> None:
        self.sources[labels] = source


Instrument: TypeAlias = Counter | Histogram | Gauge


class Shard(msgspec.Struct):
    """What one process has counted: family -> labels and value. `ended` names the files that are added up in it."""

    at: float = 0.0
    counters: dict[str, list[tuple[Labels, float]]] = {}
    gauges: dict[str, list[tuple[Labels, float]]] = {}
    histograms: dict[str, list[tuple[Labels, Series]]] = {}
    ended: list[str] = []


_decoder = msgspec.json.Decoder(Shard)


class Metrics:
    """One process's. `instruments` are all that there are, also those that other processes count in."""

    def __init__(self, directory: Path, instruments: Iterable[Instrument]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._instruments = {instrument.family.name: instrument for instrument in instruments}
        # The process's id may come back, in a container soon; what it counted must not.
        self._file = directory / f"{os.getpid()}-{os.urandom(4).hex()}.json"
        self._task: asyncio.Task[None] | None = None
        #: how late the loop ran in the last second: everything that waits for it waits so much longer
        self.loop_lag = 0.0
        #: of the loop at the end of that second; counting a thousand takes it 0.2 ms
        self.loop_tasks = 0

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep_writing(), name="metrics")

    async def stop(self) -> None:
        """What was counted stays. A process that has ended has no present state."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        for instrument in self._instruments.values():
            if isinstance(instrument, Gauge):
                instrument.sources.clear()
        self.write()

    def write(self) -> None:
        """Puts what was counted into this process's file. A full disk costs the figures, nothing else."""
        with contextlib.suppress(OSError):
            _replace(self._file, self._shard())

    def rendered(self) -> bytes:
        """Everything that all processes have counted, in Prometheus' text form."""
        return generate_latest(_Summed(self._instruments.values(), _added(self._directory)))

    async def _keep_writing(self) -> None:
        while True:
            lag = 0.0
            for _ in range(10):
                began = time.monotonic()
                await asyncio.sleep(0.1)
                lag = max(lag, time.monotonic() - began - 0.1)
            self.loop_lag = lag
            self.loop_tasks = len(asyncio.all_tasks())
            self.write()

    def _shard(self) -> Shard:
        shard = Shard(at=time.time())
        for name, instrument in self._instruments.items():
            if isinstance(instrument, Counter) and instrument.values:
                shard.counters[name] = list(instrument.values.items())
            elif isinstance(instrument, Histogram) and instrument.series:
                shard.histograms[name] = list(instrument.series.items())
            elif isinstance(instrument, Gauge) and instrument.sources:
                shard.gauges[name] = [(labels, float(source())) for labels, source in instrument.sources.items()]
        return shard


def clean(directory: Path) -> None:
    """Forgets what an earlier start has counted. For whoever starts the processes, before it does."""
    for path in directory.glob("*.json"):
        path.unlink(missing_ok=True)


def bury(directory: Path, pid: int) -> None:
    """Adds what an ended process has counted to what the others before it had, so that its file can go."""
    for path in directory.glob(f"{pid}-*.json"):
        shard = _read(path)
        if shard is not None:
            ended = _read(directory / _ENDED) or Shard()
            total = _sum([ended, shard])
            total.gauges, total.ended = {}, [*ended.ended, path.name][-_REMEMBERED:]
            _replace(directory / _ENDED, total)
        path.unlink(missing_ok=True)


class _Summed(Collector):
    def __init__(self, instruments: Iterable[Instrument], shard: Shard) -> None:
        self._instruments = instruments
        self._shard = shard

    def collect(self) -> Iterator[Metric]:
        for instrument in self._instruments:
            name, text, labels = instrument.family.name, instrument.family.help, instrument.family.labels
            if isinstance(instrument, Counter):
                counter = CounterMetricFamily(name, text, labels=labels)
                for values, count in self._shard.counters.get(name, ()):
                    counter.add_metric(values, count)
                yield counter
            elif isinstance(instrument, Gauge):
                gauge = GaugeMetricFamily(name, text, labels=labels)
                for values, value in _merged(self._shard.gauges.get(name, ()), instrument.family.merge):
                    gauge.add_metric(values, value)
                yield gauge
            else:
                histogram = HistogramMetricFamily(name, text, labels=labels)
                bounds = [*map(str, instrument.bounds), "+Inf"]
                for values, series in self._shard.histograms.get(name, ()):
                    cumulative = list(zip(bounds, accumulate(series.buckets), strict=True))
                    histogram.add_metric(values, cumulative, series.sum)
                yield histogram


def _added(directory: Path) -> Shard:
    # The ended ones last: a file that is added to them meanwhile is then known to be in them, read or not.
    shards = {path.name: _read(path) for path in sorted(directory.glob("[0-9]*.json"))}
    ended = _read(directory / _ENDED) or Shard()
    counted = [shard for name, shard in shards.items() if shard is not None and name not in ended.ended]
    oldest = time.time() - SILENT
    for shard in counted:
        if shard.at < oldest:
            shard.gauges = {}
    return _sum([ended, *counted])


def _sum(shards: Iterable[Shard]) -> Shard:
    """Counters and histograms added; gauges side by side."""
    counters: dict[str, dict[Labels, float]] = defaultdict(lambda: defaultdict(float))
    histograms: dict[str, dict[Labels, Series]] = defaultdict(dict)
    total = Shard()
    for shard in shards:
        for name, values in shard.counters.items():
            for labels, value in values:
                counters[name][labels] += value
        for name, found in shard.histograms.items():
            for labels, series in found:
                known = histograms[name].get(labels)
                # A version with other buckets may have written it: the newer one stands.
                if known is None or len(known.buckets) != len(series.buckets):
                    histograms[name][labels] = series
                else:
                    histograms[name][labels] = _plus(known, series)
        for name, values in shard.gauges.items():
            total.gauges.setdefault(name, []).extend(values)
    total.counters = {name: list(values.items()) for name, values in counters.items()}
    total.histograms = {name: list(found.items()) for name, found in histograms.items()}
    return total


def _plus(one: Series, other: Series) -> Series:
    return Series([a + b for a, b in zip(one.buckets, other.buckets, strict=True)], one.sum + other.sum)


def _merged(values: Iterable[tuple[Labels, float]], how: Literal["sum", "max"]) -> Iterable[tuple[Labels, float]]:
    merged: dict[Labels, float] = {}
    for labels, value in values:
        known = merged.get(labels)
        merged[labels] = value if known is None else known + value if how == "sum" else max(known, value)
    return merged.items()


def _within(held: dict[Labels, float] | dict[Labels, Series], labels: Labels) -> Labels:
    """The labels, or `other` for each where the family is full: nobody may fill the memory by inventing values."""
    return labels if len(held) < MAX_SERIES else ("other",) * len(labels)


def _read(path: Path) -> Shard | None:
    try:
        return _decoder.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError):
        return None


def _replace(path: Path, shard: Shard) -> None:
    """In one step: a reader finds the old file or the new one."""
    new = path.with_suffix(".new")
    new.write_bytes(msgspec.json.encode(shard))
    new.replace(path)

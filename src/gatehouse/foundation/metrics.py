"""Prometheus metrics over all processes of a home.

Each process counts in plain dictionaries and writes them once a second to its own file under `GATEHOUSE_HOME/metrics`.
The process that is scraped sums the files. On the request path this costs one look-up and one addition, a tenth of the
cost of a shared memory map. If a process is killed, the counts of its last second are lost.

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

#: maximum number of series of a family in a process; further label values are counted as `other`
MAX_SERIES: Final = 2_000
#: the gauges of a process are ignored if the process has not written its file for this time
STALE_SECONDS: Final = 10.0
#: The file of ended processes lists the names of the files that it includes, so that a scrape counts each of them once.
#: It lists at most this number of names.
_MAX_REMEMBERED_FILES: Final = 64
_ENDED_FILE: Final = "ended.json"


class Family(msgspec.Struct, frozen=True):
    """A metric family. `merge` determines how the values of a gauge from several processes are combined."""

    name: str
    help: str
    labels: Labels = ()
    merge: Literal["sum", "max"] = "sum"


class Counter:
    """A metric that only increases."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.values: dict[Labels, float] = {}

    def add(self, labels: Labels = (), by: float = 1.0) -> None:
        try:
            self.values[labels] += by
        except KeyError:
            labels = _bounded(self.values, labels)
            self.values[labels] = self.values.get(labels, 0.0) + by


class Series(msgspec.Struct):
    """A histogram's buckets (not cumulative) and the sum of its observations."""

    buckets: list[int]
    sum: float = 0.0


class Histogram:
    """A metric that counts observations in buckets. `bounds` are the upper bounds of the buckets. One more bucket
    counts the observations above the last bound."""

    def __init__(self, family: Family, bounds: tuple[float, ...]) -> None:
        self.family = family
        self.bounds = bounds
        self.series: dict[Labels, Series] = {}

    def observe(self, value: float, labels: Labels = ()) -> None:
        try:
            series = self.series[labels]
        except KeyError:
            empty = Series([0] * (len(self.bounds) + 1))
            series = self.series.setdefault(_bounded(self.series, labels), empty)
        series.sum += value
        series.buckets[bisect_left(self.bounds, value)] += 1


class Gauge:
    """A metric with a current value. The value is read from its sources when the process writes its file. A process
    without a source exports no value."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.sources: dict[Labels, Callable[[], float]] = {}

    def read(self, source: Callable[[], float], labels: Labels = ()) -> None:
        """Sets the function that returns the value for these labels."""
        self.sources[labels] = source


Instrument: TypeAlias = Counter | Histogram | Gauge


class Shard(msgspec.Struct):
    """The content of one file: the values of one process by family, or the sum of ended processes. `at` is the Unix
    time of the write. `ended` lists the names of the deleted files whose values the sum includes."""

    at: float = 0.0
    counters: dict[str, list[tuple[Labels, float]]] = {}
    gauges: dict[str, list[tuple[Labels, float]]] = {}
    histograms: dict[str, list[tuple[Labels, Series]]] = {}
    ended: list[str] = []


_decoder = msgspec.json.Decoder(Shard)


class Metrics:
    """The metrics of one process. `instruments` contains all metrics, including those that only other processes
    count."""

    def __init__(self, directory: Path, instruments: Iterable[Instrument]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._instruments = {instrument.family.name: instrument for instrument in instruments}
        # Process ids are reused, in a container after a short time. The random part makes the file's name unique.
        self._file = directory / f"{os.getpid()}-{os.urandom(4).hex()}.json"
        self._task: asyncio.Task[None] | None = None
        #: maximum delay of the event loop in the last second, in seconds
        self.loop_lag = 0.0
        #: number of the loop's tasks at the end of the last second; counting a thousand tasks takes 0.2 ms
        self.loop_tasks = 0

    def start(self) -> None:
        self._task = asyncio.create_task(self._write_periodically(), name="metrics")

    async def stop(self) -> None:
        """Writes the counts for the last time, without gauges, because an ended process has no current values."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        for instrument in self._instruments.values():
            if isinstance(instrument, Gauge):
                instrument.sources.clear()
        self.write()

    def write(self) -> None:
        """Writes the metrics to the file of this process. If the disk is full, metrics are lost without an error."""
        with contextlib.suppress(OSError):
            _replace(self._file, self._shard())

    def rendered(self) -> bytes:
        """Returns the metrics of all processes in Prometheus' text format."""
        return generate_latest(_ShardCollector(self._instruments.values(), _total(self._directory)))

    async def _write_periodically(self) -> None:
        while True:
            lag = 0.0
            for _ in range(10):
                started = time.monotonic()
                await asyncio.sleep(0.1)
                lag = max(lag, time.monotonic() - started - 0.1)
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
    """Deletes the metrics of an earlier run. Call it before the processes are started."""
    for path in directory.glob("*.json"):
        path.unlink(missing_ok=True)


def bury(directory: Path, pid: int) -> None:
    """Adds the counts of an ended process to the file of ended processes, and deletes the file of the process."""
    for path in directory.glob(f"{pid}-*.json"):
        shard = _read(path)
        if shard is not None:
            ended = _read(directory / _ENDED_FILE) or Shard()
            total = _sum([ended, shard])
            total.gauges, total.ended = {}, [*ended.ended, path.name][-_MAX_REMEMBERED_FILES:]
            _replace(directory / _ENDED_FILE, total)
        path.unlink(missing_ok=True)


class _ShardCollector(Collector):
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


def _total(directory: Path) -> Shard:
    """Returns the sum of the metrics of all processes."""
    # Read the file of ended processes last. If a process ends meanwhile, that file lists its name, so that the process
    # is not counted twice.
    shards = {path.name: _read(path) for path in sorted(directory.glob("[0-9]*.json"))}
    ended = _read(directory / _ENDED_FILE) or Shard()
    counted = [shard for name, shard in shards.items() if shard is not None and name not in ended.ended]
    oldest = time.time() - STALE_SECONDS
    for shard in counted:
        if shard.at < oldest:
            shard.gauges = {}
    return _sum([ended, *counted])


def _sum(shards: Iterable[Shard]) -> Shard:
    """Returns the sums of counters and histograms, and the gauges of all shards."""
    counters: dict[str, dict[Labels, float]] = defaultdict(lambda: defaultdict(float))
    histograms: dict[str, dict[Labels, Series]] = defaultdict(dict)
    total = Shard()
    for shard in shards:
        for name, values in shard.counters.items():
            for labels, value in values:
                counters[name][labels] += value
        for name, histogram in shard.histograms.items():
            for labels, series in histogram:
                sum_so_far = histograms[name].get(labels)
                # Another version may have written other buckets. Then the later shard replaces the sum.
                if sum_so_far is None or len(sum_so_far.buckets) != len(series.buckets):
                    histograms[name][labels] = series
                else:
                    histograms[name][labels] = _plus(sum_so_far, series)
        for name, values in shard.gauges.items():
            total.gauges.setdefault(name, []).extend(values)
    total.counters = {name: list(values.items()) for name, values in counters.items()}
    total.histograms = {name: list(series.items()) for name, series in histograms.items()}
    return total


def _plus(one: Series, other: Series) -> Series:
    return Series([a + b for a, b in zip(one.buckets, other.buckets, strict=True)], one.sum + other.sum)


def _merged(values: Iterable[tuple[Labels, float]], how: Literal["sum", "max"]) -> Iterable[tuple[Labels, float]]:
    merged: dict[Labels, float] = {}
    for labels, value in values:
        previous = merged.get(labels)
        merged[labels] = value if previous is None else previous + value if how == "sum" else max(previous, value)
    return merged.items()


def _bounded(series: dict[Labels, float] | dict[Labels, Series], labels: Labels) -> Labels:
    """Returns the labels, or `other` in place of each label if the family has `MAX_SERIES` series. So callers that
    invent label values cannot fill the memory."""
    return labels if len(series) < MAX_SERIES else ("other",) * len(labels)


def _read(path: Path) -> Shard | None:
    try:
        return _decoder.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError):
        return None


def _replace(path: Path, shard: Shard) -> None:
    """Replaces the file atomically, so that a reader reads either the old content or the new content."""
    new = path.with_suffix(".new")
    new.write_bytes(msgspec.json.encode(shard))
    new.replace(path)

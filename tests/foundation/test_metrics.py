"""The metrics of several processes are combined."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatehouse.foundation import metrics
from gatehouse.foundation.metrics import MAX_SERIES, Counter, Family, Gauge, Histogram, Metrics


class Process:
    """The metrics of one process. All instances are in the process of the tests, but have different files."""

    def __init__(self, directory: Path) -> None:
        self.requests = Counter(Family("t_requests_total", "Requests.", ("status",)))
        self.seconds = Histogram(Family("t_seconds", "Durations."), (0.1, 1.0))
        self.busy = Gauge(Family("t_busy", "Calls."))
        self.worst = Gauge(Family("t_worst", "Lag.", merge="max"))
        self.metrics = Metrics(directory, [self.requests, self.seconds, self.busy, self.worst])


def metric_values(process: Process) -> dict[str, float]:
    lines = process.metrics.rendered().decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def two(directory: Path) -> Iterator[Process]:
    for status, seconds, lag in (("200", 0.05, 1.0), ("200", 0.5, 3.0)):
        process = Process(directory)
        process.requests.add((status,))
        process.seconds.observe(seconds)
        process.busy.read(lambda: 2.0)
        process.worst.read(lambda lag=lag: lag)
        process.metrics.write()
        yield process


def test_counters_and_histograms_are_summed_and_gauges_are_merged(tmp_path: Path) -> None:
    process, _ = two(tmp_path)
    assert metric_values(process) == {
        't_requests_total{status="200"}': 2.0,
        't_seconds_bucket{le="0.1"}': 1.0,
        't_seconds_bucket{le="1.0"}': 2.0,
        't_seconds_bucket{le="+Inf"}': 2.0,
        "t_seconds_count": 2.0,
        "t_seconds_sum": 0.55,
        "t_busy": 4.0,
        "t_worst": 3.0,
    }


def test_a_family_without_a_value_is_still_named_and_explained(tmp_path: Path) -> None:
    text = Process(tmp_path).metrics.rendered().decode()
    assert "# HELP t_requests_total Requests.\n# TYPE t_requests_total counter\n" in text
    assert "# TYPE t_seconds histogram\n" in text


def test_the_counts_of_an_ended_process_remain_and_its_gauges_do_not(tmp_path: Path) -> None:
    assert len(list(two(tmp_path))) == 2
    metrics.bury(tmp_path, os.getpid())
    assert [path.name for path in tmp_path.iterdir()] == ["ended.json"]
    next(two(tmp_path))
    figures = metric_values(Process(tmp_path))
    assert figures['t_requests_total{status="200"}'] == 3.0
    assert figures["t_seconds_sum"] == pytest.approx(0.6)
    assert figures["t_busy"] == 2.0


def test_a_file_of_a_process_that_ends_during_a_scrape_is_counted_once(tmp_path: Path) -> None:
    process, _ = two(tmp_path)
    contents = {path: path.read_bytes() for path in tmp_path.glob("*-*.json")}
    metrics.bury(tmp_path, os.getpid())
    for path, content in contents.items():
        path.write_bytes(content)
    assert metric_values(process)['t_requests_total{status="200"}'] == 2.0


def test_a_dead_process_exports_no_gauges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process, _ = two(tmp_path)
    monkeypatch.setattr(metrics.time, "time", lambda now=metrics.time.time(): now + metrics.STALE_SECONDS + 1)
    assert "t_busy" not in metric_values(process)
    assert metric_values(process)['t_requests_total{status="200"}'] == 2.0


def test_the_number_of_series_is_limited(tmp_path: Path) -> None:
    process = Process(tmp_path)
    for number in range(MAX_SERIES + 50):
        process.requests.add((str(number),))
    assert len(process.requests.values) == MAX_SERIES + 1
    assert process.requests.values["other",] == 50


def test_a_start_deletes_the_metrics_of_the_previous_run(tmp_path: Path) -> None:
    process, _ = two(tmp_path)
    metrics.clean(tmp_path)
    assert metric_values(process) == {}


def test_a_damaged_file_is_ignored(tmp_path: Path) -> None:
    process, _ = two(tmp_path)
    (tmp_path / "1-x.json").write_text("{")
    assert metric_values(process)['t_requests_total{status="200"}'] == 2.0

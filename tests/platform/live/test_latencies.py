"""Latencies of models, which workers exchange through the database."""

import pytest
from tests.support.platform import RunningPlatform

from gatehouse.engine.measures.latency import Latencies
from gatehouse.foundation.ids import new_id
from gatehouse.platform.live.latencies import SharedLatencies

MODEL = new_id()


class Worker:
    def __init__(self, platform: RunningPlatform) -> None:
        self.latencies = Latencies()
        self.shared = SharedLatencies(platform.host.database, self.latencies, new_id())

    @property
    def median(self) -> float | None:
        return self.latencies.medians(stream=False).get(MODEL.int)


@pytest.fixture
def workers(platform: RunningPlatform) -> tuple[Worker, Worker]:
    platform.sql("DELETE FROM latency_reports RETURNING id")
    return Worker(platform), Worker(platform)


async def test_a_worker_uses_latencies_that_another_worker_measured(workers: tuple[Worker, Worker]) -> None:
    one, two = workers
    one.latencies.answered(MODEL, 250, stream=False)
    await one.shared.exchange()
    await two.shared.exchange()
    assert two.median == pytest.approx(250, rel=0.05)


async def test_a_report_that_is_read_repeatedly_counts_once(workers: tuple[Worker, Worker]) -> None:
    one, two = workers
    one.latencies.answered(MODEL, 1_000, stream=False)
    await one.shared.exchange()
    for _ in range(3):
        await two.shared.exchange()
    two.latencies.answered(MODEL, 10, stream=False)
    two.latencies.answered(MODEL, 10, stream=False)
    await two.shared.exchange()
    assert two.median == pytest.approx(10, rel=0.05)


async def test_a_new_worker_starts_with_the_others_latencies_of_the_last_minutes(
    platform: RunningPlatform, workers: tuple[Worker, Worker]
) -> None:
    one, two = workers
    one.latencies.answered(MODEL, 250, stream=False)
    await one.shared.exchange()
    platform.sql("UPDATE latency_reports SET at = at - interval '4 minutes' RETURNING id")
    await two.shared.start()
    await two.shared.stop()
    assert two.median == pytest.approx(250, rel=0.05)


async def test_unreadable_reports_are_ignored(platform: RunningPlatform, workers: tuple[Worker, Worker]) -> None:
    one, two = workers
    platform.sql("INSERT INTO latency_reports (node, body) VALUES (%s, %s) RETURNING id", [new_id(), b"of tomorrow"])
    one.latencies.answered(MODEL, 250, stream=False)
    await one.shared.exchange()
    await two.shared.exchange()
    assert two.median == pytest.approx(250, rel=0.05)

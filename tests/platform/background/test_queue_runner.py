"""Running the waiting work of a queue."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import structlog.testing

from gatehouse.platform.background.queue_runner import QueueRunner

A, B = uuid4(), uuid4()


class Piece(NamedTuple):
    tenant_id: UUID
    number: int


class Runner(QueueRunner[Piece]):
    """Its queue is a list. The work of a piece waits for `released`, and fails for negative numbers."""

    max_concurrent = 4
    max_concurrent_per_tenant = 2
    claimed_per_query = 2
    poll_interval_seconds = 0.0
    stop_timeout_seconds = 0.01
    failure_event = "queue.failed"

    def __init__(self, waiting: list[Piece]) -> None:
        tools: Any = None
        super().__init__(tools)
        self.waiting = waiting
        self.released = asyncio.Event()
        self.done: list[int] = []
        self.returned_numbers: list[int] = []

    async def claim(self, limit: int, busy_tenants: Sequence[UUID]) -> Sequence[Piece]:
        claimed = [piece for piece in self.waiting if piece.tenant_id not in busy_tenants][:limit]
        self.waiting = [piece for piece in self.waiting if piece not in claimed]
        return claimed

    async def work(self, piece: Piece) -> None:
        await self.released.wait()
        if piece.number < 0:
            raise ValueError
        self.done.append(piece.number)

    def log_fields(self, piece: Piece) -> Mapping[str, str]:
        return {"number": str(piece.number)}

    async def give_back(self, interrupted: Sequence[Piece]) -> None:
        self.returned_numbers += [piece.number for piece in interrupted]


async def test_an_organization_does_not_occupy_all_places() -> None:
    runner = Runner([*(Piece(A, number) for number in range(4)), Piece(B, 9)])
    assert [await runner.take() for _ in range(3)] == [2, 1, 0]
    runner.released.set()
    await runner.drain()
    assert runner.done == [0, 1, 9]
    assert await runner.take() == 2


async def test_a_process_has_a_maximum() -> None:
    runner = Runner([Piece(uuid4(), number) for number in range(5)])
    assert [await runner.take() for _ in range(3)] == [2, 2, 0]
    runner.released.set()
    await runner.drain()
    assert await runner.take() == 1


async def test_an_error_is_logged_and_ends_no_other_work() -> None:
    runner = Runner([Piece(A, -1), Piece(A, 1)])
    runner.released.set()
    with structlog.testing.capture_logs() as logged:
        await runner.take()
        await runner.drain()
    assert runner.done == [1]
    assert [(entry["event"], entry["number"], entry["reason"]) for entry in logged] == [
        ("queue.failed", "-1", "ValueError")
    ]


async def test_work_in_progress_is_given_back_at_the_end() -> None:
    runner = Runner([Piece(A, 1), Piece(B, 2)])
    running = asyncio.create_task(runner.run())
    while len(runner.running) < 2:
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert runner.is_stopping
    assert runner.returned_numbers == [1, 2]
    assert not runner.running

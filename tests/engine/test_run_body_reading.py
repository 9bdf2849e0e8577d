"""The engine reads the body of a request only after it has accepted the caller: authenticated, from an allowed address,
within the rate limit, with no maintenance and no full journal."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.engine import EngineHarness, completion

from gatehouse.engine.ports import Maintenance
from gatehouse.foundation.errors import ClientLeft, PayloadTooLarge

CHAT: dict[str, Any] = {"model": "one/m", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture
def harness() -> EngineHarness:
    harness = EngineHarness(RATE_LIMIT_REQUESTS_PER_MINUTE="1")
    harness.serve("one", "m")
    harness.outbound.script = [(200, [completion("Hello")])]
    return harness


class Body:
    """A body that records whether it was read."""

    def __init__(self, outcome: bytes | Exception) -> None:
        self.read_count = 0
        self._outcome = outcome

    async def read(self) -> bytes:
        self.read_count += 1
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


async def test_the_engine_reads_the_body_once(harness: EngineHarness) -> None:
    body = Body(json.dumps(CHAT).encode())
    answer = await harness.engine.answer(harness.request(b""), body.read)
    assert (answer.status, body.read_count) == (200, 1)
    assert harness.outcomes[0].requested_model == "one/m"


REFUSED: list[tuple[Callable[[EngineHarness], object], int, int]] = [
    (lambda harness: setattr(harness, "caller", None), 401, 0),
    (lambda harness: setattr(harness, "in_maintenance", Maintenance("", 1)), 503, 0),
    (lambda harness: setattr(harness, "allowlist", ("198.51.100.0/24",)), 403, 1),
    (lambda harness: setattr(harness, "journal_full", True), 503, 1),
]


@pytest.mark.parametrize(("refuse", "status", "records"), REFUSED)
async def test_the_body_of_a_request_that_is_refused_is_never_read(
    harness: EngineHarness, refuse: Callable[[EngineHarness], object], status: int, records: int
) -> None:
    refuse(harness)
    body = Body(b"{")
    answer = await harness.engine.answer(harness.request(b""), body.read)
    assert (answer.status, body.read_count, len(harness.outcomes)) == (status, 0, records)


async def test_the_body_of_a_request_over_its_limit_is_never_read(harness: EngineHarness) -> None:
    assert (await harness.engine.answer(harness.request(CHAT))).status == 200
    body = Body(b"{")
    assert (await harness.engine.answer(harness.request(b""), body.read)).status == 429
    assert (body.read_count, len(harness.outcomes)) == (0, 2)


async def test_a_body_that_cannot_be_read_is_refused_and_recorded(harness: EngineHarness) -> None:
    answer = await harness.engine.answer(harness.request(b""), Body(PayloadTooLarge()).read)
    assert answer.status == 413
    (outcome,) = harness.outcomes
    assert (outcome.outcome, outcome.status, outcome.error_code) == ("refused", 413, "request_too_large")


async def test_a_disconnect_while_the_body_arrives_is_recorded_once(harness: EngineHarness) -> None:
    with pytest.raises(ClientLeft):
        await harness.engine.answer(harness.request(b""), Body(ClientLeft()).read)
    await asyncio.sleep(0)
    (outcome,) = harness.outcomes
    assert (outcome.outcome, outcome.status, outcome.requested_model) == ("cancelled", 499, None)


async def test_maintenance_that_begins_while_the_body_arrives_refuses_the_request(harness: EngineHarness) -> None:
    async def read() -> bytes:
        harness.in_maintenance = Maintenance("Back at noon.", 300)
        return json.dumps(CHAT).encode()

    answer = await harness.engine.answer(harness.request(b""), read)
    assert (answer.status, json.loads(answer.body)["error"]) == (503, "maintenance_mode")
    assert harness.outbound.sent == []
    assert len(harness.outcomes) == 1

"""When a request's body is read: once its caller is known and has room, never before."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.engine import HeldEngine, completion

from gatehouse.engine.ports import Maintenance
from gatehouse.foundation.errors import ClientLeft, PayloadTooLarge

CHAT: dict[str, Any] = {"model": "one/m", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture
def held() -> HeldEngine:
    held = HeldEngine(RATE_LIMIT_REQUESTS_PER_MINUTE="1")
    held.serve("one", "m")
    held.outbound.script = [(200, [completion("Hello")])]
    return held


class Body:
    """Notes whether it was asked for."""

    def __init__(self, outcome: bytes | Exception) -> None:
        self.asked = 0
        self._outcome = outcome

    async def read(self) -> bytes:
        self.asked += 1
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


async def test_the_body_that_is_read_is_what_is_asked_for(held: HeldEngine) -> None:
    body = Body(json.dumps(CHAT).encode())
    answer = await held.engine.answer(held.request(b""), body.read)
    assert (answer.status, body.asked) == (200, 1)
    assert held.outcomes[0].requested_model == "one/m"


REFUSED: list[tuple[Callable[[HeldEngine], object], int, int]] = [
    (lambda held: setattr(held, "caller", None), 401, 0),
    (lambda held: setattr(held, "in_maintenance", Maintenance("", 1)), 503, 0),
    (lambda held: setattr(held, "allowlist", ("198.51.100.0/24",)), 403, 1),
    (lambda held: setattr(held, "journal_full", True), 503, 1),
]


@pytest.mark.parametrize(("refuse", "status", "records"), REFUSED)
async def test_the_body_of_a_request_that_is_refused_is_never_read(
    held: HeldEngine, refuse: Callable[[HeldEngine], object], status: int, records: int
) -> None:
    refuse(held)
    body = Body(b"{")
    answer = await held.engine.answer(held.request(b""), body.read)
    assert (answer.status, body.asked, len(held.outcomes)) == (status, 0, records)


async def test_nor_is_that_of_a_request_over_its_limit(held: HeldEngine) -> None:
    assert (await held.engine.answer(held.request(CHAT))).status == 200
    body = Body(b"{")
    assert (await held.engine.answer(held.request(b""), body.read)).status == 429
    assert (body.asked, len(held.outcomes)) == (0, 2)


async def test_a_body_that_cannot_be_taken_is_refused_and_recorded(held: HeldEngine) -> None:
    answer = await held.engine.answer(held.request(b""), Body(PayloadTooLarge()).read)
    assert answer.status == 413
    (outcome,) = held.outcomes
    assert (outcome.outcome, outcome.status, outcome.error_code) == ("refused", 413, "request_too_large")


async def test_a_client_that_leaves_in_the_middle_of_its_body_is_recorded_once(held: HeldEngine) -> None:
    with pytest.raises(ClientLeft):
        await held.engine.answer(held.request(b""), Body(ClientLeft()).read)
    await asyncio.sleep(0)
    (outcome,) = held.outcomes
    assert (outcome.outcome, outcome.status, outcome.requested_model) == ("cancelled", 499, None)


async def test_what_closes_while_the_body_is_on_its_way_is_closed_to_it(held: HeldEngine) -> None:
    async def read() -> bytes:
        held.in_maintenance = Maintenance("Back at noon.", 300)
        return json.dumps(CHAT).encode()

    answer = await held.engine.answer(held.request(b""), read)
    assert (answer.status, json.loads(answer.body)["error"]) == (503, "maintenance_mode")
    assert held.outbound.sent == []
    assert len(held.outcomes) == 1

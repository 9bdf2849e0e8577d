"""The time limit for a chain of candidates, and the error for a failed chain."""

import asyncio
import json
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from tests.support.engine import EngineHarness, completion, events

from gatehouse.engine.exchange import Answer
from gatehouse.foundation.clock import utc_now
from gatehouse.foundation.outbound import NoConnectionFree

#: Number of consecutive failures that open a circuit, by the default settings.
CIRCUIT_FAILURES = 5

#: Less than a provider's default timeout (30 s), so that the test fails if the gateway does not apply the deadline.
MAX_WAIT_SECONDS = 20

CHAT: dict[str, Any] = {
    "model": "one/m", "fallbacks": ["two/n"], "messages": [{"role": "user", "content": "Hi"}],
}  # fmt: skip
STREAM = {**CHAT, "stream": True}


def engine(**settings: str) -> EngineHarness:
    harness = EngineHarness(RATE_LIMIT_REQUESTS_PER_MINUTE="1000", **settings)
    harness.serve("one", "m")
    harness.serve("two", "n")
    return harness


@pytest.fixture
def harness() -> EngineHarness:
    return engine()


def error(answer: Answer) -> dict[str, Any]:
    error_body: dict[str, Any] = json.loads(answer.body)["error"]
    return error_body


async def text(answer: Answer) -> str:
    assert answer.stream is not None
    return b"".join([block async for block in answer.stream]).decode()


@pytest.mark.parametrize(
    ("place", "body"), [("connecting", CHAT), ("in touch", CHAT), ("reading", CHAT), ("chunk 0", STREAM)]
)
async def test_a_request_ends_at_its_deadline_at_every_point_of_waiting(place: str, body: dict[str, Any]) -> None:
    harness = engine(REQUEST_DEADLINE_SECONDS="0.05")
    harness.stop.at = place
    harness.outbound.script = [(200, [completion()]), (200, [completion()])]
    answer = await asyncio.wait_for(harness.engine.answer(harness.request(body)), MAX_WAIT_SECONDS)
    assert (answer.status, error(answer)["code"]) == (504, "provider_timeout")
    assert error(answer)["attempts"] == [{"provider": "one", "model": "m", "status": None, "reason": "deadline"}]
    (outcome,) = harness.outcomes
    assert (outcome.outcome, outcome.status, outcome.error_code) == ("error", 504, "provider_timeout")
    assert all(reply.closed for reply in harness.outbound.replies)


async def test_retries_and_fallbacks_share_one_deadline() -> None:
    """A hundred retries with doubling delays would take years."""
    harness = engine(REQUEST_DEADLINE_SECONDS="0.2")
    harness.providers.clear()
    harness.serve("one", max_retries=100)
    harness.serve("two", max_retries=100)
    harness.outbound.script = [(500, [b"{}"])] * 100
    answer = await asyncio.wait_for(harness.engine.answer(harness.request(CHAT)), MAX_WAIT_SECONDS)
    assert answer.status == 504
    reasons = [attempt["reason"] for attempt in error(answer)["attempts"]]
    assert reasons[0] == "http_500"
    assert reasons[-1] == "deadline"
    assert len(harness.outcomes) == 1


async def test_a_stream_that_has_begun_outlives_the_deadline() -> None:
    harness = engine(REQUEST_DEADLINE_SECONDS="0.05")
    harness.outbound.script = [(200, events("Hel", "lo"))]
    answer = await harness.engine.answer(harness.request(STREAM))
    await asyncio.sleep(0.1)
    assert (await text(answer)).endswith("data: [DONE]\n\n")
    assert harness.outcomes[0].outcome == "success"


#: Stands for the date one hour after the test runs.
IN_AN_HOUR = "in an hour"


@pytest.mark.parametrize(
    ("provider_pauses", "expected"),
    [
        (("7", "3"), ("3",)),
        (("7", None), ("7",)),
        ((None, "7"), ("7",)),
        (("0.2", "9"), ("1",)),
        (("0", None), ("1",)),
        ((IN_AN_HOUR, "36000"), tuple(map(str, range(3000, 3601)))),
        (("-1", "soon"), (None,)),
        (("nan", "inf"), (None,)),
        (("1000000", None), (None,)),
        (("Thu, 01 Jan 1970 00:00:00 GMT", "99 Nov"), (None,)),
        ((None, None), (None,)),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_a_failed_chain_returns_the_shortest_retry_after(
    harness: EngineHarness,
    status: int,
    provider_pauses: tuple[str | None, str | None],
    expected: tuple[str | None, ...],
) -> None:
    date = format_datetime(utc_now() + timedelta(hours=1), usegmt=True)
    pauses = [date if pause == IN_AN_HOUR else pause for pause in provider_pauses]
    harness.outbound.script = [(status, [b"{}"], {"retry-after": pause} if pause else {}) for pause in pauses]
    answer = await harness.engine.answer(harness.request(CHAT))
    assert (answer.status, error(answer)["code"]) == (502, "all_providers_failed")
    assert answer.headers.get("Retry-After") in expected


async def test_a_retry_after_of_a_failed_provider_is_not_sent_with_an_answer(harness: EngineHarness) -> None:
    harness.outbound.script = [(429, [b"{}"], {"retry-after": "7"}), (200, [completion()])]
    answer = await harness.engine.answer(harness.request(CHAT))
    assert answer.status == 200
    assert "Retry-After" not in answer.headers


async def test_a_provider_without_a_free_connection_is_followed_by_the_next(harness: EngineHarness) -> None:
    harness.outbound.script = [NoConnectionFree(), (200, [completion()])]
    answer = await harness.engine.answer(harness.request(CHAT))
    assert (answer.status, answer.headers["X-Gateway-Provider"]) == (200, "two")
    (outcome,) = harness.outcomes
    assert [attempt.reason for attempt in outcome.attempts] == ["no_connection_free"]


async def test_without_any_free_connection_the_answer_is_503_with_retry_after(harness: EngineHarness) -> None:
    harness.outbound.script = [NoConnectionFree(), NoConnectionFree()]
    answer = await harness.engine.answer(harness.request(CHAT))
    assert (answer.status, error(answer)["code"]) == (503, "gateway_overloaded")
    assert int(answer.headers["Retry-After"]) >= 1
    (outcome,) = harness.outcomes
    assert (outcome.outcome, outcome.status, outcome.error_code) == ("error", 503, "gateway_overloaded")
    assert len(harness.outbound.sent) == 2


async def test_a_full_pool_opens_no_circuit(harness: EngineHarness) -> None:
    harness.outbound.script = [*[NoConnectionFree() for _ in range(4 * CIRCUIT_FAILURES)], (200, [completion()])]
    for _ in range(2 * CIRCUIT_FAILURES):
        assert (await harness.engine.answer(harness.request(CHAT))).status == 503
    answer = await harness.engine.answer(harness.request(CHAT))
    assert (answer.status, answer.headers["X-Gateway-Provider"]) == (200, "one")


PING = b": ping\n\n"
FAULT = b'data: {"error": {"message": "overloaded"}}\n\n'


@pytest.mark.parametrize(
    "first",
    [
        [PING, PING, FAULT],
        [PING + FAULT],
        [PING[:4], PING[4:] + FAULT],
        [b"retry: 10\n\n", FAULT],
        [b": \r\n\r\n", b"<html>\n\n"],
        [PING],
    ],
)
async def test_a_fallback_is_still_possible_after_a_comment_before_the_first_event(
    harness: EngineHarness, first: list[bytes | Exception]
) -> None:
    harness.outbound.script = [(200, first), (200, [PING, *events("Hello")])]
    answer = await harness.engine.answer(harness.request(STREAM))
    assert answer.headers["X-Gateway-Provider"] == "two"
    got = await text(answer)
    assert "Hello" in got
    assert got.endswith("data: [DONE]\n\n")


async def test_a_comment_within_a_stream_passes(harness: EngineHarness) -> None:
    pieces = events("Hel", "lo")
    harness.outbound.script = [(200, [pieces[0], PING, *pieces[1:]])]
    assert PING.decode() in await text(await harness.engine.answer(harness.request(STREAM)))

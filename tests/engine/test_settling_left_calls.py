"""The charge for a call that was sent to a provider and whose answer was not awaited."""

import asyncio
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
import structlog
from tests.support.engine import TENANT, EngineHarness, NothingReserved, completion, events

from gatehouse.engine.exchange import Exchange
from gatehouse.engine.ports import Reserved
from gatehouse.foundation.outbound import OutboundTimeout
from gatehouse.policy.budgets import Budget, BudgetRecord, CallAmounts

CHAT: dict[str, Any] = {"model": "acme/m", "messages": [{"role": "user", "content": "word " * 400}]}
STREAM = {**CHAT, "stream": True}
RESPONSES: dict[str, Any] = {"model": "acme/m", "input": "word " * 400}
MESSAGES: dict[str, Any] = {**CHAT, "max_tokens": 1000}
EMBEDDINGS: dict[str, Any] = {"model": "acme/m", "input": "word " * 400}


class Charged(EngineHarness):
    def __init__(self, **settings: str) -> None:
        super().__init__(**settings)
        self.serve("acme", "m")
        self.flags = {"dlp_enabled": False}
        self.budgets = (
            BudgetRecord(id=TENANT, scope_type="tenant", scope_id=TENANT, period="day", limit_usd=Decimal(50)),
        )
        self.reserved: list[CallAmounts] = []
        self.settled: list[CallAmounts | None] = []

    async def reserve(
        self,
        budgets: Sequence[Budget],
        taking: CallAmounts,
        *,
        enforced: bool,
        user_id: UUID | None = None,
        announce: bool = True,
    ) -> Reserved:
        await self.stop.here("reserving")
        self.reserved.append(taking)
        return NothingReserved()

    def settle(self, reserved: Reserved, spent: CallAmounts | None) -> None:
        self.settled.append(spent)

    async def left_at(self, place: str, body: dict[str, Any], dialect: str = "openai_chat") -> CallAmounts | None:
        """Return the charge for a call whose client disconnects at that point."""
        self.stop.at, self.stop.reached = place, asyncio.Event()
        self.outbound.script = [(200, [completion()])]
        task = asyncio.create_task(self.engine.answer(self.request(body, dialect=dialect)))
        await self.stop.reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        self.stop.at = None
        return self.settled[-1]


@pytest.mark.parametrize(
    ("body", "dialect"),
    [
        (CHAT, "openai_chat"),
        (STREAM, "openai_chat"),
        (RESPONSES, "openai_responses"),
        (MESSAGES, "anthropic_messages"),
        (EMBEDDINGS, "openai_embeddings"),
    ],
)
async def test_an_abandoned_call_is_charged_and_its_record_names_the_model(body: dict[str, Any], dialect: str) -> None:
    harness = Charged()
    charge = await harness.left_at("chunk 0" if "stream" in body else "reading", body, dialect)
    assert charge is not None
    output = 0 if body is EMBEDDINGS else 500
    (outcome,), (reserved,) = harness.outcomes, harness.reserved
    assert charge.requests == 1
    assert 500 <= charge.tokens - output < 600
    assert output * 2_000 < charge.nano_usd <= reserved.nano_usd
    assert (outcome.outcome, outcome.provider, outcome.model_id) == ("cancelled", "acme", "m")
    assert outcome.cost_usd is not None
    assert Decimal(outcome.cost_usd) * 10**9 == charge.nano_usd
    assert outcome.input_tokens == charge.tokens - output


@pytest.mark.parametrize("place", ["reserving", "in touch", "connecting"])
async def test_a_call_that_was_not_sent_is_charged_nothing(place: str) -> None:
    harness = Charged()
    harness.stop.at = place
    task = asyncio.create_task(harness.engine.answer(harness.request(CHAT)))
    await harness.stop.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    assert harness.settled in ([], [None])
    (outcome,) = harness.outcomes
    assert (outcome.provider, outcome.cost_usd) == (None, None)


async def test_an_abandoned_call_is_charged_the_models_median_output() -> None:
    harness = Charged()
    for tokens in (100, 4_000, 300, 4_000, 5_000):
        harness.outbound.script = [(200, [completion(usage=(10, tokens))])]
        await harness.engine.answer(harness.request(CHAT))
    charge = await harness.left_at("reading", CHAT)
    assert charge is not None
    assert 4_500 <= charge.tokens < 4_600


async def test_answers_truncated_by_the_callers_limit_do_not_lower_the_charge() -> None:
    host = Charged()
    first = await host.left_at("reading", CHAT)
    for _ in range(5):
        host.outbound.script = [(200, [completion(usage=(10, 1))])]
        await host.engine.answer(host.request({**CHAT, "max_tokens": 1}))
    assert await host.left_at("reading", CHAT) == first


async def test_an_abandoned_call_is_never_charged_more_than_the_callers_limit() -> None:
    harness = Charged()
    harness.outbound.script = [(200, [completion(usage=(10, 9_000))])]
    await harness.engine.answer(harness.request(CHAT))
    charge = await harness.left_at("reading", {**CHAT, "max_tokens": 20})
    assert charge is not None
    assert charge.tokens < 600
    assert charge.nano_usd <= harness.reserved[-1].nano_usd


@pytest.mark.parametrize("body", [CHAT, STREAM])
async def test_calls_that_timed_out_after_they_were_sent_are_charged_within_the_reservation(
    body: dict[str, Any],
) -> None:
    harness = Charged()
    harness.outbound.script = [OutboundTimeout()]
    answer = await harness.engine.answer(harness.request(body))
    assert answer.status == 504
    (charge,), (outcome,) = harness.settled, harness.outcomes
    assert charge is not None
    assert (charge.requests, 1_000 <= charge.tokens < 1_100) == (1, True)
    assert (outcome.provider, outcome.model_id, outcome.status) == ("acme", "m", 504)
    harness.providers.clear()
    harness.serve("acme", max_retries=5)
    harness.outbound.script = [OutboundTimeout()] * 6
    await harness.engine.answer(harness.request({**body, "max_tokens": 20}))
    last = harness.settled[-1]
    assert last is not None
    assert last.tokens > charge.tokens
    assert last.tokens <= harness.reserved[-1].tokens
    assert last.nano_usd <= harness.reserved[-1].nano_usd


async def test_calls_sent_before_the_deadline_are_charged() -> None:
    harness = Charged(REQUEST_DEADLINE_SECONDS="0.05")
    harness.stop.at = "reading"
    harness.outbound.script = [(200, [completion()])]
    assert (await harness.engine.answer(harness.request(CHAT))).status == 504
    assert harness.settled[-1] is not None


async def test_a_failed_call_is_not_charged() -> None:
    harness = Charged()
    harness.outbound.script = [(500, [b"{}"])]
    assert (await harness.engine.answer(harness.request(CHAT))).status == 502
    assert harness.settled == [None]


def chunk(text: str, field: str = "content") -> bytes:
    body = {
        "id": "chatcmpl-0123456789abcdef", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": {field: text}, "finish_reason": None}],
    }  # fmt: skip
    return b"data: " + json.dumps(body).encode() + b"\n\n"


async def left_stream(harness: Charged, pieces: Sequence[bytes | Exception], **more: Any) -> CallAmounts:
    harness.outbound.script = [(200, [*pieces, *events("never read")])]
    answer = await harness.engine.answer(harness.request({**STREAM, **more}))
    assert answer.stream is not None
    for _ in pieces:
        await anext(answer.stream)
    await answer.stream.aclose()  # type: ignore[attr-defined]
    await asyncio.sleep(0)
    charge = harness.settled[-1]
    assert charge is not None
    return charge


@pytest.mark.parametrize("field", ["content", "reasoning_content"])
async def test_an_abandoned_stream_of_long_events_is_charged_by_its_text(field: str) -> None:
    harness = Charged()
    charge = await left_stream(harness, [chunk("x" * 4_000, field) for _ in range(4)])
    assert 4 * 1_000 <= charge.tokens - 500 < 4_200


async def test_an_abandoned_stream_of_short_events_is_charged_one_token_per_event() -> None:
    harness = Charged()
    charge = await left_stream(harness, [chunk(f" {number}") for number in range(40)])
    assert 40 <= charge.tokens - 500 < 140


async def test_an_aborted_stream_is_charged_the_providers_usage_if_it_is_higher() -> None:
    harness = Charged()
    result = json.dumps({"choices": [], "usage": {"prompt_tokens": 600, "completion_tokens": 900}}).encode()
    charge = await left_stream(harness, [chunk("Hi"), b"data: " + result + b"\n\n"])
    assert charge.tokens == 1_500


async def test_an_abandoned_stream_is_never_charged_more_than_the_callers_limit() -> None:
    harness = Charged()
    charge = await left_stream(harness, [chunk("ä" * 4_000)], max_tokens=30)
    assert charge.tokens - 30 < 600
    assert charge.nano_usd <= harness.reserved[-1].nano_usd


class Fault(Exception):
    pass


async def test_a_fault_in_the_metrics_does_not_lose_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Charged()

    class Meter:
        def finished(self, x: Exchange) -> None:
            raise Fault

    monkeypatch.setattr(harness.ports, "meter", Meter())
    with structlog.testing.capture_logs() as logs:
        await harness.left_at("reading", CHAT)
    assert len(harness.outcomes) == 1
    assert [line["event"] for line in logs] == ["record.metrics_fault"]


async def test_a_record_that_cannot_be_written_is_logged_and_the_budget_settled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness = Charged()

    def append(record: bytes) -> "asyncio.Future[None]":
        raise Fault

    monkeypatch.setattr(harness, "append", append)
    with structlog.testing.capture_logs() as logs:
        charge = await harness.left_at("reading", CHAT)
    assert charge is not None
    assert [(line["event"], line["request_id"]) for line in logs] == [("settling.record_fault", "req-1")]


async def test_a_stopping_engine_waits_for_the_records_of_calls_whose_clients_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness, unwritten = Charged(), []

    def append(record: bytes) -> asyncio.Future[None]:
        unwritten.append(asyncio.get_running_loop().create_future())
        return unwritten[-1]

    monkeypatch.setattr(harness, "append", append)
    await harness.left_at("connecting", CHAT)
    stopping = asyncio.create_task(harness.engine.stop())
    assert not (await asyncio.wait([stopping], timeout=0.05))[0]
    unwritten[0].set_result(None)
    await stopping

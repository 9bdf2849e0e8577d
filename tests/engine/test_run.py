"""The whole pipeline: its order, its outcomes, and exactly one record in every case."""

import asyncio
import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from tests.support.engine import TENANT, EngineHarness, completion, events

from gatehouse.engine.exchange import Answer
from gatehouse.engine.ports import Maintenance
from gatehouse.engine.stages.callers.journal_room import NoJournalRoom
from gatehouse.foundation.identity import CallerKind
from gatehouse.foundation.outbound import (
    BrokenOff,
    ConnectFailed,
    OutboundReply,
    OutboundRequest,
    OutboundTimeout,
    ReplyTooLarge,
)

CHAT: dict[str, Any] = {"model": "one/m", "messages": [{"role": "user", "content": "Hi"}]}
STREAM = {**CHAT, "stream": True}


@pytest.fixture
def harness() -> EngineHarness:
    harness = EngineHarness()
    harness.serve("one", "m", "spare")
    harness.serve("two", "n")
    return harness


async def read(answer: Answer) -> bytes:
    if answer.stream is None:
        return answer.body
    return b"".join([block async for block in answer.stream])


def error(body: bytes) -> dict[str, Any]:
    error_body: dict[str, Any] = json.loads(body)["error"]
    return error_body


async def test_an_answer_comes_with_its_record(harness: EngineHarness) -> None:
    harness.outbound.script = [(200, [completion("Hello")])]
    answer = await harness.engine.answer(harness.request(CHAT))
    assert answer.status == 200
    assert json.loads(answer.body)["choices"][0]["message"]["content"] == "Hello"
    assert answer.headers["X-Gateway-Provider"] == "one"
    assert answer.headers["X-Gateway-Model"] == "m"
    assert answer.headers["X-Gateway-Fallbacks"] == "0"
    assert answer.headers["X-DLP-Action"] == "ALLOW"
    assert answer.headers["X-RateLimit-Limit"] == "60"
    assert Decimal(answer.headers["X-Cost-USD"]) == Decimal("0.00002")
    (outcome,) = harness.outcomes
    assert (outcome.outcome, outcome.status, outcome.provider, outcome.model_id) == ("success", 200, "one", "m")
    assert (outcome.input_tokens, outcome.output_tokens, outcome.cached_tokens) == (10, 5, 0)
    assert outcome.cost_usd == "0.000020"
    assert outcome.requested_model == "one/m"
    assert outcome.dlp_action == "ALLOW", "the call was inspected, and nothing was found"


async def test_a_stream_is_recorded_before_its_first_byte(harness: EngineHarness) -> None:
    harness.outbound.script = [(200, events("Hel", "lo"))]
    answer = await harness.engine.answer(harness.request(STREAM))
    assert answer.stream is not None
    assert len(harness.opened) == 1
    assert harness.outcomes == []
    text = (await read(answer)).decode()
    assert text.endswith("data: [DONE]\n\n")
    assert '"usage":{' not in text, "the client did not ask for usage"
    (outcome,) = harness.outcomes
    assert outcome.id == harness.opened[0].id
    assert (outcome.outcome, outcome.input_tokens, outcome.output_tokens) == ("success", 10, 5)
    assert "X-Cost-USD" not in answer.headers


async def test_a_streams_outcome_is_written_before_its_last_event(harness: EngineHarness) -> None:
    harness.outbound.script = [(200, events("Hello"))]
    answer = await harness.engine.answer(harness.request(STREAM))
    assert answer.stream is not None
    async for block in answer.stream:
        if b"[DONE]" in block:
            assert len(harness.outcomes) == 1


BEFORE_AN_ANSWER = ["counting", "reserving", "in touch", "connecting", "reading", "recording"]


@pytest.mark.parametrize("place", BEFORE_AN_ANSWER)
async def test_a_disconnect_is_recorded_once(harness: EngineHarness, place: str) -> None:
    harness.outbound.script = [(200, [completion()])]
    harness.stop.at = place
    task = asyncio.create_task(harness.engine.answer(harness.request(CHAT)))
    await harness.stop.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (outcome,) = harness.outcomes
    assert outcome.outcome == ("success" if place == "recording" else "cancelled")
    assert all(reply.closed for reply in harness.outbound.replies)


@pytest.mark.parametrize("blocks_read", [0, 1, 2])
async def test_a_disconnect_from_a_stream_is_recorded_with_its_usage(harness: EngineHarness, blocks_read: int) -> None:
    # With DLP, such a short stream would be held back to its end.
    harness.flags = {"dlp_enabled": False}
    harness.outbound.script = [(200, events("a", "b", "c", "d"))]
    answer = await harness.engine.answer(harness.request(STREAM))
    assert answer.stream is not None
    for _ in range(blocks_read):
        await anext(answer.stream)
    await answer.stream.aclose()  # type: ignore[attr-defined]
    (outcome,) = harness.outcomes
    assert (outcome.outcome, outcome.status) == ("cancelled", 499)
    assert harness.outbound.replies[0].closed


async def test_a_disconnect_from_a_waiting_stream_is_recorded_once(harness: EngineHarness) -> None:
    harness.outbound.script = [(200, events("a", "b"))]
    harness.stop.at = "chunk 1"
    answer = await harness.engine.answer(harness.request(STREAM))
    task = asyncio.create_task(read(answer))
    await harness.stop.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (outcome,) = harness.outcomes
    assert outcome.outcome == "cancelled"
    assert harness.outbound.replies[0].closed


async def test_an_unknown_caller_is_not_recorded(harness: EngineHarness) -> None:
    harness.caller = None
    answer = await harness.engine.answer(harness.request(CHAT))
    assert answer.status == 401
    assert error(answer.body)["type"] == "authentication_error"
    assert answer.headers["X-RateLimit-Limit"] == "60"
    assert harness.entries == []


async def test_guessing_credentials_is_limited_by_address(harness: EngineHarness) -> None:
    harness.caller = None
    statuses = [(await harness.engine.answer(harness.request(CHAT))).status for _ in range(61)]
    assert statuses == [401] * 60 + [429]


async def test_maintenance_comes_before_everything(harness: EngineHarness) -> None:
    harness.caller = None
    harness.in_maintenance = Maintenance("Back at noon.", 300)
    answer = await harness.engine.answer(harness.request(CHAT))
    assert answer.status == 503
    assert answer.headers["Retry-After"] == "300"
    assert json.loads(answer.body) == {"error": "maintenance_mode", "message": "Back at noon."}


async def test_maintenance_that_begins_while_the_body_arrives_refuses_the_call(harness: EngineHarness) -> None:
    async def read() -> bytes:
        harness.in_maintenance = Maintenance("Back at noon.", 300)
        return harness.request(CHAT).body

    answer = await harness.engine.answer(harness.request(b""), read)
    assert (answer.status, json.loads(answer.body)["error"]) == (503, "maintenance_mode")
    assert harness.outbound.sent == []


async def test_a_request_from_an_excluded_address_is_counted(harness: EngineHarness) -> None:
    harness.allowlist = ("198.51.100.0/24",)
    answer = await harness.engine.answer(harness.request(CHAT))
    assert (answer.status, error(answer.body)["code"]) == (403, "ip_not_allowed")
    assert answer.headers["X-RateLimit-Remaining"] == "59"
    assert harness.outcomes[0].outcome == "refused"


async def test_the_61st_request_of_a_minute_is_refused_and_recorded(harness: EngineHarness) -> None:
    harness.outbound.script = [(200, [completion()]) for _ in range(60)]
    statuses = [(await harness.engine.answer(harness.request(CHAT))).status for _ in range(60)]
    refused = await harness.engine.answer(harness.request(CHAT))
    assert statuses == [200] * 60
    assert refused.status == 429
    error_body = error(refused.body)
    assert (error_body["type"], error_body["code"], error_body["tier"]) == (
        "rate_limit_error",
        "quota_exceeded",
        "general",
    )
    assert int(refused.headers["Retry-After"]) == error_body["retry_after"]
    assert harness.outcomes[-1].outcome == "refused"
    assert len(harness.outcomes) == 61


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, None),
        ({"messages": []}, 400, None),
        ({**CHAT, "model": "one/none"}, 404, "model_not_found"),
        ({**CHAT, "model": "one/none", "fallbacks": ["nobody/x"]}, 404, "model_not_found"),
    ],
)
async def test_an_invalid_call_is_refused_before_a_provider_is_called(
    harness: EngineHarness, body: Any, status: int, code: str | None
) -> None:
    answer = await harness.engine.answer(harness.request(body))
    assert answer.status == status
    assert code is None or error(answer.body)["code"] == code
    assert harness.outbound.sent == []
    assert harness.outcomes[0].outcome == "refused"


async def test_a_bare_model_id_is_found_at_one_provider_or_several(harness: EngineHarness) -> None:
    harness.outbound.script = [(200, [completion()])] * 2
    assert (await harness.engine.answer(harness.request({**CHAT, "model": "n"}))).headers["X-Gateway-Provider"] == "two"
    harness.serve("three", "n")
    answer = await harness.engine.answer(harness.request({**CHAT, "model": "n"}))
    # All prices are equal, so the order is that of the names.
    assert (answer.status, answer.headers["X-Gateway-Provider"]) == (200, "three")
    model = (await harness.current(TENANT)).find_model("n")
    assert model is not None
    assert model.provider == "three"


async def test_a_restricted_model_looks_like_an_unknown_one(harness: EngineHarness) -> None:
    harness.models[0] = msgspec.structs.replace(harness.models[0], access="restricted")
    answer = await harness.engine.answer(harness.request(CHAT))
    assert (answer.status, error(answer.body)["code"]) == (404, "model_not_found")


async def test_unknown_and_denied_names_are_handled_alike_in_a_chain(harness: EngineHarness) -> None:
    harness.models[1] = msgspec.structs.replace(harness.models[1], access="restricted")
    results = []
    for other in ("one/spare", "one/none"):
        harness.outbound.script = [(200, [completion()]), (200, [completion()])]
        as_fallback = await harness.engine.answer(harness.request({**CHAT, "fallbacks": [other]}))
        as_first = await harness.engine.answer(harness.request({**CHAT, "model": other, "fallbacks": ["two/n"]}))
        alone = await harness.engine.answer(harness.request({**CHAT, "model": other, "fallbacks": [other]}))
        results.append(
            [(answer.status, answer.headers.get("X-Gateway-Provider")) for answer in (as_fallback, as_first)]
        )
        results[-1].append((alone.status, error(alone.body)["code"]))
    assert results[0] == results[1] == [(200, "one"), (200, "two"), (404, "model_not_found")]


async def test_a_switched_off_model_gives_503_or_is_replaced_by_a_fallback(harness: EngineHarness) -> None:
    harness.off = {"m"}
    refused = await harness.engine.answer(harness.request(CHAT))
    assert (refused.status, error(refused.body)["type"]) == (503, "provider_unavailable")
    harness.outbound.script = [(200, [completion()])]
    answer = await harness.engine.answer(harness.request({**CHAT, "fallbacks": ["two/n"]}))
    assert (answer.status, answer.headers["X-Gateway-Provider"]) == (200, "two")
    harness.off = {"m", "n"}
    assert (await harness.engine.answer(harness.request({**CHAT, "fallbacks": ["two/n"]}))).status == 503


async def test_a_kill_switch_engaged_during_the_wait_for_a_connection_stops_the_request(harness: EngineHarness) -> None:
    harness.stop.at = "connecting"
    task = asyncio.create_task(harness.engine.answer(harness.request(CHAT)))
    await harness.stop.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    harness.stop.at = None

    real = harness.outbound.send

    async def slow(request: Any) -> Any:
        harness.off = {"m"}
        return await real(request)

    harness.outbound.send = slow  # type: ignore[method-assign]
    answer = await harness.engine.answer(harness.request(CHAT))
    assert (answer.status, error(answer.body)["type"]) == (503, "provider_unavailable")
    assert harness.outbound.sent == []


async def test_a_credential_revoked_during_the_wait_stops_the_request(harness: EngineHarness) -> None:
    harness.good = False
    answer = await harness.engine.answer(harness.request({**CHAT, "fallbacks": ["two/n"]}))
    assert (answer.status, error(answer.body)["code"]) == (401, "credential_revoked")
    assert harness.outbound.sent == []
    assert len(harness.outcomes) == 1


async def test_failures_are_retried_and_then_the_next_candidate_answers(
    harness: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.providers[0] = msgspec.structs.replace(
        harness.providers[0], config=msgspec.structs.replace(harness.providers[0].config, max_retries=2)
    )
    harness.outbound.script = [(500, [b"{}"]), ConnectFailed(), OutboundTimeout(), (200, [completion()])]
    send = harness.outbound.send

    async def slow_send(request: OutboundRequest) -> OutboundReply:
        harness.clock.move(1 + len(harness.outbound.sent))
        return await send(request)

    monkeypatch.setattr(harness.outbound, "send", slow_send)
    answer = await harness.engine.answer(harness.request({**CHAT, "fallbacks": ["two/n"]}))
    assert (answer.status, answer.headers["X-Gateway-Provider"]) == (200, "two")
    assert answer.headers["X-Gateway-Fallbacks"] == "1"
    (outcome,) = harness.outcomes
    assert outcome.fallbacks == 1
    assert len(harness.outbound.sent) == 4
    assert [(attempt.provider, attempt.status, attempt.reason) for attempt in outcome.attempts] == [
        ("one", 500, "http_500"), ("one", None, "connect_failed"), ("one", None, "timeout"),
    ]  # fmt: skip
    assert [attempt.duration_ms for attempt in outcome.attempts] == [1000.0, 2000.0, 3000.0]
    assert outcome.attempt_ms == 4000.0


async def test_a_retry_that_succeeds_is_no_fallback(harness: EngineHarness) -> None:
    harness.providers[0] = msgspec.structs.replace(
        harness.providers[0], config=msgspec.structs.replace(harness.providers[0].config, max_retries=1)
    )
    harness.outbound.script = [(500, [b"{}"]), (200, [completion()])]
    answer = await harness.engine.answer(harness.request(CHAT))
    assert (answer.status, answer.headers["X-Gateway-Fallbacks"]) == (200, "0")
    assert harness.outcomes[0].fallbacks == 0


async def test_a_429_of_a_provider_leads_to_the_fallback_at_once(harness: EngineHarness) -> None:
    harness.providers[0] = msgspec.structs.replace(
        harness.providers[0], config=msgspec.structs.replace(harness.providers[0].config, max_retries=2)
    )
    harness.outbound.script = [(429, [b"{}"]), (200, [completion()])]
    answer = await harness.engine.answer(harness.request({**CHAT, "fallbacks": ["two/n"]}))
    assert (answer.status, answer.headers["X-Gateway-Provider"]) == (200, "two")


@pytest.mark.parametrize(
    ("failure", "status", "reason"),
    [
        ((500, [b"secret upstream words"]), 502, "http_500"),
        ((429, [b"{}"]), 502, "rate_limited"),
        ((401, [b"{}"]), 502, "unauthorized"),
        (ConnectFailed(), 502, "connect_failed"),
        (OutboundTimeout(), 504, "timeout"),
        ((200, [b"garbage"]), 502, "bad_reply"),
        ((200, [completion()[:40], BrokenOff()]), 502, "connection_closed"),
        ((200, [ReplyTooLarge()]), 502, "reply_too_large"),
    ],
)
async def test_the_error_of_a_failed_chain_contains_nothing_of_the_providers_bodies(
    harness: EngineHarness, failure: Any, status: int, reason: str
) -> None:
    harness.outbound.script = [failure]
    answer = await harness.engine.answer(harness.request(CHAT))
    assert answer.status == status
    error_body = error(answer.body)
    assert error_body["code"] in {"all_providers_failed", "provider_timeout"}
    assert [attempt["reason"] for attempt in error_body["attempts"]] == [reason]
    assert b"secret upstream words" not in answer.body
    (outcome,) = harness.outcomes
    assert (outcome.outcome, outcome.status) == ("error", status)
    assert all(reply.closed for reply in harness.outbound.replies)


async def test_a_providers_error_about_the_request_is_returned_to_the_client(harness: EngineHarness) -> None:
    harness.outbound.script = [(400, [b'{"error": {"message": "temperature must be at most 2"}}'])]
    answer = await harness.engine.answer(harness.request({**CHAT, "fallbacks": ["two/n"]}))
    assert answer.status == 400
    assert "temperature" in error(answer.body)["message"]
    assert len(harness.outbound.sent) == 1


@pytest.mark.parametrize("fault", [BrokenOff(), OutboundTimeout(), b"data: {nonsense}\n\n"])
async def test_a_broken_stream_ends_in_an_error_event_and_one_record(harness: EngineHarness, fault: Any) -> None:
    harness.outbound.script = [(200, [*events("a", "b", usage=None, done=False)[:2], fault, *([b""] * 0)])]
    answer = await harness.engine.answer(harness.request({**STREAM, "fallbacks": ["two/n"]}))
    text = (await read(answer)).decode()
    assert '"content":"a"' in text
    last = text.rstrip("\n").split("\n\n")[-1]
    error_body = json.loads(last[last.index("{") :])["error"]
    assert error_body["type"] == "provider_error"
    assert "[DONE]" not in text
    (outcome,) = harness.outcomes
    assert outcome.outcome == "error"
    assert len(harness.outbound.sent) == 1, "no other provider is called once the stream has begun"


async def test_a_stream_that_fails_before_its_first_event_falls_back(harness: EngineHarness) -> None:
    harness.outbound.script = [(200, [BrokenOff()]), (200, events("Hello"))]
    answer = await harness.engine.answer(harness.request({**STREAM, "fallbacks": ["two/n"]}))
    assert answer.headers["X-Gateway-Provider"] == "two"
    assert "Hello" in (await read(answer)).decode()


async def test_an_unhealthy_provider_is_the_last_resort(harness: EngineHarness) -> None:
    harness.unhealthy = {"one"}
    harness.outbound.script = [(200, [completion()]), (200, [completion()])]
    answer = await harness.engine.answer(harness.request({**CHAT, "fallbacks": ["two/n"]}))
    assert answer.headers["X-Gateway-Provider"] == "two"
    assert (await harness.engine.answer(harness.request(CHAT))).headers["X-Gateway-Provider"] == "one"


async def test_an_unknown_price_costs_null(harness: EngineHarness) -> None:
    harness.models[0] = msgspec.structs.replace(harness.models[0], cost_per_output_token=None)
    harness.outbound.script = [(200, [completion()])]
    answer = await harness.engine.answer(harness.request(CHAT))
    assert answer.status == 200
    assert "X-Cost-USD" not in answer.headers
    assert harness.outcomes[0].cost_usd is None


async def test_a_full_journal_refuses_before_the_provider_is_called(harness: EngineHarness) -> None:
    harness.journal_full = True
    answer = await harness.engine.answer(harness.request(CHAT))
    assert (answer.status, error(answer.body)["code"]) == (503, "journal_full")
    assert harness.outbound.sent == []


class FailingJournal:
    """A journal that refuses all entries after the first `accepted` ones. `settled` counts the settled reservations."""

    def __init__(self, harness: EngineHarness, *, accepted: int) -> None:
        self.settled = 0
        self._left = accepted
        self._append = harness.append
        harness.append = self.append  # type: ignore[method-assign]
        harness.settle = self.settle  # type: ignore[method-assign]

    def append(self, record: bytes) -> "asyncio.Future[None]":
        self._left -= 1
        if self._left < 0:
            raise NoJournalRoom
        return self._append(record)

    def settle(self, reserved: object, spent: object) -> None:
        self.settled += 1


async def test_an_answer_that_cannot_be_recorded_is_503_and_settled_once(harness: EngineHarness) -> None:
    ledger = FailingJournal(harness, accepted=0)
    harness.outbound.script = [(200, [completion()])]
    answer = await harness.engine.answer(harness.request(CHAT))
    assert (answer.status, error(answer.body)["code"]) == (503, "journal_full")
    assert ledger.settled == 1


async def test_a_stream_that_cannot_be_recorded_ends_with_an_error_event(harness: EngineHarness) -> None:
    ledger = FailingJournal(harness, accepted=1)
    harness.outbound.script = [(200, events("Hello"))]
    text = (await read(await harness.engine.answer(harness.request(STREAM)))).decode()
    assert "Hello" in text
    assert "[DONE]" not in text
    assert error(text.split("data: ")[-1].encode())["code"] == "journal_full"
    assert ledger.settled == 1


async def test_a_broken_stream_that_cannot_be_recorded_ends_with_its_error_event(harness: EngineHarness) -> None:
    ledger = FailingJournal(harness, accepted=1)
    harness.outbound.script = [(200, [*events("Hello")[:1], BrokenOff()])]
    text = (await read(await harness.engine.answer(harness.request(STREAM)))).decode()
    assert error(text.split("data: ")[-1].encode())["code"] == "all_providers_failed"
    await asyncio.sleep(0)
    assert ledger.settled == 1


async def test_a_disconnected_request_is_settled_even_if_it_cannot_be_recorded(harness: EngineHarness) -> None:
    ledger = FailingJournal(harness, accepted=0)
    harness.stop.at = "connecting"
    task = asyncio.create_task(harness.engine.answer(harness.request(CHAT)))
    await harness.stop.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    assert ledger.settled == 1


async def test_a_fault_in_a_stage_is_500_and_one_record(
    harness: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "reserve", None)
    answer = await harness.engine.answer(harness.request(CHAT))
    assert (answer.status, error(answer.body)["type"]) == (500, "internal_error")
    (outcome,) = harness.outcomes
    assert outcome.status == 500


async def test_a_fault_before_the_caller_is_known_is_500(
    harness: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "current", None)
    answer = await harness.engine.answer(harness.request(CHAT))
    assert (answer.status, error(answer.body)["type"]) == (500, "internal_error")


async def test_a_fault_within_a_stream_ends_in_an_error_event(harness: EngineHarness) -> None:
    harness.outbound.script = [(200, [*events("Hello")[:1], RuntimeError("secret words")])]
    text = (await read(await harness.engine.answer(harness.request(STREAM)))).decode()
    assert error(text.split("data: ")[-1].encode())["type"] == "internal_error"
    assert "secret words" not in text
    (outcome,) = harness.outcomes
    assert (outcome.outcome, outcome.status) == ("error", 500)


async def test_an_anthropic_client_gets_its_own_form_of_error(harness: EngineHarness) -> None:
    body = {"model": "one/none", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}
    answer = await harness.engine.answer(harness.request(body, dialect="anthropic_messages"))
    response_body = json.loads(answer.body)
    assert response_body["type"] == "error"
    assert response_body["error"]["code"] == "model_not_found"


async def test_a_token_without_the_scope_is_counted_and_recorded(harness: EngineHarness) -> None:
    assert harness.caller is not None
    harness.caller = msgspec.structs.replace(
        harness.caller, kind=CallerKind.OAUTH_CLIENT, scopes=frozenset({"api:read"})
    )
    answers = [await harness.engine.answer(harness.request(CHAT)) for _ in range(2)]
    assert [answer.status for answer in answers] == [403, 403]
    first, second = (int(answer.headers["X-RateLimit-Remaining"]) for answer in answers)
    assert first - second == 1
    assert json.loads(answers[0].body)["error"]["code"] == "insufficient_scope"
    assert [outcome.outcome for outcome in harness.outcomes] == ["refused", "refused"]

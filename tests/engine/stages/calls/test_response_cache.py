"""Cached answers: which answers are cached, who receives them, and which checks still apply."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.engine.dlp.scenarios.test_requests import rule
from tests.engine.dlp.test_streams import anthropic, openai, whole_answer
from tests.support.engine import TENANT, EngineHarness, completion, events

from gatehouse.engine.exchange import Answer
from gatehouse.engine.stages.calls.budget import charged
from gatehouse.engine.stages.calls.response_cache import MAX_CACHED_BYTES
from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.response_cache.memory import MemoryCache
from gatehouse.policy.budgets import BudgetRecord, CallAmounts
from gatehouse.policy.catalog import RoutingPolicyRecord
from gatehouse.policy.governance import GovernanceRecords

CHAT: dict[str, Any] = {"model": "one/m", "messages": [{"role": "user", "content": "Hi"}]}
STREAM = {**CHAT, "stream": True}
CARD, OTHER_CARD = "4111 1111 1111 1111", "5500 0000 0000 0004"


@pytest.fixture
def harness() -> EngineHarness:
    harness = EngineHarness()
    harness.serve("one", "m", "other")
    harness.serve("two", "n")
    harness.ports.cache = MemoryCache(10**7, harness.clock)
    harness.routing_policies = (policy(),)
    return harness


def policy(seconds: int | None = 60) -> RoutingPolicyRecord:
    return RoutingPolicyRecord(id=new_id(), name="kept", strategy="cost_optimized", cache_ttl_seconds=seconds)


async def ask(
    harness: EngineHarness, body: dict[str, Any] = CHAT, *, dialect: str = "openai_chat", **headers: str
) -> Answer:
    request = harness.request(body, dialect=dialect)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return await harness.engine.answer(msgspec.structs.replace(request, headers=sent))


async def read(answer: Answer) -> bytes:
    if answer.stream is None:
        return answer.body
    return b"".join([block async for block in answer.stream])


def cache_header(answer: Answer) -> str | None:
    return answer.headers.get("X-Gateway-Cache")


async def test_an_identical_request_is_answered_without_a_call(harness: EngineHarness) -> None:
    harness.outbound.script = [(200, [completion("Hello")])]
    first, second = await ask(harness), await ask(harness)
    assert (cache_header(first), cache_header(second)) == ("miss", "hit")
    assert first.body == second.body
    assert len(harness.outbound.sent) == 1
    assert second.headers["X-Gateway-Provider"] == "one"
    assert second.headers["X-Gateway-Model"] == "m"
    assert Decimal(second.headers["X-Cost-USD"]) == 0
    missed, hit = harness.outcomes
    assert (missed.cache, missed.cost_usd, missed.input_tokens) == ("miss", "0.000020", 10)
    assert (hit.cache, hit.cost_usd, hit.input_tokens, hit.output_tokens, hit.cached_tokens) == ("hit", "0", 0, 0, 0)
    assert (hit.outcome, hit.status, hit.provider, hit.model_id) == ("success", 200, "one", "m")
    assert hit.provider_latency_ms is None


@pytest.mark.parametrize("seconds", [None, 0])
async def test_nothing_is_cached_unless_a_policy_enables_it(harness: EngineHarness, seconds: int | None) -> None:
    harness.routing_policies = (policy(seconds),)
    harness.outbound.script = [(200, [completion()])] * 2
    answers = [await ask(harness), await ask(harness)]
    assert [cache_header(answer) for answer in answers] == [None, None]
    assert [outcome.cache for outcome in harness.outcomes] == [None, None]


async def test_an_answer_is_cached_for_the_time_of_the_policy(harness: EngineHarness) -> None:
    harness.outbound.script = [(200, [completion("old")]), (200, [completion("new")])]
    await ask(harness)
    harness.clock.move(59)
    assert cache_header(await ask(harness)) == "hit"
    harness.clock.move(2)
    assert b"new" in (await ask(harness)).body


async def test_a_cached_stream_is_returned_as_a_stream(harness: EngineHarness) -> None:
    harness.outbound.script = [(200, events("Hel", "lo"))]
    first = await ask(harness, STREAM)
    first_answer = await read(first)
    second = await ask(harness, STREAM)
    assert second.headers["content-type"].startswith("text/event-stream")
    assert (cache_header(first), cache_header(second)) == ("miss", "hit")
    assert await read(second) == first_answer
    assert [(outcome.outcome, outcome.cache, outcome.cost_usd) for outcome in harness.outcomes] == [
        ("success", "miss", "0.000020"), ("success", "hit", "0"),
    ]  # fmt: skip
    assert len(harness.outbound.sent) == 1
    assert len(harness.opened) == 2


async def test_a_long_cached_stream_is_sent_in_pieces_that_end_with_events(harness: EngineHarness) -> None:
    harness.flags = {"dlp_enabled": False}
    harness.outbound.script = [(200, events(*("word " * 20 for _ in range(400))))]
    first_answer = await read(await ask(harness, STREAM))
    again = await ask(harness, STREAM)
    assert again.stream is not None
    blocks = [block async for block in again.stream]
    assert b"".join(blocks) == first_answer
    assert len(blocks) > 3
    assert all(block.endswith(b"\n\n") for block in blocks)


async def test_a_disconnect_during_a_cached_answer_is_recorded_once_and_free(harness: EngineHarness) -> None:
    harness.flags = {"dlp_enabled": False}
    harness.outbound.script = [(200, events(*("word " * 20 for _ in range(400))))]
    await read(await ask(harness, STREAM))
    again = await ask(harness, STREAM)
    assert again.stream is not None
    await anext(again.stream)
    await again.stream.aclose()  # type: ignore[attr-defined]
    left = harness.outcomes[1]
    assert (left.outcome, left.cache, left.cost_usd, left.output_tokens) == ("cancelled", "hit", "0", 0)


def another_tenant(harness: EngineHarness) -> None:
    assert harness.caller is not None
    harness.caller = msgspec.structs.replace(harness.caller, tenant_id=TenantId(UUID(int=7)))


def another_group(harness: EngineHarness) -> None:
    assert harness.caller is not None
    harness.caller = msgspec.structs.replace(harness.caller, groups=(UUID(int=8),))


def another_policy(harness: EngineHarness) -> None:
    harness.revision += 1


@pytest.mark.parametrize("change", [another_tenant, another_group, another_policy])
async def test_a_cached_answer_is_not_shared_with_other_tenants_groups_or_policies(
    harness: EngineHarness, change: Callable[[EngineHarness], None]
) -> None:
    harness.outbound.script = [(200, [completion("first")]), (200, [completion("second")])]
    await ask(harness)
    change(harness)
    answer = await ask(harness)
    assert cache_header(answer) == "miss"
    assert b"second" in answer.body


async def test_a_colleague_in_the_same_groups_gets_the_answer(harness: EngineHarness) -> None:
    harness.outbound.script = [(200, [completion("Hello")])]
    await ask(harness)
    assert harness.caller is not None
    harness.caller = msgspec.structs.replace(harness.caller, user_id=new_id(), api_key_id=new_id())
    assert cache_header(await ask(harness)) == "hit"
    assert harness.outcomes[1].user_id == harness.caller.user_id


OTHERS: dict[str, dict[str, Any]] = {
    "a parameter": {**CHAT, "temperature": 0.5},
    "a message": {**CHAT, "messages": [{"role": "user", "content": "Hi "}]},
    "a role": {**CHAT, "messages": [{"role": "system", "content": "Hi"}]},
    "a model": {**CHAT, "model": "one/other"},
    "a field that nobody knows": {**CHAT, "x": None},
    "a stream": STREAM,
    "what is known of tools": {**CHAT, "tools": [{"type": "function", "function": {"name": "f"}}]},
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
async def test_a_different_request_is_a_miss(harness: EngineHarness, other: dict[str, Any]) -> None:
    harness.outbound.script = [(200, [completion()]), (200, events("x") if other.get("stream") else [completion()])]
    await ask(harness)
    assert cache_header(await ask(harness, other)) == "miss"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_cached_answer_names_the_same_dropped_fields(harness: EngineHarness, *, stream: bool) -> None:
    body = {"model": "one/m", "input": "Hi", "stream": stream, "text": {"verbosity": "low"}, "metadata": {"a": "b"}}
    harness.outbound.script = [(200, events("Hello") if stream else [completion("Hello")])]
    answers = [await ask(harness, body, dialect="openai_responses")]
    await read(answers[0])
    answers.append(await ask(harness, body, dialect="openai_responses"))
    await read(answers[1])
    assert [cache_header(answer) for answer in answers] == ["miss", "hit"]
    assert [answer.headers["X-Gateway-Dropped"] for answer in answers] == ["metadata,text.verbosity"] * 2


async def test_token_counts_are_not_kept(harness: EngineHarness) -> None:
    for _ in range(2):
        answer = await ask(harness, CHAT, dialect="anthropic_token_count")
        assert (answer.headers["X-Gateway-Token-Count"], cache_header(answer)) == ("estimate", None)


async def test_the_choice_of_auto_is_part_of_the_key(harness: EngineHarness) -> None:
    harness.outbound.script = [(200, [completion("of one")]), (200, [completion("of two")])]
    body = {**CHAT, "model": "auto"}
    first = await ask(harness, body)
    harness.unhealthy = {first.headers["X-Gateway-Provider"]}
    second = await ask(harness, body)
    assert cache_header(second) == "miss"
    assert first.headers["X-Gateway-Provider"] != second.headers["X-Gateway-Provider"]


async def test_the_output_limit_is_part_of_the_key(harness: EngineHarness) -> None:
    harness.budgets = (
        BudgetRecord(id=new_id(), scope_type="tenant", scope_id=TENANT, period="month", limit_tokens=10**9),
    )
    harness.models[2] = msgspec.structs.replace(harness.models[2], max_output_tokens=50_000)
    harness.outbound.script = [(200, [completion("long")]), (200, [completion("short")])]
    body = {**CHAT, "fallbacks": ["two/n"]}
    await ask(harness, body)
    # Without the fallback, less is reserved, and a lower limit is sent.
    harness.off = {"n"}
    assert cache_header(await ask(harness, body)) == "miss"
    limits = [json.loads(sent_request.body)["max_tokens"] for sent_request in harness.outbound.sent]
    assert limits == [50_000, 16_384]


async def test_the_dialect_is_part_of_the_key(harness: EngineHarness) -> None:
    body = {**CHAT, "max_tokens": 5}
    harness.outbound.script = [(200, [completion()])] * 2
    assert cache_header(await ask(harness, body)) == "miss"
    assert cache_header(await ask(harness, body, dialect="anthropic_messages")) == "miss"


async def test_headers_for_the_provider_are_part_of_the_key(harness: EngineHarness) -> None:
    body = {**CHAT, "max_tokens": 5}
    harness.outbound.script = [(200, [completion()])] * 2
    await ask(harness, body, dialect="anthropic_messages", anthropic_beta="one-2024-01-01")
    answer = await ask(harness, body, dialect="anthropic_messages", anthropic_beta="two-2024-01-01")
    assert cache_header(answer) == "miss"


async def test_the_formatting_of_a_request_is_not_part_of_the_key(harness: EngineHarness) -> None:
    harness.outbound.script = [(200, [completion()])]
    await ask(harness)
    written = b'{ "messages": [ {"role":"user", "content":"\\u0048i"} ],\n "model": "one/m" }'
    assert cache_header(await harness.engine.answer(harness.request(written))) == "hit"


@pytest.mark.parametrize(
    ("wish", "first", "second", "third"),
    [("no-store", None, "miss", "hit"), ("max-age=0, No-Cache", "miss", "hit", "hit")],
)
async def test_a_client_can_bypass_the_cache(
    harness: EngineHarness, wish: str, first: str | None, second: str, third: str
) -> None:
    harness.outbound.script = [(200, [completion()])] * 2
    assert cache_header(await ask(harness, cache_control=wish)) == first
    assert cache_header(await ask(harness)) == second
    assert cache_header(await ask(harness)) == third


async def test_no_cache_refreshes_the_answer_for_all(harness: EngineHarness) -> None:
    harness.outbound.script = [(200, [completion("old")]), (200, [completion("new")])]
    await ask(harness)
    assert b"new" in (await ask(harness, cache_control="no-cache")).body
    assert b"new" in (await ask(harness)).body


def ended(reason: str) -> bytes:
    return completion().replace(b'"finish_reason": "stop"', b'"finish_reason": "%s"' % reason.encode())


@pytest.mark.parametrize(
    ("reason", "kept"), [("stop", True), ("length", True), ("tool_calls", True), ("content_filter", False), ("", False)]
)
async def test_only_an_answer_with_a_normal_end_is_cached(harness: EngineHarness, reason: str, kept: bool) -> None:
    harness.outbound.script = [(200, [ended(reason)])] * 2
    await ask(harness)
    assert cache_header(await ask(harness)) == ("hit" if kept else "miss")


@pytest.mark.parametrize("reason", ["stop", "content_filter"])
async def test_only_a_stream_with_a_normal_end_is_cached(harness: EngineHarness, reason: str) -> None:
    pieces: list[bytes | Exception] = [
        piece.replace(b'"finish_reason":"stop"', b'"finish_reason":"%s"' % reason.encode())
        for piece in events('say "finish_reason":"stop"')
        if isinstance(piece, bytes)
    ]
    harness.outbound.script = [(200, pieces), (200, pieces)]
    await read(await ask(harness, STREAM))
    assert cache_header(await ask(harness, STREAM)) == ("hit" if reason == "stop" else "miss")


async def test_a_broken_or_abandoned_stream_is_not_cached(harness: EngineHarness) -> None:
    harness.flags = {"dlp_enabled": False}
    harness.outbound.script = [
        (200, events("a", done=False, usage=None)[:1]), (200, events("a", "b")), (200, events("a", "b")),
    ]  # fmt: skip
    await read(await ask(harness, STREAM))
    left = await ask(harness, STREAM)
    assert cache_header(left) == "miss"
    assert left.stream is not None
    await anext(left.stream)
    await left.stream.aclose()  # type: ignore[attr-defined]
    assert cache_header(await ask(harness, STREAM)) == "miss"


async def test_an_error_is_not_cached(harness: EngineHarness) -> None:
    harness.outbound.script = [(400, [b'{"error": {"message": "no"}}']), (503, [b"{}"]), (200, [completion()])]
    assert (await ask(harness)).status == 400
    assert (await ask(harness)).status == 502
    assert cache_header(await ask(harness)) == "miss"
    assert [outcome.cache for outcome in harness.outcomes] == ["miss"] * 3


async def test_the_answer_of_a_fallback_is_not_cached(harness: EngineHarness) -> None:
    body = {**CHAT, "fallbacks": ["two/n"]}
    harness.outbound.script = [(503, [b"{}"]), (200, [completion("stand-in")]), (200, [completion("itself")])]
    assert b"stand-in" in (await ask(harness, body)).body
    answer = await ask(harness, body)
    assert cache_header(answer) == "miss"
    assert b"itself" in answer.body


@pytest.mark.parametrize("stream", [False, True])
async def test_a_huge_answer_is_returned_and_not_cached(harness: EngineHarness, stream: bool) -> None:
    harness.flags = {"dlp_enabled": False}
    text = "x" * (MAX_CACHED_BYTES // 2)
    harness.outbound.script = [(200, events(text, text)) if stream else (200, [completion(text * 2)])] * 2
    body = STREAM if stream else CHAT
    answer = await ask(harness, body)
    assert (await read(answer)).count(b"x") >= MAX_CACHED_BYTES
    if stream:
        assert answer.exchange is not None
        assert answer.exchange.call_request is not None
        assert answer.exchange.cacheable is not None
        assert answer.exchange.cacheable.collected.blocks == [], "it is not held on to either"
    assert cache_header(await ask(harness, body)) == "miss"


async def test_a_huge_request_is_not_looked_up(harness: EngineHarness) -> None:
    harness.flags = {"dlp_enabled": False}
    harness.outbound.script = [(200, [completion()])]
    assert (
        cache_header(await ask(harness, {**CHAT, "messages": [{"role": "user", "content": "x" * MAX_CACHED_BYTES}]}))
        is None
    )


async def test_a_switched_off_model_is_not_served_from_the_cache(harness: EngineHarness) -> None:
    harness.outbound.script = [(200, [completion()])]
    await ask(harness)
    harness.off.add("m")
    assert (await ask(harness)).status == 503


async def test_a_credential_revoked_in_the_meantime_gets_no_cached_answer(harness: EngineHarness) -> None:
    harness.outbound.script = [(200, [completion()])]
    await ask(harness)
    harness.good = False
    answer = await ask(harness)
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (401, "credential_revoked")
    assert b"Hello" not in answer.body


async def test_a_hit_counts_as_a_request_and_costs_nothing(harness: EngineHarness) -> None:
    harness.outbound.script = [(200, [completion()])]
    await ask(harness)
    hit = await ask(harness)
    assert hit.exchange is not None
    assert charged(hit.exchange) == CallAmounts(nano_usd=0, requests=1, tokens=0)


async def test_a_hit_is_free_even_without_a_price_in_the_catalog(harness: EngineHarness) -> None:
    harness.models = [msgspec.structs.replace(model, cost_per_input_token=None) for model in harness.models]
    harness.outbound.script = [(200, [completion()])]
    await ask(harness)
    await ask(harness)
    assert [outcome.cost_usd for outcome in harness.outcomes] == [None, "0"]


async def test_an_answer_is_inspected_each_time(harness: EngineHarness) -> None:
    harness.outbound.script = [(200, [completion(f"Card {CARD}.")])]
    answers = [await ask(harness), await ask(harness)]
    assert [cache_header(answer) for answer in answers] == ["miss", "hit"]
    for answer in answers:
        assert json.loads(answer.body)["choices"][0]["message"]["content"] == "Card [CREDIT_CARD_1]."
    assert all(any(event.direction == "output" for event in outcome.dlp_events) for outcome in harness.outcomes)


async def test_a_cached_answer_that_is_now_forbidden_is_not_returned(harness: EngineHarness) -> None:
    harness.outbound.script = [(200, [completion("About PRJ-1234.")])]
    await ask(harness)
    # The policy has the same revision, so that only the inspection prevents the answer.
    harness.governance = GovernanceRecords(dlp_rules=(rule("project", "block", pattern="PRJ-[0-9]{4}"),))
    answer = await ask(harness)
    assert answer.status == 403
    assert b"PRJ-1234" not in answer.body
    assert harness.outcomes[1].cache == "hit"


async def test_an_answer_blocked_by_a_rule_is_not_cached(harness: EngineHarness) -> None:
    harness.governance = GovernanceRecords(dlp_rules=(rule("project", "block", pattern="PRJ-[0-9]{4}"),))
    harness.outbound.script = [(200, [completion("PRJ-1234")])] * 2
    assert (await ask(harness)).status == 403
    assert (await ask(harness)).status == 403
    assert [outcome.cache for outcome in harness.outcomes] == ["miss", "miss"]


@pytest.mark.parametrize("stream", [False, True])
async def test_labels_are_restored_to_the_callers_own_values(harness: EngineHarness, stream: bool) -> None:
    harness.governance = GovernanceRecords(dlp_rules=(rule("credit_card", "redact", reversible=True),))
    text = "Your card is [CREDIT_CARD_1]."
    harness.outbound.script = [(200, events(text[:20], text[20:]) if stream else [completion(text)])]
    streams = []
    for card in (CARD, OTHER_CARD):
        body = {**CHAT, "stream": stream, "messages": [{"role": "user", "content": f"My card: {card}"}]}
        answer = await ask(harness, body)
        streams.append((cache_header(answer), (await read(answer)).decode()))
    assert [cache for cache, _ in streams] == ["miss", "hit"]
    assert CARD in streams[0][1]
    assert OTHER_CARD in streams[1][1]
    assert CARD not in streams[1][1]


async def test_nothing_that_was_redacted_is_in_the_cache(harness: EngineHarness) -> None:
    cache = Watched()
    harness.ports.cache = cache
    harness.governance = GovernanceRecords(dlp_rules=(rule("credit_card", "redact", reversible=True),))
    harness.outbound.script = [(200, [completion("Your card is [CREDIT_CARD_1].")])]
    await ask(harness, {**CHAT, "messages": [{"role": "user", "content": f"My card: {CARD}"}]})
    [(key, value, seconds)] = cache.puts
    assert CARD.encode() not in value
    assert len(key) == 32
    assert seconds == 60


class Watched:
    def __init__(self) -> None:
        self.puts: list[tuple[bytes, bytes, int]] = []

    async def get(self, key: bytes) -> bytes | None:
        return None

    def put(self, key: bytes, value: bytes, seconds: int) -> None:
        self.puts.append((key, value, seconds))


DIALECTS = ["openai_chat", "anthropic_messages", "openai_responses"]


@pytest.mark.parametrize("client", DIALECTS)
@pytest.mark.parametrize("provider", ["openai_chat", "anthropic_messages"])
@pytest.mark.parametrize("stream", [False, True])
async def test_answers_are_cached_for_every_pair_of_dialects(client: str, provider: str, stream: bool) -> None:
    harness = EngineHarness()
    harness.serve("one", "m", kind="anthropic" if provider == "anthropic_messages" else "openai_compatible")
    harness.ports.cache = MemoryCache(10**7, harness.clock)
    harness.routing_policies = (policy(),)
    speak = anthropic if provider == "anthropic_messages" else openai
    pieces: list[bytes | Exception] = (
        [*speak(["Hel", "lo"], arguments=False)] if stream else [whole_answer(provider, "Hello", arguments=False)]
    )
    harness.outbound.script = [(200, pieces)]
    body = {"model": "one/m", "max_tokens": 9, "stream": stream}
    body |= {"input": "hi"} if client == "openai_responses" else {"messages": [{"role": "user", "content": "hi"}]}
    first = await read(await ask(harness, body, dialect=client))
    again = await ask(harness, body, dialect=client)
    assert cache_header(again) == "hit"
    assert await read(again) == first
    assert harness.outcomes[1].outcome == "success"


async def test_embeddings_are_cached_too(harness: EngineHarness) -> None:
    vectors = {"object": "list", "model": "m", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}]}
    harness.outbound.script = [(200, [json.dumps(vectors).encode()])]
    body = {"model": "one/m", "input": "hi"}
    first = await ask(harness, body, dialect="openai_embeddings")
    again = await ask(harness, body, dialect="openai_embeddings")
    assert (cache_header(again), again.body) == ("hit", first.body)


async def test_a_cached_answer_requires_its_approval_each_time(harness: EngineHarness) -> None:
    harness.flags = {"human_in_loop": True}
    harness.governance = GovernanceRecords(dlp_rules=(rule("project", "prompt", pattern="PRJ-[0-9]{4}"),))
    harness.outbound.script = [(200, [completion()])]
    body = {**CHAT, "messages": [{"role": "user", "content": "PRJ-1234"}]}
    assert [cache_header(await ask(harness, body)) for _ in range(2)] == ["miss", "hit"]
    assert len(harness.approval_questions) == 2


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
MESSAGE = {"model": "one/m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9, "top_k": 3}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_cached_answer_names_the_parts_that_it_lacks(harness: EngineHarness, stream: bool) -> None:
    part = {"content": "Hello", "images": [PICTURE]}
    choice = {"index": 0, "finish_reason": "stop", "delta" if stream else "message": part}
    data = msgspec.json.encode({"id": "x", "choices": [choice]})
    harness.outbound.script = [(200, [b"data: " + data + b"\n\n", b"data: [DONE]\n\n"] if stream else [data])]
    first = await ask(harness, {**MESSAGE, "stream": stream}, dialect="anthropic_messages")
    first_answer = await read(first)
    again = await ask(harness, {**MESSAGE, "stream": stream}, dialect="anthropic_messages")
    assert cache_header(again) == "hit"
    assert await read(again) == first_answer
    assert again.headers["X-Gateway-Dropped"] == "top_k,answer.images"
    assert (b": X-Gateway-Dropped: answer.images" in first_answer) is stream

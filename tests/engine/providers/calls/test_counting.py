"""Counts of tokens. They are requested from providers that count tokens, and estimated for others. No count is
requested from a provider that a policy excludes."""

import base64
import json
from typing import Any

import msgspec
import pytest
from tests.engine.dlp.scenarios.test_requests import rule
from tests.engine.scenarios.test_kept_responses import become_another_user
from tests.engine.stages.calls.test_content_filters import keywords
from tests.support import native_responses as native
from tests.support.engine import EngineHarness

from gatehouse.engine.providers.calls import counting
from gatehouse.policy.governance import GovernanceRecords

MESSAGES = {"model": "one/m", "messages": [{"role": "user", "content": "hello big world"}]}
RESPONSES = {"model": "one/m", "input": "hello big world"}
CARD = "4111 1111 1111 1111"
PICTURE = base64.b64encode(bytes(range(256)) * 1000).decode()


async def count(harness: EngineHarness, body: dict[str, Any], dialect: str = "anthropic_token_count") -> Any:
    answer = await harness.engine.answer(harness.request(body, dialect=dialect))
    return answer.status, answer.headers.get("X-Gateway-Token-Count"), json.loads(answer.body)


def engine(kind: str = "anthropic", status: int = 200, body: bytes = b'{"input_tokens":42}') -> EngineHarness:
    harness = EngineHarness()
    harness.serve("one", "m", kind=kind)
    harness.outbound.script = [(status, [body])]
    return harness


async def test_anthropics_provider_counts() -> None:
    harness = engine()
    assert await count(harness, MESSAGES) == (200, "provider", {"input_tokens": 42})
    [sent] = harness.outbound.sent
    assert sent.url == "http://one.test/v1/messages/count_tokens"
    assert json.loads(sent.body) == {**MESSAGES, "model": "m"}
    [outcome] = harness.outcomes
    assert (outcome.outcome, outcome.provider, outcome.model_id) == ("success", "one", "m")
    assert (outcome.input_tokens, outcome.output_tokens, float(outcome.cost_usd or 0)) == (0, 0, 0)


@pytest.mark.parametrize("kind", ["openai", "openai_compatible", "mistral", "bedrock"])
async def test_no_count_is_requested_from_other_providers(kind: str) -> None:
    harness = engine(kind)
    status, counted_by, body = await count(harness, MESSAGES)
    assert (status, counted_by) == (200, "estimate")
    assert 5 < body["input_tokens"] < 50
    assert not harness.outbound.sent


TOOL = {"name": "f", "description": "Does it.", "input_schema": {"type": "object", "properties": {}}}
CONVERTED = {
    "gemini": ("gemini-2.5-flash", "models/gemini-2.5-flash:countTokens", b'{"totalTokens":42,"x":1}'),
    "bedrock": ("us.anthropic.claude-haiku-4-5-v1:0", "model/anthropic.claude-haiku-4-5-v1:0/count-tokens",
                b'{"inputTokens":42}'),
}  # fmt: skip


def converting(kind: str, status: int = 200, body: bytes | None = None) -> EngineHarness:
    harness = EngineHarness()
    model, _, answer = CONVERTED[kind]
    harness.serve("one", model, kind=kind, cloud_region="us-east-1")
    # Bedrock's calls have no default credential.
    harness.providers = [msgspec.structs.replace(harness.providers[0], sealed_credentials="key")]
    harness.outbound.script = [(status, [answer if body is None else body])]
    return harness


@pytest.mark.parametrize("kind", CONVERTED)
async def test_gemini_and_bedrock_count_converted_calls(kind: str) -> None:
    model, path, _ = CONVERTED[kind]
    messages = {**MESSAGES, "model": f"one/{model}", "system": "Be brief.", "tools": [TOOL]}
    harness = converting(kind)
    assert await count(harness, messages) == (200, "provider", {"input_tokens": 42})
    [sent] = harness.outbound.sent
    assert sent.url == f"http://one.test/v1/{path}"
    body = json.loads(sent.body)
    if kind == "gemini":
        counted = body.pop("generateContentRequest")
        assert body == {}
        assert counted["model"] == f"models/{model}"
        assert counted["contents"] == [{"role": "user", "parts": [{"text": "hello big world"}]}]
        assert counted["tools"][0]["functionDeclarations"][0]["name"] == "f"
    else:
        counted = body.pop("input")["converse"]
        assert body == {}
        assert counted["messages"] == [{"role": "user", "content": [{"text": "hello big world"}]}]
        assert counted["toolConfig"]["tools"][0]["toolSpec"]["name"] == "f"
        assert "inferenceConfig" not in counted
    assert "Be brief." in json.dumps(counted)
    responses = {**RESPONSES, "model": f"one/{model}"}
    assert await count(converting(kind), responses, "openai_token_count") == (
        200, "provider", {"object": "response.input_tokens", "input_tokens": 42},
    )  # fmt: skip


@pytest.mark.parametrize("status", [400, 403, 404, 405, 501])
@pytest.mark.parametrize("kind", CONVERTED)
async def test_a_model_whose_tokens_the_provider_does_not_count_is_estimated(kind: str, status: int) -> None:
    harness = converting(kind, status, b'{"message":"The provided model does not support counting tokens"}')
    answer = await count(harness, {**MESSAGES, "model": f"one/{CONVERTED[kind][0]}"})
    assert (answer[:2], len(harness.outbound.sent)) == ((200, "estimate"), 1)


@pytest.mark.parametrize("kind", CONVERTED)
async def test_faults_of_converted_counts_are_those_of_the_provider(kind: str) -> None:
    body = {**MESSAGES, "model": f"one/{CONVERTED[kind][0]}"}
    for harness in (converting(kind, 503, b"{}"), converting(kind, 200, b"{}")):
        assert (await count(harness, body))[0] == 502


async def test_a_call_that_cannot_be_converted_is_estimated() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/tiff", "data": "AAAA"}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "hi"}, image]}]
    harness = converting("bedrock")
    answer = await count(harness, {"model": f"one/{CONVERTED['bedrock'][0]}", "messages": messages})
    assert (answer[:2], harness.outbound.sent) == ((200, "estimate"), [])


async def test_a_provider_with_the_responses_api_counts() -> None:
    harness = engine("openai", body=b'{"object":"response.input_tokens","input_tokens":42,"note":"x"}')
    reference = {"type": "item_reference", "id": "msg_1"}
    call = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
    fields = {
        "input": [reference, call],
        "instructions": "Be brief.",
        "tools": [{"type": "web_search"}, {"type": "custom", "name": "patch"}],
        "reasoning": {"effort": "low"},
    }
    unknown_to_the_operation = {"include": ["reasoning.encrypted_content"], "store": False, "prompt_cache_key": "k"}
    body = {"model": "one/m", **fields, **unknown_to_the_operation}
    assert await count(harness, body, "openai_token_count") == (
        200, "provider", {"object": "response.input_tokens", "input_tokens": 42},
    )  # fmt: skip
    [sent] = harness.outbound.sent
    assert sent.url == "http://one.test/v1/responses/input_tokens"
    expected = {**fields, "model": "m", "input": [call], "tools": [{"type": "custom", "name": "patch"}]}
    assert json.loads(sent.body) == expected
    [outcome] = harness.outcomes
    assert (outcome.outcome, outcome.input_tokens, float(outcome.cost_usd or 0)) == ("success", 0, 0)


async def test_a_follow_up_is_counted_for_the_owner_of_the_response_only() -> None:
    harness = engine("openai")
    harness.allowed_fields = ("store", "previous_response_id")
    harness.outbound.script = [(200, [json.dumps(native.response(native.message("Hi"))).encode()])]
    answer = await harness.engine.answer(harness.request(RESPONSES, dialect="openai_responses"))
    body = {**RESPONSES, "previous_response_id": json.loads(answer.body)["id"]}
    harness.outbound.script = [(200, [b'{"input_tokens":42}'])]
    assert (await count(harness, body, "openai_token_count"))[:2] == (200, "provider")
    assert json.loads(harness.outbound.sent[-1].body)["previous_response_id"] == "resp_up1"
    harness.outbound.script = [(404, [b"{}"])]
    status, _, lost = await count(harness, body, "openai_token_count")
    assert (status, lost["error"]["code"]) == (404, "response_not_found"), "the provider no longer stores it"
    sent = len(harness.outbound.sent)
    become_another_user(harness)
    status, _, other = await count(harness, body, "openai_token_count")
    assert (status, other["error"]["code"], len(harness.outbound.sent)) == (404, "response_not_found", sent)


async def test_a_hosted_tool_without_permission_is_refused_as_in_a_call() -> None:
    harness = engine("openai")
    body = {**RESPONSES, "tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]}
    status, _, answer = await count(harness, body, "openai_token_count")
    assert (status, answer["error"]["param"], harness.outbound.sent) == (400, "tools[0].type", [])


@pytest.mark.parametrize("kind", ["anthropic", "openai_compatible"])
async def test_openais_clients_get_an_estimate_from_other_providers(kind: str) -> None:
    harness = engine(kind)
    status, counted_by, body = await count(harness, RESPONSES, "openai_token_count")
    assert (status, counted_by, body["object"]) == (200, "estimate", "response.input_tokens")
    assert 5 < body["input_tokens"] < 50
    assert not harness.outbound.sent


async def test_an_image_is_not_counted_by_its_bytes() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}
    body = {"model": "one/m", "messages": [{"role": "user", "content": [image]}]}
    _, _, counted = await count(engine("openai"), body)
    assert 500 < counted["input_tokens"] < 5000


@pytest.mark.parametrize("status", [404, 405, 501])
@pytest.mark.parametrize(
    ("kind", "body", "dialect"),
    [("anthropic", MESSAGES, "anthropic_token_count"), ("openai", RESPONSES, "openai_token_count")],
)
async def test_a_server_without_this_operation_is_estimated(
    kind: str, body: dict[str, Any], dialect: str, status: int
) -> None:
    answer = await count(engine(kind, status=status, body=b"{}"), body, dialect)
    assert answer[:2] == (200, "estimate")


async def test_a_providers_fault_is_one_of_the_count() -> None:
    status, _, body = await count(engine(status=503, body=b"{}"), MESSAGES)
    assert (status, body["error"]["code"]) == (502, "all_providers_failed")
    status, _, body = await count(engine(body=b'{"tokens": 5}'), MESSAGES)
    assert (status, body["error"]["code"]) == (502, "all_providers_failed")


async def test_no_count_is_requested_for_a_call_that_a_filter_or_a_rule_refuses() -> None:
    harness = engine()
    harness.governance = GovernanceRecords(filters=(keywords(1, "big"),))
    status, _, body = await count(harness, MESSAGES)
    assert (status, body["type"], body["error"]["code"]) == (403, "error", "content_filter_violation")
    assert not harness.outbound.sent
    harness = engine()
    harness.off = {"m"}
    assert (await count(harness, MESSAGES))[0] == 503
    assert not harness.outbound.sent
    status, _, body = await count(engine(), {**MESSAGES, "model": "one/other"})
    assert (status, body["error"]["code"]) == (404, "model_not_found")


async def test_texts_are_redacted_before_they_are_counted() -> None:
    harness = engine()
    await count(harness, {"model": "one/m", "messages": [{"role": "user", "content": f"my card {CARD}"}]})
    assert "4111" not in harness.outbound.sent[0].body.decode()


async def test_a_provider_that_does_not_count_in_time_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_COUNT_TIMEOUT_SECONDS", 0)
    harness = engine()
    harness.stop.at = "connecting"
    assert (await count(harness, MESSAGES))[:2] == (200, "estimate")


async def test_nobody_is_asked_to_approve_a_count() -> None:
    harness = engine()
    harness.flags = {"human_in_loop": True}
    harness.governance = GovernanceRecords(dlp_rules=(rule("project", "prompt", pattern="PRJ-[0-9]{4}"),))
    status, _, _ = await count(harness, {"model": "one/m", "messages": [{"role": "user", "content": "PRJ-1234"}]})
    assert status == 403
    assert not harness.approval_questions
    assert not harness.outbound.sent


@pytest.mark.parametrize(
    ("dialect", "body", "param"),
    [
        ("anthropic_token_count", {**MESSAGES, "stream": True}, "stream"),
        ("anthropic_token_count", {"model": "one/m"}, "messages"),
        ("openai_token_count", {"model": "one/m"}, "input"),
        ("openai_token_count", {**RESPONSES, "previous_response_id": "resp_1"}, "previous_response_id"),
    ],
)
async def test_bad_fields_are_named(dialect: str, body: dict[str, Any], param: str) -> None:
    status, _, answer = await count(engine(), body, dialect)
    assert (status, answer["error"]["param"]) == (400, param)


async def test_only_the_number_of_a_provider_is_passed_on() -> None:
    body = json.dumps({"input_tokens": 7, "note": CARD}).encode()
    assert await count(engine(body=body), MESSAGES) == (200, "provider", {"input_tokens": 7})


@pytest.mark.parametrize("number", [-1, 10**9 + 1, 10**30, 1.5, "7", None, [7]])
async def test_a_number_that_is_no_count_is_a_fault_of_the_provider(number: Any) -> None:
    status, _, body = await count(engine(body=json.dumps({"input_tokens": number}).encode()), MESSAGES)
    assert (status, body["error"]["attempts"][0]["reason"]) == (502, "bad_reply")


CHAT = {"model": "one/m", "messages": [{"role": "user", "content": "hi"}]}


async def chat(harness: EngineHarness, *replies: Any) -> None:
    harness.outbound.script = list(replies)
    await harness.engine.answer(harness.request(CHAT))
    harness.outbound.script = []


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_a_token_count_does_not_close_the_circuit_of_a_model(kind: str) -> None:
    harness = engine(kind)
    for _ in range(4):
        await chat(harness, (500, [b"{}"]))
    harness.outbound.script = [(200, [b'{"input_tokens":42}'])]
    assert (await count(harness, MESSAGES))[0] == 200
    await chat(harness, (500, [b"{}"]))
    assert harness.engine.circuits.count_open(connections=False) == 1
    harness.outbound.script = [(200, [b'{"input_tokens":42}'])]
    assert (await count(harness, MESSAGES))[0] == 200
    assert harness.engine.circuits.count_open(connections=False) == 1


async def test_failed_counts_open_no_circuit_of_a_model() -> None:
    harness = engine()
    for _ in range(10):
        harness.outbound.script = [(500, [b"{}"])]
        await count(harness, MESSAGES)
    assert len(harness.engine.circuits) == 0


async def test_the_rate_limit_of_counts_is_not_that_of_the_model() -> None:
    harness = engine()
    harness.serve("two", "n")
    harness.outbound.script = [(429, [b"{}"], {"retry-after": "30"})]
    await count(harness, MESSAGES)
    harness.outbound.script = [(400, [b"{}"])]
    await harness.engine.answer(harness.request({**CHAT, "fallbacks": ["two/n"]}))
    assert [request.url.partition(".")[0] for request in harness.outbound.sent] == ["http://one", "http://one"]


async def test_token_counts_do_not_change_the_latencies_of_models() -> None:
    harness = engine()
    await count(harness, MESSAGES)
    assert not harness.ports.latencies.medians(stream=False)

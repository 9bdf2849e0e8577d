"""Quirks of providers: what is sent, and what callers are told about it."""

import json
from typing import Any, get_args

import pytest
from tests.support.engine import EngineHarness

from gatehouse.engine.exchange import Answer
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.response_cache.memory import MemoryCache
from gatehouse.platform.routing.fields import ProviderQuirks
from gatehouse.policy.catalog import NO_QUIRKS, Quirks, RemovableField, RoutingPolicyRecord

MESSAGES = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "name": "kim", "content": "hi"},
    {"role": "assistant", "content": "hello", "reasoning_content": "a greeting"},
    {"role": "user", "content": "and?"},
]
CHAT: dict[str, Any] = {"model": "one/m", "messages": MESSAGES}
ANSWER = json.dumps({
    "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
}).encode()  # fmt: skip
EVENTS = [b"data: " + json.dumps({"id": "c1", "choices": [{"delta": {"content": "ok"}}]}).encode(), b"data: [DONE]"]


async def send(
    quirks: Quirks, *, dialect: str = "openai_chat", kind: str = "openai_compatible", **changes: Any
) -> tuple[dict[str, Any], Answer]:
    """Send a chat, and return the body that the provider received, and the answer."""
    harness = EngineHarness()
    harness.serve("one", "m", kind=kind, quirks=quirks)
    harness.outbound.script = [(200, [ANSWER])]
    if changes.get("stream"):
        harness.outbound.script = [(200, [event + b"\n\n" for event in EVENTS])]
    answer = await harness.engine.answer(harness.request({**CHAT, **changes}, dialect=dialect))
    assert answer.status == 200
    if changes.get("stream"):
        assert b"".join([chunk async for chunk in answer.stream or ()])  # type: ignore[union-attr]
    return json.loads(harness.outbound.sent[0].body), answer


def dropped(answer: Answer) -> str | None:
    return {name.lower(): value for name, value in answer.headers.items()}.get("x-gateway-dropped")


async def test_without_quirks_the_body_passes() -> None:
    sent, answer = await send(NO_QUIRKS, max_tokens=9, logprobs=True, seed=1)
    assert sent == {**CHAT, "model": "m", "max_tokens": 9, "logprobs": True, "seed": 1}
    assert dropped(answer) is None


async def test_removed_fields_are_named_in_the_answer() -> None:
    sent, answer = await send(Quirks(removed_fields=("logprobs", "top_logprobs", "seed")), logprobs=True, top_p=0.5)
    assert sent == {**CHAT, "model": "m", "top_p": 0.5}
    assert dropped(answer) == "logprobs"


@pytest.mark.parametrize(
    ("limit_field", "sent_field", "expected"),
    [
        ("max_completion_tokens", "max_tokens", {"max_completion_tokens": 9}),
        ("max_completion_tokens", "max_completion_tokens", {"max_completion_tokens": 9}),
        ("max_tokens", "max_completion_tokens", {"max_tokens": 9}),
    ],
)
async def test_the_output_limit_has_the_name_that_the_provider_reads(
    limit_field: Any, sent_field: str, expected: dict[str, int]
) -> None:
    sent, answer = await send(Quirks(limit_field=limit_field), **{sent_field: 9})
    assert {name: value for name, value in sent.items() if name.startswith("max_")} == expected
    assert dropped(answer) is None


async def test_messages_are_changed_in_copies() -> None:
    quirks = Quirks(developer_role=False, message_names=False, reasoning_content=False)
    sent, answer = await send(quirks)
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"}, {"role": "user", "content": "and?"},
    ]  # fmt: skip
    assert dropped(answer) == "messages.name,messages.reasoning_content"
    assert MESSAGES[0]["role"] == "developer"


async def test_a_fallback_without_quirks_receives_the_original_messages() -> None:
    harness = EngineHarness()
    harness.serve("one", "m", quirks=Quirks(developer_role=False, message_names=False, removed_fields=("seed",)))
    harness.serve("two", "m")
    harness.outbound.script = [(503, [b"{}"]), (200, [ANSWER])]
    answer = await harness.engine.answer(harness.request({**CHAT, "seed": 1, "fallbacks": ["two/m"]}))
    assert answer.status == 200
    first, second = (json.loads(request.body) for request in harness.outbound.sent)
    assert (first["messages"][0]["role"], "seed" in first) == ("system", False)
    assert (second["messages"], second["seed"]) == (MESSAGES, 1)
    assert dropped(answer) is None


@pytest.mark.parametrize(
    ("dialect", "fields"),
    [("openai_chat", {}), ("anthropic_messages", {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]})],
)
async def test_an_answer_from_the_cache_names_the_same_fields(dialect: str, fields: dict[str, Any]) -> None:
    harness = EngineHarness()
    harness.serve("one", "m", quirks=Quirks(removed_fields=("top_p",)))
    harness.ports.cache = MemoryCache(10**7, harness.clock)
    harness.routing_policies = (
        RoutingPolicyRecord(id=new_id(), name="kept", strategy="cost_optimized", cache_ttl_seconds=60),
    )
    harness.outbound.script = [(200, [ANSWER])]
    body = {**CHAT, "top_p": 0.5, **fields}
    answers = [await harness.engine.answer(harness.request(body, dialect=dialect)) for _ in range(2)]
    assert [answer.headers["X-Gateway-Cache"] for answer in answers] == ["miss", "hit"]
    assert [dropped(answer) for answer in answers] == ["top_p"] * 2


async def test_stream_options_are_left_out() -> None:
    with_options, _ = await send(NO_QUIRKS, stream=True)
    assert with_options["stream_options"] == {"include_usage": True}
    without, answer = await send(Quirks(stream_options=False), stream=True)
    assert ("stream_options" in without, dropped(answer)) == (False, None)
    without, answer = await send(Quirks(stream_options=False), stream=True, stream_options={"include_usage": True})
    assert ("stream_options" in without, dropped(answer)) == (False, "stream_options")


async def test_a_converted_body_is_changed_too() -> None:
    body = {"max_tokens": 9, "top_p": 0.5, "system": "Be brief.", "messages": [{"role": "user", "content": "hi"}]}
    quirks = Quirks(limit_field="max_completion_tokens", removed_fields=("top_p",))
    sent, answer = await send(quirks, dialect="anthropic_messages", **body)
    assert (sent["max_completion_tokens"], "max_tokens" in sent, "top_p" in sent) == (9, False, False)
    assert dropped(answer) == "top_p"


@pytest.mark.parametrize("prompt_cache_key", [True, None])
async def test_a_converted_body_keeps_its_prompt_cache_key_if_the_provider_has_one(
    prompt_cache_key: bool | None,
) -> None:
    harness = EngineHarness()
    harness.serve("one", "m", quirks=Quirks(prompt_cache_key=prompt_cache_key))
    harness.outbound.script = [(200, [ANSWER])]
    body = {"model": "one/m", "input": "hi", "prompt_cache_key": "k"}
    await harness.engine.answer(harness.request(body, dialect="openai_responses"))
    assert json.loads(harness.outbound.sent[0].body).get("prompt_cache_key") == ("k" if prompt_cache_key else None)


def test_the_quirks_of_the_api_are_those_of_the_policy() -> None:
    assert list(ProviderQuirks.model_fields) == list(Quirks.__struct_fields__)
    assert Quirks(developer_role=True).over(Quirks(developer_role=False, limit_field="max_tokens")) == Quirks(
        developer_role=True, limit_field="max_tokens"
    )


def test_no_field_that_the_meaning_of_a_request_depends_on_can_be_removed() -> None:
    assert not {"messages", "model", "tools", "tool_choice", "stream", "n", "response_format", "max_tokens"} & {
        *get_args(RemovableField)
    }

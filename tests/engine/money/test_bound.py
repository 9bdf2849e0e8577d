"""The amount reserved for a call is at least what the call can use, whatever the client sends."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from tests.support.engine import EngineHarness

from gatehouse.engine.conversation.dialects import DIALECTS, PASSING
from gatehouse.engine.exchange import CallRequest, Identified
from gatehouse.engine.money.bound import (
    CONTEXT_TOKENS,
    IMAGE_TOKENS,
    Bound,
    bound,
    default_output,
    priced,
)
from gatehouse.policy.catalog import Candidate, ModelRecord, ProviderRecord

TEXT = [{"role": "user", "content": "hi"}]
CHAT: dict[str, Any] = {"model": "acme/m", "messages": TEXT, "max_tokens": 100}
EMBED: dict[str, Any] = {"model": "acme/m", "input": "hi"}
#: Maximum tokens of the bound, apart from output and images, for a request as short as `CHAT`.
FRAME = 300


async def bounded(body: Mapping[str, Any] | bytes, dialect: str = "openai_chat", **model: Any) -> Bound:
    harness = EngineHarness()
    received = harness.request(body, dialect=dialect)
    identified = Identified(
        received=received, caller=harness.caller, policy=await harness.current(None), scope="chat:write",  # type: ignore[arg-type]
    )  # fmt: skip
    request = CallRequest(identified=identified, call=DIALECTS[dialect].decode(received.body))
    prices: dict[str, Any] = {"cost_per_input_token": Decimal("0.000001"), "cost_per_output_token": Decimal("0.00001")}
    record = ModelRecord(id=uuid4(), provider="acme", model_id="m", **{**prices, **model})
    chain = (Candidate(ProviderRecord(id="acme", name="acme", kind="openai_compatible"), record),)
    assert priced(request, chain[0])
    return bound(request, chain, default_output(request, chain))


def content(*parts: Mapping[str, Any]) -> dict[str, Any]:
    return {**CHAT, "messages": [{"role": "user", "content": list(parts)}]}


@pytest.mark.parametrize(
    ("dialect", "limits", "output"),
    [
        ("openai_chat", {}, 16_384),
        ("openai_chat", {"max_tokens": None}, 16_384),
        ("openai_chat", {"max_tokens": 5_000}, 5_000),
        # Servers differ in which of the two limits they apply.
        ("openai_chat", {"max_completion_tokens": 1, "max_tokens": 5_000}, 5_000),
        ("openai_chat", {"max_completion_tokens": 5_000, "max_tokens": 1}, 5_000),
        ("openai_chat", {"max_tokens": 5_000, "n": 7}, 35_000),
        # A field of another dialect, which no provider of this dialect applies.
        ("openai_chat", {"max_output_tokens": 1}, 16_384),
        ("openai_responses", {"max_output_tokens": 5_000}, 5_000),
        ("openai_responses", {"max_tokens": 1, "max_completion_tokens": 1}, 16_384),
        ("anthropic_messages", {"max_tokens": 5_000}, 5_000),
        ("anthropic_messages", {"max_tokens": 5_000, "max_completion_tokens": 1, "max_output_tokens": 1}, 5_000),
    ],
)
async def test_the_limit_of_an_answer_is_the_field_of_its_dialect(
    dialect: str, limits: dict[str, Any], output: int
) -> None:
    talk: dict[str, Any] = {"input": "hi"} if dialect == "openai_responses" else {"messages": TEXT}
    computed_bound = await bounded({"model": "acme/m", **talk, **limits}, dialect)
    assert output <= computed_bound.tokens <= output + FRAME


async def test_a_caller_limit_above_the_catalogs_is_reserved_in_full() -> None:
    """The caller's limit is sent to the provider unchanged, and the catalog may be out of date."""
    assert (await bounded({**CHAT, "max_tokens": 5_000}, max_output_tokens=10)).tokens >= 5_000


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens", "max_output_tokens", "n"])
async def test_embeddings_have_no_output_limit_and_cost_only_their_input(field: str) -> None:
    computed_bound = await bounded({**EMBED, field: 1_000}, "openai_embeddings", cost_per_output_token=None)
    assert computed_bound.nano_usd
    assert computed_bound.tokens <= FRAME


async def test_a_list_of_tokens_or_texts_counts_in_full() -> None:
    assert (await bounded({**EMBED, "input": [[7] * 9_000] * 10}, "openai_embeddings")).tokens >= 90_000
    assert (await bounded({**EMBED, "input": ["word"] * 1_000}, "openai_embeddings")).tokens >= 4_000


@pytest.mark.parametrize(
    "body",
    [
        {**CHAT, "n": 10**18, "max_tokens": 10**18},
        {**CHAT, "max_tokens": 2**63 - 1},
    ],
)
async def test_impossible_limits_do_not_overflow(body: dict[str, Any]) -> None:
    computed_bound = await bounded(body, cost_per_output_token=Decimal(1))
    assert 10**9 <= computed_bound.tokens <= 10**13
    assert computed_bound.nano_usd is not None
    assert computed_bound.nano_usd <= 10**16


IMAGE = {"type": "image_url", "image_url": {"url": "https://x.example/y.png"}}


@pytest.mark.parametrize(
    ("dialect", "body", "least"),
    [
        ("openai_chat", content(IMAGE, IMAGE), 2 * IMAGE_TOKENS),
        ("openai_chat", content({"image_url": "https://x.example/y.png"}), IMAGE_TOKENS),
        ("openai_chat", content({"type": "image", "image": "https://x.example/y.png"}), IMAGE_TOKENS),
        ("openai_chat", content({"type": "image", "source": {"uri": "s3://x/y.png"}}), IMAGE_TOKENS),
        ("openai_chat", content({"type": "file", "file": {"file_id": "f"}}), CONTEXT_TOKENS),
        ("openai_chat", content({"type": "video_url", "video_url": {"url": "https://x.example/v"}}), CONTEXT_TOKENS),
        ("openai_chat", content({"type": "input_audio", "input_audio": {"data": "AAEC" * 99, "format": "wav"}}),
         CONTEXT_TOKENS),
        ("anthropic_messages", content({"type": "document", "source": {"type": "url", "url": "https://x.example/y"}}),
         CONTEXT_TOKENS),
        ("anthropic_messages", content({"type": "image", "source": {"type": "url", "url": "https://x.example/y"}}),
         IMAGE_TOKENS),
        # The model also reads content that the provider looks up.
        ("anthropic_messages", {**CHAT, "tools": [{"type": "web_search_20250305", "name": "web_search"}]},
         CONTEXT_TOKENS),
        ("openai_chat", {**CHAT, "web_search_options": {}}, CONTEXT_TOKENS),
        # The provider adds instructions on tools for its models.
        ("anthropic_messages", {**CHAT, "tools": [{"name": "t", "input_schema": {"type": "object"}}]}, 900),
    ],
)  # fmt: skip
async def test_referenced_content_is_counted(dialect: str, body: dict[str, Any], least: int) -> None:
    assert (await bounded(body, dialect)).tokens >= least


async def test_a_field_name_written_with_escapes_is_recognized() -> None:
    raw = json.dumps(content(IMAGE)).replace("image_url", "\\u0069mage_\\u0075rl").replace('"url"', '"\\u0075rl"')
    assert "url" not in raw
    assert (await bounded(raw.encode())).tokens >= IMAGE_TOKENS


async def test_a_file_counts_as_the_context_window_of_the_model() -> None:
    body = content({"type": "file", "file": {"file_id": "f"}})
    assert (await bounded(body, context_window=1_000_000)).tokens >= 1_000_000


async def test_the_bytes_of_an_image_do_not_count_as_text() -> None:
    sent = content({"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 40_000}})
    assert IMAGE_TOKENS <= (await bounded(sent)).tokens <= IMAGE_TOKENS + FRAME + 100


async def test_texts_and_names_count_in_addition_to_an_image() -> None:
    schema = {f"a_field_with_a_plain_name_{'x' * n}": {"type": "string"} for n in range(300)}
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": schema}}}]
    alone = (await bounded({**CHAT, "tools": tools})).tokens
    assert alone > 300 * 25
    assert (await bounded({**content(IMAGE), "tools": tools})).tokens >= alone + IMAGE_TOKENS


async def test_a_rejected_prediction_is_charged_as_output() -> None:
    body = {**CHAT, "prediction": {"type": "content", "content": "x" * 50_000}}
    result = (await bounded(body)).nano_usd
    assert result is not None
    assert result >= 50_000 * 10_000


@pytest.mark.parametrize("dear", ["cost_per_cached_input_token", "cost_per_cache_write_token"])
async def test_the_most_expensive_class_of_input_counts(dear: str) -> None:
    computed_bound = await bounded(
        {**CHAT, "messages": [{"role": "user", "content": "x" * 9_000}]}, "openai_chat", **{dear: Decimal(1)}
    )
    assert computed_bound.nano_usd is not None
    assert computed_bound.nano_usd >= 9_000 * 10**9


async def test_text_added_by_redaction_and_instructions_is_counted() -> None:
    """The body that is sent to the provider is measured, not the received one."""
    harness = EngineHarness()
    harness.serve("acme", "m")
    received = harness.request(CHAT)
    identified = Identified(
        received=received, caller=harness.caller, policy=await harness.current(None), scope="chat:write",  # type: ignore[arg-type]
    )  # fmt: skip
    request = CallRequest(identified=identified, call=DIALECTS["openai_chat"].decode(received.body))
    request.call.body["messages"][0]["content"] = "[EMAIL_ADDRESS_1] " * 1_000
    chain = (Candidate(harness.providers[0], harness.models[0]),)
    assert bound(request, chain, None).tokens >= 18_000


async def test_the_most_expensive_model_of_the_chain_counts() -> None:
    harness = EngineHarness()
    harness.serve("acme", "cheap", "dear")
    harness.models[1] = msgspec.structs.replace(harness.models[1], cost_per_output_token=Decimal(1))
    received = harness.request(CHAT)
    identified = Identified(
        received=received, caller=harness.caller, policy=await harness.current(None), scope="chat:write",  # type: ignore[arg-type]
    )  # fmt: skip
    request = CallRequest(identified=identified, call=DIALECTS["openai_chat"].decode(received.body))
    chain = tuple(Candidate(harness.providers[0], model) for model in harness.models)
    result = bound(request, chain, None).nano_usd
    assert result is not None
    assert result >= 100 * 10**9


FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object"}}
NAMESPACE = {"type": "namespace", "name": "n", "description": "D", "tools": [FUNCTION, {"type": "custom", "name": "c"}]}


def responses(tools: list[Any], *items: Any) -> dict[str, Any]:
    return {"model": "acme/m", "input": [*TEXT, *items], "max_output_tokens": 100, "tools": tools}


@pytest.mark.parametrize("kind", ["web_search", "web_search_preview", "tool_search", "image_generation"])
async def test_tools_that_are_left_out_reserve_nothing_but_their_bytes(kind: str) -> None:
    assert (await bounded(responses([{"type": kind}]), "openai_responses")).tokens < 100 + FRAME


async def test_tools_that_the_client_runs_reserve_no_context_window() -> None:
    assert (await bounded(responses([NAMESPACE, FUNCTION]), "openai_responses")).tokens < 5_000


async def test_tools_of_items_count_as_those_of_the_request() -> None:
    in_item = await bounded(responses([], {"type": "additional_tools", "tools": [NAMESPACE]}), "openai_responses")
    in_request = await bounded(responses([NAMESPACE]), "openai_responses")
    assert in_request.tokens > 1_000
    assert in_item.tokens >= in_request.tokens


async def test_the_size_of_converted_tools_is_within_the_bound() -> None:
    custom = [{"type": "custom", "name": f"t{number}"} for number in range(200)]
    namespace = {"type": "namespace", "name": "n" * 50, "description": "D" * 20_000, "tools": custom}
    body = responses([namespace])
    dialect = DIALECTS["openai_responses"]
    request = dialect.to_internal(dialect.decode(msgspec.json.encode(body)))
    sent = PASSING["openai_chat"].from_internal(request)
    # Field names and punctuation of a tool are fewer tokens than half of their bytes.
    framing_bytes = 200 * 150
    assert len(msgspec.json.encode(sent)) - framing_bytes < (await bounded(body, "openai_responses")).tokens


@pytest.mark.parametrize("kind", [{}, [], {"a": 1}, ["function"], 5])
async def test_the_type_of_a_tool_may_be_any_value(kind: Any) -> None:
    tools = [{"type": kind, "function": {"name": "f"}}]
    assert (await bounded({**CHAT, "tools": tools})).tokens > CONTEXT_TOKENS

"""Fields that the conversion of a call drops, refuses or adds: in the provider's request and in the answer's header."""

from typing import Any

import msgspec
import pytest
from tests.engine.providers.conftest import call, candidate, everything
from tests.engine.providers.wires import ANTHROPIC_EVENTS, ANTHROPIC_REPLY, OPENAI_REPLY, answering, streaming
from tests.support.upstream import upstream

from gatehouse.engine.conversation.conversion import lost
from gatehouse.engine.conversation.sse import frame
from gatehouse.engine.providers.calls.calling import dropped_fields
from gatehouse.engine.providers.failure import ProviderFailed
from gatehouse.policy.catalog import Candidate

KEYS = {"prompt_cache_key": "k", "seed": 5, "store": False}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_converted_answer_names_the_dropped_fields(ask, stream):
    behave = streaming(ANTHROPIC_EVENTS) if stream else answering(ANTHROPIC_REPLY)
    async with upstream(behave) as server:
        reply = await ask(call(stream=stream, **KEYS), candidate("anthropic", base_url=server.url))
        if stream:
            await everything(reply)
    # The bodies of these tests contain `input`, which is not a field of this dialect.
    assert set(reply.dropped.split(",")) == {"input", "prompt_cache_key", "seed"}


@pytest.mark.parametrize(("characters", "is_named"), [(256, False), (257, True)])
async def test_an_id_of_an_end_user_that_is_replaced_by_a_hash_is_named(ask, characters, is_named):
    async with upstream(answering(ANTHROPIC_REPLY)) as server:
        reply = await ask(call(user="u" * characters), candidate("anthropic", base_url=server.url))
    assert ("user" in reply.dropped.split(",")) is is_named


async def test_an_answer_of_the_same_dialect_names_nothing(ask):
    async with upstream(answering(OPENAI_REPLY)) as server:
        reply = await ask(call(n=2, functions=[], logprobs=True, **KEYS), candidate("openai", base_url=server.url))
        sent = msgspec.json.decode(server.requests[0].body)
    assert reply.dropped == ""
    assert (sent["n"], sent["logprobs"], sent["prompt_cache_key"]) == (2, True, "k")


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"n": 2}, "n"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"function_call": {"name": "f"}}, "function_call"),
        (
            {"messages": [{"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}]},
            "messages[0].function_call",
        ),
    ],
)
async def test_fields_that_would_change_the_answer_are_refused(ask, changes, param):
    async with upstream(answering(ANTHROPIC_REPLY)) as server:
        with pytest.raises(ProviderFailed) as raised:
            await ask(call(**changes), candidate("anthropic", base_url=server.url))
        assert not server.requests
    assert raised.value.client_error is not None
    assert raised.value.client_error.extra == {"param": param}


@pytest.mark.parametrize(("kind", "is_sent"), [("openai", True), ("openai_compatible", False), ("byoe", False)])
async def test_a_prompt_cache_key_reaches_openai(ask, kind, is_sent):
    async with upstream(answering(OPENAI_REPLY)) as server:
        place = candidate(kind, base_url=server.url + "/v1", responses_api=False)
        reply = await ask(call("openai_responses", **KEYS), place)
        sent = msgspec.json.decode(server.requests[0].body)
    assert ("prompt_cache_key" in sent) is is_sent
    assert ("prompt_cache_key" in reply.dropped.split(",")) is not is_sent


@pytest.mark.parametrize(
    ("model", "capabilities", "expected"),
    [
        ("gpt-5", {}, "medium"),
        ("gpt-4o", {}, None),
        ("our-model", {"reasoning": True}, "medium"),
        ("gpt-5", {"reasoning": False}, None),
    ],
)
async def test_the_catalog_or_the_name_decides_whether_a_model_reasons(ask, model, capabilities, expected):
    body: dict[str, Any] = {"thinking": {"type": "enabled", "budget_tokens": 8192}, "max_tokens": 9000}
    async with upstream(answering(OPENAI_REPLY)) as server:
        place = candidate("openai", model, base_url=server.url)
        place = Candidate(place.provider, msgspec.structs.replace(place.model, capabilities=capabilities))
        reply = await ask(call("anthropic_messages", **body), place)
        sent = msgspec.json.decode(server.requests[0].body)
    assert sent.get("reasoning_effort") == expected
    assert ("thinking" in reply.dropped.split(",")) is (expected is None)


async def test_the_catalogs_limit_bounds_the_limit_of_an_answer_with_thinking(ask):
    async with upstream(answering(ANTHROPIC_REPLY)) as server:
        place = candidate("anthropic", "claude-opus-5", base_url=server.url)
        place = Candidate(place.provider, msgspec.structs.replace(place.model, max_output_tokens=20_000))
        reply = await ask(call(max_tokens=None, temperature=0.2), place)
        sent = msgspec.json.decode(server.requests[0].body)
    assert sent["max_tokens"] == 20_000
    assert "temperature" not in sent
    assert "temperature" in reply.dropped.split(",")


async def test_the_header_that_enables_features_of_a_dialect_is_named_where_it_is_dropped(ask):
    enabling = call("anthropic_messages")
    enabling.headers = {"anthropic-beta": "context-management-2025-06-27"}
    async with upstream(answering(OPENAI_REPLY)) as server:
        reply = await ask(enabling, candidate("openai", base_url=server.url))
    assert "anthropic-beta" in reply.dropped.split(",")
    assert "anthropic-beta" in dropped_fields(enabling, candidate("openai", base_url=server.url)).split(",")
    async with upstream(answering(ANTHROPIC_REPLY)) as server:
        reply = await ask(enabling, candidate("anthropic", base_url=server.url))
        assert server.requests[0].headers["anthropic-beta"] == "context-management-2025-06-27"
    assert reply.dropped == ""


GEMINI_PARTS = [
    {"text": "Hi"},
    {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
    {"inlineData": {"mimeType": "audio/wav", "data": "aGk="}},
    {"executableCode": {"language": "PYTHON", "code": "1"}},
]
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
PARTS_OF_ANSWERS: list[tuple[str, dict[str, Any], set[str]]] = [
    (
        "gemini",
        {"candidates": [{"content": {"parts": GEMINI_PARTS}, "groundingMetadata": {"webSearchQueries": ["x"]}}]},
        {"answer.images", "answer.audio", "answer.code", "answer.citations"},
    ),
    (
        "openai",
        {"choices": [{"message": {
            "content": "Hi", "images": [PICTURE], "annotations": [{"type": "url_citation"}], "audio": {"id": "a"},
        }}]},
        {"answer.images", "answer.audio", "answer.citations"},
    ),
    (
        "mistral",
        {"choices": [{"message": {"content": [{"type": "text", "text": "Hi"}, {"type": "reference"}]}}]},
        {"answer.reference"},
    ),
    (
        "anthropic",
        {
            "content": [{"type": "text", "text": "Hi", "citations": [{"type": "page_location"}]},
                        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}],
            "stop_reason": "refusal", "stop_details": {"category": "x"},
        },
        {"answer.citations", "answer.server_tool_use", "answer.stop_details"},
    ),
    (
        "anthropic",
        {
            "content": [{"type": "text", "text": "Hi"}], "stop_reason": "stop_sequence", "stop_sequence": "END",
            "usage": {
                "input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 0, "service_tier": "standard",
                "cache_creation_input_tokens": 9, "server_tool_use": {"web_search_requests": 2},
                "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 5},
            },
        },
        {"answer.stop_sequence", "answer.usage.web_search_requests", "answer.usage.ephemeral_1h_input_tokens"},
    ),
    (
        "openai",
        {
            "choices": [{"message": {"content": "Hi"}}],
            "usage": {
                "prompt_tokens": 9, "completion_tokens": 8, "total_tokens": 17, "queue_time": 0.5,
                "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 2, "accepted_prediction_tokens": 3},
            },
        },
        {"answer.usage.reasoning_tokens", "answer.usage.accepted_prediction_tokens"},
    ),
    (
        "bedrock",
        {
            "output": {"message": {"content": [{"text": "Hi"}, {"image": {"format": "png"}},
                                               {"citationsContent": {"content": [{"text": "x"}]}}]}},
            "stopReason": "end_turn",
        },
        {"answer.images", "answer.citations"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "answer", "names"), PARTS_OF_ANSWERS)
async def test_parts_of_an_answer_that_the_client_does_not_receive_are_named(ask, kind, answer, names):
    request = call("openai_chat" if kind == "anthropic" else "anthropic_messages", seed=5)
    secret = {"api_key": "k", "cloud_access_key_id": "k", "cloud_secret_access_key": "k"}
    async with upstream(answering(msgspec.json.encode(answer))) as server:
        reply = await ask(request, candidate(kind, base_url=server.url, cloud_region="eu-west-1"), secret=secret)
    assert b"Hi" in (reply.body or b"")
    dropped_names = reply.dropped.split(",")
    assert {name for name in dropped_names if name.startswith("answer.")} == names
    assert "input" in dropped_names


def sse(*events: dict[str, Any]) -> list[bytes]:
    return [frame(msgspec.json.encode(event), event.get("type")) for event in events]


def chunk(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "x", "model": "m-1", "choices": [{"index": 0, "delta": delta, **more}]}


STREAMS_WITH_PARTS: list[tuple[str, list[bytes], list[str]]] = [
    (
        "anthropic",
        sse(
            {"type": "message_start", "message": {"id": "x", "model": "m-1"}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use", "name": "s"}},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "Hi"}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta", "citation": {"url": "u"}}},
            {"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": {"category": "x"}}},
            {"type": "message_stop"},
        ),
        ["answer.server_tool_use", "answer.citations", "answer.stop_details"],
    ),
    (
        "anthropic",
        sse(
            {
                "type": "message_start",
                "message": {
                    "id": "x",
                    "model": "m-1",
                    "usage": {
                        "input_tokens": 3,
                        "cache_creation_input_tokens": 5,
                        "cache_creation": {"ephemeral_1h_input_tokens": 5},
                    },
                },
            },
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "stop_sequence", "stop_sequence": "END"},
                "usage": {"output_tokens": 1, "server_tool_use": {"web_search_requests": 2}},
            },
            {"type": "message_stop"},
        ),
        ["answer.usage.ephemeral_1h_input_tokens", "answer.usage.web_search_requests", "answer.stop_sequence"],
    ),
    (
        "openai",
        [
            *sse(
                chunk({"content": "Hi"}, finish_reason="stop"),
                {
                    "id": "x",
                    "choices": [],
                    "usage": {
                        "prompt_tokens": 9,
                        "completion_tokens": 8,
                        "completion_tokens_details": {"reasoning_tokens": 2, "rejected_prediction_tokens": 3},
                    },
                },
            ),
            frame(b"[DONE]"),
        ],
        ["answer.usage.rejected_prediction_tokens", "answer.usage.reasoning_tokens"],
    ),
    (
        "openai",
        [
            *sse(
                chunk({"role": "assistant", "reasoning_content": "hidden"}),
                chunk({"content": "Hi", "images": [PICTURE]}),
                chunk({"annotations": [{"type": "url_citation"}]}, finish_reason="stop"),
            ),
            frame(b"[DONE]"),
        ],
        ["answer.images", "answer.reasoning", "answer.citations"],
    ),
    (
        "gemini",
        sse(
            {"candidates": [{"content": {"parts": [{"text": "Hm", "thought": True}]}}], "responseId": "x"},
            {"candidates": [{"content": {"parts": GEMINI_PARTS}, "groundingMetadata": {"webSearchQueries": ["x"]}}]},
            {"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]},
        ),
        ["answer.reasoning", "answer.images", "answer.audio", "answer.code", "answer.citations"],
    ),
]


@pytest.mark.parametrize(("kind", "events", "names"), STREAMS_WITH_PARTS)
async def test_a_stream_names_the_parts_that_the_client_does_not_receive_before_its_end(ask, kind, events, names):
    client = "openai_chat" if kind == "anthropic" else "anthropic_messages"
    async with upstream(streaming(events)) as server:
        reply = await ask(call(client, stream=True, seed=5), candidate(kind, base_url=server.url))
        sent = await everything(reply)
    comment = f": X-Gateway-Dropped: {','.join(names)}\n\n".encode()
    assert sent.count(b"X-Gateway-Dropped") == 1
    end = b'"type":"message_stop"' if client == "anthropic_messages" else b"[DONE]"
    assert sent.index(b"Hi") < sent.index(comment) < sent.index(end)
    assert list(reply.lost_parts) == names


async def test_a_stream_without_further_parts_has_no_comment(ask):
    async with upstream(streaming(ANTHROPIC_EVENTS)) as server:
        reply = await ask(call(stream=True), candidate("anthropic", base_url=server.url))
        sent = await everything(reply)
    assert b"\n:" not in sent
    assert reply.lost_parts == ()


async def test_the_names_of_a_streams_parts_are_bounded(ask):
    blocks = [
        {"type": "content_block_start", "index": number, "content_block": {"type": f"block\n\n{number}" + "x" * 2000}}
        for number in range(100)
    ]
    async with upstream(streaming([ANTHROPIC_EVENTS[0], *sse(*blocks), *ANTHROPIC_EVENTS[2:]])) as server:
        reply = await ask(call(stream=True), candidate("anthropic", base_url=server.url))
        sent = await everything(reply)
    assert b": X-Gateway-Dropped: ?\n\n" in sent
    assert len(reply.lost_parts) == lost.MAX_NAMES


SIGNED = {"type": "thinking", "thinking": "Hm", "signature": "s"}
SEALED = {"type": "redacted_thinking", "data": "d"}


@pytest.mark.parametrize(
    ("client", "changes", "block", "is_hidden"),
    [
        ("openai_chat", {}, SIGNED, False),
        ("openai_chat", {}, SEALED, True),
        ("openai_completions", {"prompt": "hi"}, SIGNED, True),
        ("openai_responses", {"messages": None}, SIGNED, True),
        ("openai_responses", {"messages": None, "reasoning": {"summary": "auto"}}, SIGNED, False),
        ("openai_responses", {"messages": None, "include": ["reasoning.encrypted_content"]}, SIGNED, False),
        (
            "openai_responses",
            {"messages": None, "include": ["reasoning.encrypted_content"]},
            {**SIGNED, "signature": ""},
            True,
        ),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_reasoning_that_the_client_does_not_receive_is_named(ask, client, changes, block, is_hidden, stream):
    deltas = [
        {"type": "thinking_delta", "thinking": block.get("thinking")},
        {"type": "signature_delta", "signature": block.get("signature")},
    ]
    events = sse(
        {"type": "content_block_start", "index": 0, "content_block": {**block, "thinking": "", "signature": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
    )
    answer = {"content": [block, {"type": "text", "text": "Hi"}], "stop_reason": "end_turn"}
    behave = (
        streaming([ANTHROPIC_EVENTS[0], *events, *ANTHROPIC_EVENTS[2:]])
        if stream
        else answering(msgspec.json.encode(answer))
    )
    async with upstream(behave) as server:
        reply = await ask(call(client, stream=stream, **changes), candidate("anthropic", base_url=server.url))
        if stream:
            await everything(reply)
    assert ("answer.reasoning" in reply.lost_parts) is is_hidden

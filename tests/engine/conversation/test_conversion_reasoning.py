"""The reasoning of answers reaches clients of other dialects, and its signatures come back to the provider."""

from typing import Any

import msgspec
import pytest

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.dialects import DIALECTS, NATIVE
from gatehouse.engine.conversation.dialects.anthropic_messages.content import UNSIGNED
from gatehouse.engine.conversation.form import Completion, Reasoning, Request, Text, ToolCall
from gatehouse.engine.conversation.sse import data_of, events
from gatehouse.engine.providers.registry import SPOKEN
from gatehouse.engine.providers.sandbox.answering import deltas_of

THOUGHT = "First the order, then the card."
SIGNATURE = "c2lnbmF0dXJl" * 8
UNSIGNED_PARTS = (Reasoning(text=THOUGHT), Text("Done."))
SIGNED_PARTS = (
    Reasoning(text=THOUGHT, signature=SIGNATURE),
    Reasoning(signature="c2VhbGVk", is_sealed=True),
    Text("I look."),
    ToolCall(id="c", name="f", arguments="{}"),
)
SUMMARY = {"reasoning": {"effort": "high", "summary": "auto"}}
ENCRYPTED = {"include": ["reasoning.encrypted_content"]}
THINKING = {"thinking": {"type": "adaptive"}}
OMITTED = {"thinking": {"type": "adaptive", "display": "omitted"}}


def call(dialect: str, **body: Any) -> ModelCall:
    return ModelCall(dialect=dialect, model="m", stream=False, body={"input": "hi", **body})


def answer(*parts: Any) -> Completion:
    return Completion(id="x", model="m", parts=parts, finish="stop")


def whole(dialect: str, parts: Any, **body: Any) -> dict[str, Any]:
    rendered: dict[str, Any] = msgspec.json.decode(
        DIALECTS[dialect].render_reply(answer(*parts), call(dialect, **body))
    )
    return rendered


def streamed(dialect: str, parts: Any, **body: Any) -> list[dict[str, Any]]:
    writer = DIALECTS[dialect].stream_writer(call(dialect, **body))
    written = b"".join(map(writer.write, deltas_of(answer(*parts))))
    return [msgspec.json.decode(data) for event in events(written) if (data := data_of(event)) != b"[DONE]"]


def reasoning_items(items: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    """Return the text and the encrypted content of each item with reasoning."""
    return [
        ("".join(part["text"] for part in item["summary"]), item.get("encrypted_content"))
        for item in items
        if item["type"] == "reasoning"
    ]


def final_items(pieces: list[dict[str, Any]]) -> list[dict[str, Any]]:
    (items,) = [event["response"]["output"] for event in pieces if event["type"] == "response.completed"]
    done = [event["item"] for event in pieces if event["type"] == "response.output_item.done"]
    assert sorted(done, key=lambda item: item["id"]) == sorted(items, key=lambda item: item["id"])
    return list(items)


def blocks(dialect_events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the blocks of a stream of messages."""
    shown: list[dict[str, Any]] = []
    for event in dialect_events:
        if event["type"] == "content_block_start":
            shown.append(event["content_block"])
        elif event["type"] == "content_block_delta":
            for field, value in event["delta"].items():
                if field in ("thinking", "signature", "text"):
                    shown[-1][field] += value
    return shown


def test_chat_clients_get_the_text_of_the_reasoning() -> None:
    message = whole("openai_chat", UNSIGNED_PARTS)["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == (THOUGHT, "Done.")
    deltas = [chunk["choices"][0]["delta"] for chunk in streamed("openai_chat", UNSIGNED_PARTS)]
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == THOUGHT
    assert "".join(delta.get("content") or "" for delta in deltas) == "Done."


@pytest.mark.parametrize(
    ("parts", "body", "expected"),
    [
        (UNSIGNED_PARTS, {}, []),
        (UNSIGNED_PARTS, SUMMARY, [(THOUGHT, None)]),
        # Without a signature there is nothing to send back.
        (UNSIGNED_PARTS, ENCRYPTED, []),
        (SIGNED_PARTS, SUMMARY, [(THOUGHT, None), ("", None)]),
        (
            SIGNED_PARTS,
            ENCRYPTED,
            [(THOUGHT, "GatehouseClaudeSignature" + SIGNATURE), ("", "GatehouseClaudeEncryptedc2VhbGVk")],
        ),
    ],
)
def test_clients_of_responses_get_what_they_request(parts: Any, body: dict[str, Any], expected: Any) -> None:
    assert reasoning_items(whole("openai_responses", parts, **body)["output"]) == expected
    pieces = streamed("openai_responses", parts, **body)
    assert reasoning_items(final_items(pieces)) == expected
    assert [event["sequence_number"] for event in pieces] == list(range(len(pieces)))
    texts = [event for event in pieces if event["type"] == "response.reasoning_summary_text.delta"]
    assert "".join(event["delta"] for event in texts) == (THOUGHT if expected else "")


@pytest.mark.parametrize(
    ("parts", "body", "expected"),
    [
        # Clients without `thinking` take the first block for the answer.
        (SIGNED_PARTS, {}, []),
        (SIGNED_PARTS, {"thinking": {"type": "disabled"}}, []),
        (UNSIGNED_PARTS, THINKING, [{"type": "thinking", "thinking": THOUGHT, "signature": UNSIGNED}]),
        (UNSIGNED_PARTS, OMITTED, []),
        (
            SIGNED_PARTS,
            THINKING,
            [
                {"type": "thinking", "thinking": THOUGHT, "signature": SIGNATURE},
                {"type": "redacted_thinking", "data": "c2VhbGVk"},
            ],
        ),
        (
            SIGNED_PARTS,
            OMITTED,
            [
                {"type": "thinking", "thinking": "", "signature": SIGNATURE},
                {"type": "redacted_thinking", "data": "c2VhbGVk"},
            ],
        ),
    ],
)
def test_clients_of_messages_get_thinking_if_they_request_it(parts: Any, body: dict[str, Any], expected: Any) -> None:
    content = whole("anthropic_messages", parts, **body)["content"]
    assert [block for block in content if "thinking" in block["type"]] == expected
    streamed_blocks = blocks(streamed("anthropic_messages", parts, **body))
    assert [block for block in streamed_blocks if "thinking" in block["type"]] == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"reasoning_content": THOUGHT}, THOUGHT),
        ({"reasoning": THOUGHT}, THOUGHT),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}]}, THOUGHT),
        # Forms of other servers that have no text.
        ({"reasoning": {"steps": []}, "reasoning_content": None}, ""),
        ({"content": [{"type": "thinking", "thinking": {"a": 1}}]}, ""),
    ],
)
def test_the_reasoning_of_compatible_servers_is_read(message: dict[str, Any], expected: str) -> None:
    body = {"id": "x", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    parts = DIALECTS["openai_chat"].parse_reply(msgspec.json.encode(body)).parts  # type: ignore[attr-defined]
    assert "".join(part.text for part in parts if isinstance(part, Reasoning)) == expected
    chunk = {"id": "x", "choices": [{"index": 0, "delta": message}]}
    deltas = DIALECTS["openai_chat"].stream_reader().read(b"data: " + msgspec.json.encode(chunk) + b"\n\n")  # type: ignore[attr-defined]
    assert "".join(delta.text for delta in deltas if type(delta).__name__ == "ReasoningDelta") == expected


def second_turn(dialect: str, parts: Any, **body: Any) -> Request:
    """Return a client's next request, which contains the answer and the result of its tool."""
    shown = whole(dialect, parts, **body)
    if dialect == "openai_responses":
        result = {"type": "function_call_output", "call_id": "c", "output": "7"}
        body |= {"input": [{"role": "user", "content": "hi"}, *shown["output"], result]}
    else:
        result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "7"}]}
        answered = {"role": "assistant", "content": shown["content"]}
        body |= {"messages": [{"role": "user", "content": "hi"}, answered, result], "max_tokens": 50_000}
    decoded = DIALECTS[dialect].decode(msgspec.json.encode({"model": "m", **body}))
    request: Request = DIALECTS[dialect].to_internal(decoded)
    return request


@pytest.mark.parametrize(
    ("dialect", "body"),
    [("openai_responses", {**SUMMARY, **ENCRYPTED}), ("anthropic_messages", {"thinking": THINKING["thinking"]})],
)
@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-4-7"])
def test_signed_reasoning_comes_back_before_the_results_of_tools(
    dialect: str, body: dict[str, Any], model: str
) -> None:
    if model == "claude-sonnet-4-5" and dialect == "anthropic_messages":
        body = {"thinking": {"type": "enabled", "budget_tokens": 2048}}
    request = msgspec.structs.replace(second_turn(dialect, SIGNED_PARTS, **body), model=model)
    request = msgspec.structs.replace(request, sampling=msgspec.structs.replace(request.sampling, max_tokens=50_000))
    expected = [
        {"type": "thinking", "thinking": THOUGHT, "signature": SIGNATURE},
        {"type": "redacted_thinking", "data": "c2VhbGVk"},
    ]
    if dialect == "anthropic_messages" and model == "claude-opus-4-7":
        # Without an effort the model does not think.
        request = msgspec.structs.replace(request, effort=second_turn("openai_responses", (), **SUMMARY).effort)
    written = SPOKEN["anthropic_messages"].from_internal(request)
    assert written["messages"][1]["content"][:2] == expected
    assert written["thinking"]["type"] == ("adaptive" if model == "claude-opus-4-7" else "enabled")
    bedrock = SPOKEN["bedrock_converse"].from_internal(msgspec.structs.replace(request, model=f"anthropic.{model}"))
    assert bedrock["messages"][1]["content"][:2] == [
        {"reasoningContent": {"reasoningText": {"text": THOUGHT, "signature": SIGNATURE}}},
        {"reasoningContent": {"redactedContent": "c2VhbGVk"}},
    ]
    assert "thinking" not in str(SPOKEN["openai_chat"].from_internal(request))


def test_newer_models_are_asked_for_the_text_of_their_thinking() -> None:
    request = second_turn("openai_responses", SIGNED_PARTS, **SUMMARY)
    for model, expected in (
        ("claude-opus-4-6", {"type": "adaptive"}),
        ("claude-opus-4-7", {"type": "adaptive", "display": "summarized"}),
        ("claude-fable-5", {"type": "adaptive", "display": "summarized"}),
    ):
        written = SPOKEN["anthropic_messages"].from_internal(msgspec.structs.replace(request, model=model))
        assert written["thinking"] == expected
    gemini = msgspec.structs.replace(request, model="gemini-2.5-flash")
    config = SPOKEN["gemini_generate"].from_internal(gemini)["generationConfig"]["thinkingConfig"]
    assert config["includeThoughts"] is True


def test_thinking_that_no_provider_has_signed_is_not_sent_to_a_provider_of_messages() -> None:
    thinking = {"type": "thinking", "thinking": "x", "signature": UNSIGNED}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [thinking, {"type": "text", "text": "a"}]},
        {"role": "user", "content": "b"},
    ]
    for name in ("anthropic_messages", "anthropic_token_count"):
        dialect: Any = DIALECTS[name]
        decoded = dialect.decode(msgspec.json.encode({"model": "m", "max_tokens": 9, "messages": messages}))
        body, lost = dialect.forward(decoded, "m")
        assert body["messages"][1]["content"] == [{"type": "text", "text": "a"}]
        assert list(lost) == ["messages.thinking"]


def test_reasoning_of_other_providers_is_not_sent_to_a_provider_of_responses() -> None:
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "encrypted_content": "GatehouseClaudeSignature" + SIGNATURE,
    }
    items = [{"role": "user", "content": "hi"}, item]
    decoded = DIALECTS["openai_responses"].decode(msgspec.json.encode({"model": "m", "input": items}))
    body, lost = NATIVE["openai_responses"].forward(decoded, "m", "p")
    assert body["input"] == items[:1]
    assert list(lost) == ["input.reasoning"]

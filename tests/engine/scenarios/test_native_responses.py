"""Calls of the Responses API to providers that have it, through the whole engine."""

import json
from typing import Any

import pytest
from tests.support import native_responses as native
from tests.support.engine import EngineHarness, completion, events

from gatehouse.engine.conversation.dialects.openai_responses.native import mark_of
from gatehouse.engine.exchange import Answer
from gatehouse.engine.records.outcome import Outcome

CARD = "4111 1111 1111 1111"
FUNCTION = {"type": "function", "name": "look", "parameters": {"type": "object"}}


def engine(*allowed: str, **config: Any) -> EngineHarness:
    harness = EngineHarness()
    harness.serve("one", "m", responses_api=True, **config)
    harness.allowed_fields = allowed
    return harness


async def ask(harness: EngineHarness, **body: Any) -> Answer:
    return await harness.engine.answer(
        harness.request({"model": "one/m", "input": "Hello", **body}, dialect="openai_responses")
    )


async def ask_whole(harness: EngineHarness, *items: dict[str, Any], **body: Any) -> dict[str, Any]:
    harness.outbound.script = [(200, [json.dumps(native.response(*items)).encode()])]
    answer = await ask(harness, **body)
    assert answer.status == 200, answer.body
    decoded: dict[str, Any] = json.loads(answer.body)
    return decoded


async def ask_streamed(harness: EngineHarness, pieces: list[bytes], **body: Any) -> list[dict[str, Any]]:
    harness.outbound.script = [(200, list(pieces))]
    answer = await ask(harness, stream=True, **body)
    assert answer.stream is not None, answer.body
    received = b"".join([block async for block in answer.stream])
    return [json.loads(event.partition(b"data: ")[2]) for event in received.split(b"\n\n") if event]


def sent(harness: EngineHarness) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(harness.outbound.sent[-1].body or b"")
    return decoded


def text_of(stream: list[dict[str, Any]], kind: str) -> str:
    return "".join(event["delta"] for event in stream if event["type"] == f"response.{kind}.delta")


def recorded(harness: EngineHarness) -> Outcome:
    (outcome,) = harness.outcomes
    return outcome


async def test_a_call_is_passed_through_with_its_usage() -> None:
    harness = engine()
    items = [
        {"role": "user", "content": "Hi"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": native.ENCRYPTED},
        {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "y"},
    ]
    more = {"include": ["reasoning.encrypted_content"], "truncation": "auto", "parallel_tool_calls": False,
            "x_new": {"a": 1}}  # fmt: skip
    answer = await ask_whole(harness, native.reasoning("Why"), native.message("Hello"), input=items, **more)
    assert harness.outbound.sent[0].url == "http://one.test/v1/responses"
    assert sent(harness) == {"model": "m", "input": items, **more, "store": False}
    marked = {**native.reasoning("Why"), "encrypted_content": mark_of("one") + native.ENCRYPTED}
    assert answer["output"] == [marked, native.message("Hello")]
    assert answer["usage"] == native.USAGE
    assert (answer["model"], answer["id"]) == ("one/m", "resp_up1")
    outcome = recorded(harness)
    assert (outcome.input_tokens, outcome.cached_tokens, outcome.output_tokens) == (12, 8, 9)


async def test_a_response_repeats_no_text_of_the_request() -> None:
    answer = await ask_whole(engine(), native.message("Hello"))
    assert "Repeated" not in json.dumps(answer)
    assert (answer["instructions"], answer["tools"], answer["metadata"]) == (None, [], {})


async def test_every_text_of_a_stream_is_redacted_where_it_begins_and_where_it_is_repeated() -> None:
    harness = engine()
    link = {"type": "url_citation", "url": f"https://x.test/{CARD}", "title": CARD, "start_index": 0, "end_index": 1}
    items = (
        native.reasoning(f"Summary {CARD}.", content=[f"Thought {CARD}."]),
        native.message(f"Text {CARD}.", annotations=[link]),
        native.message(f"Refused {CARD}.", refusal=True),
        native.function_call(json.dumps({"card": CARD})),
        native.custom_call(f"Patch {CARD}."),
    )
    stream = await ask_streamed(harness, native.stream(*items))
    assert CARD not in json.dumps(stream)
    assert text_of(stream, "output_text") == "Text [CREDIT_CARD_1]."
    assert text_of(stream, "refusal") == "Refused [CREDIT_CARD_1]."
    assert text_of(stream, "reasoning_text") == "Thought [CREDIT_CARD_1]."
    assert text_of(stream, "reasoning_summary_text") == "Summary [CREDIT_CARD_1]."
    assert text_of(stream, "function_call_arguments") == '{"card": "[CREDIT_CARD_1]"}'
    assert text_of(stream, "custom_tool_call_input") == "Patch [CREDIT_CARD_1]."
    output = stream[-1]["response"]["output"]
    assert [event["item"] for event in stream if event["type"] == "response.output_item.done"] == output
    assert output[0]["summary"][0]["text"] == "Summary [CREDIT_CARD_1]."
    assert output[0]["content"][0]["text"] == "Thought [CREDIT_CARD_1]."
    assert output[0]["encrypted_content"] == mark_of("one") + native.ENCRYPTED
    assert output[1]["content"][0]["text"] == "Text [CREDIT_CARD_1]."
    assert output[3]["arguments"] == '{"card": "[CREDIT_CARD_1]"}'
    assert [event["sequence_number"] for event in stream] == list(range(len(native.stream(*items))))
    assert recorded(harness).dlp_action == "REDACT"


async def test_an_unchanged_stream_has_the_providers_bytes_except_for_its_responses() -> None:
    harness = engine()
    pieces = native.stream(native.reasoning("Why"), native.message("Hello, all."), native.function_call("{}"))
    harness.outbound.script = [(200, list(pieces))]
    answer = await ask(harness, stream=True)
    assert answer.stream is not None
    received = b"".join([block async for block in answer.stream])
    between = b"".join(pieces[2:-1]).replace(native.ENCRYPTED.encode(), (mark_of("one") + native.ENCRYPTED).encode())
    assert between in received
    assert received.startswith(b"event: response.created\n")
    assert received.count(b"\n\n") == len(pieces)


@pytest.mark.parametrize(
    "repeated_in", ["response.output_text.done", "response.output_item.done", "response.completed"]
)
async def test_a_repetition_with_another_text_is_inspected_too(repeated_in: str) -> None:
    pieces = native.stream(native.message("Hello, nothing here"))
    other = [piece.replace(b"Hello, nothing here", b"4111 1111 1111 1111") for piece in pieces]
    mixed = [
        changed if json.loads(changed.partition(b"data: ")[2])["type"] == repeated_in else piece
        for piece, changed in zip(pieces, other, strict=True)
    ]
    assert mixed != pieces
    stream = await ask_streamed(engine(), mixed)
    assert CARD not in json.dumps(stream)
    assert "[CREDIT_CARD_1]" in json.dumps([event for event in stream if event["type"] == repeated_in])


async def test_texts_of_unknown_events_and_items_are_inspected() -> None:
    pieces = native.stream(native.message("Hello"))
    unknown = [
        {"type": "response.new_thing.delta", "words": [f"a {CARD}"], "sequence_number": 2},
        {"type": "response.output_item.done", "output_index": 9, "sequence_number": 3,
         "item": {"id": "ws_1", "type": "web_search_call", "action": {"query": f"q {CARD}"}}},
    ]  # fmt: skip
    extra = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in unknown]
    stream = await ask_streamed(engine(), [*pieces[:2], *extra, *pieces[2:]])
    assert CARD not in json.dumps(stream)
    assert json.dumps(stream).count("[CREDIT_CARD_1]") == 2


async def test_a_failed_response_ends_the_stream_with_an_error() -> None:
    harness = engine()
    error = {"code": "server_error", "message": "secret text"}
    failed = {
        "type": "response.failed",
        "sequence_number": 9,
        "response": native.response(status="failed", error=error),
    }
    pieces = [*native.stream(native.message("Hello"))[:5], b"data: " + json.dumps(failed).encode() + b"\n\n"]
    stream = await ask_streamed(harness, pieces)
    assert stream[-1]["type"] == "error"
    assert "secret text" not in json.dumps(stream)
    assert recorded(harness).outcome == "error"


async def test_texts_of_a_request_are_redacted() -> None:
    harness = engine()
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": CARD}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": CARD}]},
        {"type": "function_call", "call_id": "c", "name": "look", "arguments": json.dumps({"a": CARD})},
        {"type": "function_call_output", "call_id": "c", "output": CARD},
        {"type": "custom_tool_call", "call_id": "d", "name": "patch", "input": CARD},
        {"type": "custom_tool_call_output", "call_id": "d", "output": [{"type": "input_text", "text": CARD}]},
    ]
    await ask_whole(harness, native.message("Hello"), input=items, instructions=CARD)
    assert CARD not in json.dumps(sent(harness))
    assert json.dumps(sent(harness)).count("[CREDIT_CARD_1]") == 7


async def test_the_fallback_without_the_api_is_converted() -> None:
    harness = engine()
    harness.serve("two", "n")
    harness.outbound.script = [(500, [b"{}"]), (200, [completion("Hi")])]
    body = {"fallbacks": ["two/n"], "truncation": "auto", "include": ["reasoning.encrypted_content"]}
    answer = await ask(harness, **body)
    assert answer.status == 200
    assert [request.url for request in harness.outbound.sent] == [
        "http://one.test/v1/responses", "http://two.test/v1/chat/completions",
    ]  # fmt: skip
    assert json.loads(answer.body)["output"][0]["content"][0]["text"] == "Hi"
    assert "truncation" in answer.headers["X-Gateway-Dropped"].split(",")


def two_providers() -> EngineHarness:
    harness = engine()
    harness.serve("two", "n", responses_api=True)
    return harness


@pytest.mark.parametrize("stream", [False, True])
async def test_only_its_provider_receives_encrypted_reasoning(stream: bool) -> None:
    harness = two_providers()
    if stream:
        received = await ask_streamed(harness, native.stream(native.reasoning("Why"), native.message("Hello")))
        output = received[-1]["response"]["output"]
        assert [event["item"] for event in received if event["type"] == "response.output_item.done"] == output
    else:
        output = (await ask_whole(harness, native.reasoning("Why"), native.message("Hello")))["output"]
    history = [{"role": "user", "content": "Hello"}, *output, {"role": "user", "content": "And?"}]
    await ask_whole(harness, native.message("Again"), input=history)
    assert sent(harness)["input"][1] == native.reasoning("Why")
    # The other provider cannot decrypt the reasoning.
    harness.outbound.script = [(500, [b"{}"]), (200, [json.dumps(native.response(native.message("Hi"))).encode()])]
    answer = await ask(harness, input=history, fallbacks=["two/n"])
    assert harness.outbound.sent[-1].url == "http://two.test/v1/responses"
    assert [item.get("type", "message") for item in sent(harness)["input"]] == ["message", "message", "message"]
    assert answer.headers["X-Gateway-Dropped"] == "input.reasoning"


async def test_marks_of_earlier_answers_end_with_a_dot() -> None:
    harness = two_providers()
    marked = {**native.reasoning("Why"), "encrypted_content": f"{mark_of('one')[:-1]}.{native.ENCRYPTED}"}
    history = [{"role": "user", "content": "Hello"}, marked, {"role": "user", "content": "And?"}]
    await ask_whole(harness, native.message("Again"), input=history)
    assert sent(harness)["input"][1] == native.reasoning("Why")
    await ask_whole(harness, native.message("Again"), input=history, model="two/n")
    assert [item.get("type", "message") for item in sent(harness)["input"]] == ["message", "message"]


async def test_a_compaction_of_another_provider_is_refused() -> None:
    harness = two_providers()
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": native.ENCRYPTED}
    output = (await ask_whole(harness, item))["output"]
    assert output[0]["encrypted_content"] != native.ENCRYPTED
    await ask_whole(harness, native.message("Hi"), input=[*output, {"role": "user", "content": "And?"}])
    assert sent(harness)["input"][0] == item
    answer = await ask(harness, model="two/n", input=[*output, {"role": "user", "content": "And?"}])
    assert answer.status == 400
    assert json.loads(answer.body)["error"]["param"] == "input[0].encrypted_content"


async def test_a_fallback_with_the_api_follows_one_without() -> None:
    harness = EngineHarness()
    harness.serve("two", "n")
    harness.serve("one", "m", responses_api=True)
    harness.outbound.script = [(500, [b"{}"]), (200, native.stream(native.message("Hi")))]
    answer = await ask(harness, model="two/n", fallbacks=["one/m"], stream=True)
    assert answer.stream is not None
    received = b"".join([block async for block in answer.stream])
    assert b'"model":"two/n"' in received
    assert answer.headers["X-Gateway-Model"] == "m"


async def test_a_chat_goes_to_chat_completions() -> None:
    harness = engine()
    harness.outbound.script = [(200, [*events("Hi")])]
    answer = await harness.engine.answer(
        harness.request({"model": "one/m", "messages": [{"role": "user", "content": "a"}], "stream": True})
    )
    assert answer.status == 200
    assert harness.outbound.sent[0].url == "http://one.test/v1/chat/completions"


@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        ({"store": True}, "store", "field_not_allowed"),
        ({"previous_response_id": "resp_1"}, "previous_response_id", "field_not_allowed"),
        ({"service_tier": "priority"}, "service_tier", "field_not_allowed"),
        ({"tools": [{"type": "mcp", "server_url": "https://x"}]}, "tools[0].type", "field_not_allowed"),
        ({"tools": [FUNCTION, {"type": "file_search"}]}, "tools[1].type", "field_not_allowed"),
        ({"tools": [{"type": "code_interpreter"}]}, "tools[0].type", "field_not_allowed"),
        (
            {"input": [{"role": "user", "content": "a"},
                       {"type": "additional_tools", "tools": [{"type": "mcp", "server_url": "https://x"}]}]},
            "input[1].tools[0].type", "field_not_allowed",
        ),
        ({"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}, "tools[0].type",
         "field_not_allowed"),
        ({"background": True}, "background", "invalid_field"),
        ({"conversation": "conv_1"}, "conversation", "invalid_field"),
        ({"prompt": {"id": "p"}}, "prompt", "invalid_field"),
        ({"truncation": "some"}, "truncation", "invalid_field"),
        ({"store": "yes"}, "store", "invalid_field"),
        ({"previous_response_id": 5}, "previous_response_id", "invalid_field"),
    ],
)  # fmt: skip
async def test_fields_without_permission_are_refused_by_name(body: dict[str, Any], param: str, code: str) -> None:
    harness = engine()
    answer = await ask(harness, **body)
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["param"]) == (400, param), error
    assert (error["code"] == "field_not_allowed") == (code == "field_not_allowed")
    assert harness.outbound.sent == []


async def test_tools_that_agents_always_declare_are_left_out_and_named() -> None:
    harness = engine()
    harness.outbound.script = [(200, [json.dumps(native.response(native.message("Hi"))).encode()])]
    added = {"type": "additional_tools", "tools": [FUNCTION, {"type": "web_search"}]}
    answer = await ask(
        harness,
        tools=[FUNCTION, {"type": "web_search_preview"}, {"type": "image_generation"}],
        input=[{"role": "user", "content": "a"}, added],
    )
    assert answer.status == 200
    assert sent(harness)["tools"] == [FUNCTION]
    assert sent(harness)["input"][1]["tools"] == [FUNCTION]
    assert answer.headers["X-Gateway-Dropped"] == "tools.web_search,tools.image_generation"


async def test_an_allowed_tool_passes() -> None:
    harness = engine("tools.web_search", "tools.mcp")
    tools = [{"type": "web_search"}, {"type": "mcp", "server_label": "a", "server_url": "https://x.test"}]
    await ask_whole(harness, native.message("Hi"), tools=tools)
    assert sent(harness)["tools"] == tools


NAMESPACE = {"type": "namespace", "name": "n", "description": "d"}


@pytest.mark.parametrize(
    ("declared", "remaining"),
    [
        (
            {"input": [{"role": "user", "content": "a", "extra_content": {"x": 1}, "tools": [{"type": "web_search"}]}]},
            {"input": [{"role": "user", "content": "a", "tools": []}]},
        ),
        (
            {"input": [{"role": "user", "content": "a", "tools": [{"type": "web_search"}]}]},
            {"input": [{"role": "user", "content": "a", "tools": []}]},
        ),
        (
            {"tools": [{**NAMESPACE, "tools": [FUNCTION, {"type": "web_search"}]}]},
            {"tools": [{**NAMESPACE, "tools": [FUNCTION]}]},
        ),
        (
            {"input": [{"type": "additional_tools", "tools": [{**NAMESPACE, "tools": [{"type": "web_search"}]}]}]},
            {"input": [{"type": "additional_tools", "tools": [{**NAMESPACE, "tools": []}]}]},
        ),
    ],
    ids=["beside extra content", "in a message", "in a namespace", "in an added namespace"],
)
async def test_a_hosted_tool_is_left_out_wherever_it_is_declared(
    declared: dict[str, Any], remaining: dict[str, Any]
) -> None:
    harness = engine()
    harness.outbound.script = [(200, [json.dumps(native.response(native.message("Hi"))).encode()])]
    answer = await ask(harness, **declared)
    assert answer.status == 200, answer.body
    assert {name: sent(harness)[name] for name in remaining} == remaining
    assert answer.headers["X-Gateway-Dropped"] == "tools.web_search"


async def test_a_reference_whose_id_is_no_string_is_refused_by_name() -> None:
    harness = engine()
    answer = await ask(harness, input=[{"type": "item_reference", "id": {"a": 1}}])
    assert (answer.status, json.loads(answer.body)["error"]["param"]) == (400, "input[0].id")


async def test_a_stream_with_more_text_than_an_answer_may_have_ends_with_an_error() -> None:
    harness = engine()
    pieces = native.stream(native.message("some more of the same words " * 200), piece=20)
    harness.ports.max_response_bytes = 200_000
    assert (await ask_streamed(harness, pieces))[-1]["type"] == "response.completed"
    harness.ports.max_response_bytes = 4_000
    assert (await ask_streamed(harness, pieces))[-1]["type"] == "error"
    assert harness.outcomes[-1].error_code == "reply_too_large"

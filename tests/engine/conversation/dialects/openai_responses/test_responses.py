"""The Responses API: the parts of a request that reach a provider, and the provider's answer, whole and streamed."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from gatehouse.engine.conversation.dialects import DIALECTS, PASSING
from gatehouse.engine.conversation.dialects.openai_responses.reply import response_id
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.form import (
    Completion,
    Delta,
    Finish,
    FormMessage,
    GenerationFinished,
    Image,
    StreamEnded,
    StreamStarted,
    Text,
    TextDelta,
    ToolArguments,
    ToolCall,
    ToolResult,
    ToolStarted,
    UsageDelta,
)
from gatehouse.engine.conversation.sse import data_of, events
from gatehouse.engine.conversation.usage import Usage
from gatehouse.foundation.errors import BadRequest

RESPONSES = DIALECTS["openai_responses"]
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
USAGE = Usage(input_tokens=7, output_tokens=5, cached_tokens=3, cache_write_tokens=2)


def decode(**body: Any):
    return RESPONSES.decode(msgspec.json.encode({"model": "p/m", "input": "hi", **body}))


def internal(**body: Any):
    return RESPONSES.to_internal(decode(**body))


def whole(*parts: Text | ToolCall, finish: Finish = "stop", **body: Any) -> dict[str, Any]:
    completion = Completion(id="c1", model="m-1", parts=parts, finish=finish, usage=USAGE, created=5)
    shown = json.loads(RESPONSES.render_reply(completion, decode(**body)))
    Response.model_validate(shown)
    return shown


def streamed(*deltas: Delta, **body: Any) -> list[dict[str, Any]]:
    writer = RESPONSES.stream_writer(decode(stream=True, **body))
    out = b"".join(map(writer.write, (StreamStarted(id="c1", model="m-1", created=5), *deltas, StreamEnded())))
    results = [json.loads(data_of(event)) for event in events(out)]
    for event in results:
        # The types of the openai library accept every event.
        EVENT.validate_python(event)
    assert [event["sequence_number"] for event in results] == list(range(len(results)))
    return results


def test_items_become_messages():
    request = internal(
        instructions="Be kind.",
        input=[
            {"role": "developer", "content": "Be short."},
            {"role": "user", "content": "Weather in Oslo and Bergen?"},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]},
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"place":"Oslo"}'},
            {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": '{"place":"Bergen"}'},
            {"type": "function_call_output", "call_id": "c1", "output": "Rain"},
            {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "Sun"}]},
            {"role": "user", "content": "And?"},
            {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,aGk="}]},
        ],
    )
    assert request.messages == (
        FormMessage("system", (Text("Be kind."),)),
        FormMessage("system", (Text("Be short."),)),
        FormMessage("user", (Text("Weather in Oslo and Bergen?"),)),
        FormMessage(
            "assistant",
            (
                Text("Let me look."),
                ToolCall(id="c1", name="weather", arguments='{"place":"Oslo"}'),
                ToolCall(id="c2", name="weather", arguments='{"place":"Bergen"}'),
            ),
        ),
        FormMessage(
            "user",
            (ToolResult(call_id="c1", content=(Text("Rain"),)), ToolResult(call_id="c2", content=(Text("Sun"),))),
        ),
        FormMessage("user", (Text("And?"),)),
        FormMessage("user", (Image(data="aGk=", media_type="image/png"),)),
    )


def test_settings_reach_a_provider_with_chat_completions():
    request = internal(
        max_output_tokens=50,
        temperature=0.5,
        top_p=0.9,
        reasoning={"effort": "low", "summary": "auto"},
        tools=[{"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}],
        tool_choice={"type": "function", "name": "f"},
        parallel_tool_calls=False,
        text={"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}},
        user="u",
        metadata={"a": "b"},
        store=False,
        service_tier="auto",
    )
    function = {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}
    assert PASSING["openai_chat"].from_internal(request) == {
        "model": "p/m",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 50,
        "temperature": 0.5,
        "top_p": 0.9,
        "reasoning_effort": "low",
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "parallel_tool_calls": False,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True},
        },
        "user": "u",
    }


def test_fields_that_a_provider_does_not_support_are_left_out():
    body = PASSING["anthropic_messages"].from_internal(internal(reasoning={"effort": "high"}, max_output_tokens=5))
    assert body == {
        "model": "p/m",
        "max_tokens": 5,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }


def test_a_whole_answer():
    shown = whole(Text("Hi "), Text("there"), ToolCall(id="t1", name="f", arguments="{}"), Text("after"))
    assert (shown["id"], shown["status"], shown["created_at"], shown["model"]) == ("resp_c1", "completed", 5, "m-1")
    kinds = [(item["type"], item["id"]) for item in shown["output"]]
    assert kinds == [("message", "msg_c1_0"), ("function_call", "fc_c1_1"), ("message", "msg_c1_2")]
    assert [part["text"] for part in shown["output"][0]["content"]] == ["Hi there"]
    assert shown["output"][1]["call_id"] == "t1"
    assert shown["usage"] == {
        "input_tokens": 12,
        "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 17,
    }


@pytest.mark.parametrize(
    ("finish", "status", "reason"),
    [
        ("stop", "completed", None),
        ("tool_calls", "completed", None),
        ("length", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
    ],
)
def test_the_finish_reason_sets_the_status_of_the_response(finish: Finish, status: str, reason: str | None):
    shown = whole(Text("Hi"), finish=finish)
    events_sent = streamed(TextDelta("Hi"), GenerationFinished(reason=finish))
    assert events_sent[-1]["type"] == f"response.{status}"
    for answer in (shown, events_sent[-1]["response"]):
        assert answer["status"] == answer["output"][0]["status"] == status
        assert answer["incomplete_details"] == (None if reason is None else {"reason": reason})


PARTS: list[tuple[Text | ToolCall, ...]] = [
    (),
    (Text("Hello there"),),
    (Text("I cannot.", refusal=True),),
    (Text("Well: "), Text("I cannot.", refusal=True)),
    (ToolCall(id="t1", name="f", arguments='{"a":1}'),),
    (Text("Let me look."), ToolCall(id="t1", name="f", arguments="{}"), ToolCall(id="t2", name="g", arguments="[]")),
    (ToolCall(id="t1", name="f", arguments=""), Text("after"), ToolCall(id="t2", name="g", arguments="[]")),
]


@pytest.mark.parametrize("parts", PARTS)
def test_a_streams_last_event_contains_the_whole_answer(parts: tuple[Text | ToolCall, ...]):
    deltas: list[Delta] = []
    calls = 0
    for part in parts:
        if isinstance(part, Text):
            deltas += [TextDelta(letter, refusal=part.refusal) for letter in part.text]
            continue
        deltas.append(ToolStarted(index=calls, id=part.id, name=part.name))
        deltas += [ToolArguments(index=calls, text=letter) for letter in part.arguments]
        calls += 1
    events_sent = streamed(*deltas, GenerationFinished(reason="stop"), UsageDelta(USAGE))
    assert events_sent[-1]["response"] == whole(*parts)
    done = [event["item"] for event in events_sent if event["type"] == "response.output_item.done"]
    assert sorted(done, key=lambda item: item["id"]) == sorted(whole(*parts)["output"], key=lambda item: item["id"])


def test_tools_that_are_called_side_by_side_stay_apart():
    events_sent = streamed(
        ToolStarted(index=0, id="t1", name="f"),
        ToolStarted(index=1, id="t2", name="g"),
        ToolArguments(index=1, text="[2]"),
        ToolArguments(index=0, text="[1]"),
        GenerationFinished(reason="tool_calls"),
    )
    output = events_sent[-1]["response"]["output"]
    assert [(item["call_id"], item["arguments"]) for item in output] == [("t1", "[1]"), ("t2", "[2]")]


def test_the_answer_repeats_only_settings_of_the_request():
    shown = whole(
        Text("Hi"), instructions="secret", metadata={"a": "secret"}, temperature=0.5, max_output_tokens=9,
        tools=[{"type": "function", "name": "secret"}], tool_choice="required", parallel_tool_calls=False,
    )  # fmt: skip
    assert "secret" not in json.dumps(shown)
    assert (shown["temperature"], shown["max_output_tokens"], shown["tool_choice"]) == (0.5, 9, "required")
    assert shown["parallel_tool_calls"] is False


def test_a_response_without_the_providers_id_gets_a_new_id():
    assert response_id("") != response_id("")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": ""}, "input"),
        ({"input": [{"type": "reasoning", "id": "rs_1", "summary": []}]}, "input"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": 5}]}, "input[0].content"),
        ({"input": [{"role": "user", "content": ["x"]}]}, "input[0].content[0]"),
        ({"input": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "input[0].content[0]"),
        ({"input": [{"type": "function_call", "call_id": "c", "name": "f"}]}, "input[0].arguments"),
        ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id"),
        ({"input": [{"type": "file_search_call"}]}, "input[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tools": [{"type": "function", "name": "f", "parameters": 5}]}, "tools[0].parameters"),
        ({"tool_choice": {"type": "allowed_tools"}}, "tool_choice"),
        ({"text": {"format": {"type": "json_schema", "name": "n"}}}, "text.format"),
    ],
)
def test_a_field_that_is_not_valid_is_named(body: dict[str, Any], param: str):
    with pytest.raises(InvalidField) as raised:
        internal(**body)
    assert raised.value.extra == {"param": param}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "role", "content", "text", "name", "call_id", "arguments", "output", "format"]),
            inner | st.sampled_from(["message", "function", "function_call", "user", "input_text"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)
FIELDS = st.sampled_from(["input", "instructions", "tools", "tool_choice", "text", "reasoning", "include", "store"])


@given(st.dictionaries(FIELDS, JSON, max_size=4))
def test_any_request_is_converted_or_refused_with_400(changes: dict[str, Any]):
    try:
        request = internal(**changes)
        for other in ("openai_chat", "anthropic_messages"):
            msgspec.json.encode(PASSING[other].from_internal(request))
    except BadRequest:
        pass

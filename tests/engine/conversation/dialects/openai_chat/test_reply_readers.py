"""Servers with OpenAI's chat completions: how their answers differ from OpenAI's, and how they are decoded."""

from typing import Any

import msgspec
import pytest

from gatehouse.engine.conversation.dialects import PASSING
from gatehouse.engine.conversation.errors import NotConvertible
from gatehouse.engine.conversation.form import (
    Reasoning,
    ReasoningDelta,
    StreamFailed,
    Text,
    TextDelta,
    ToolArguments,
    ToolCall,
    ToolStarted,
)
from gatehouse.engine.conversation.sse import frame

CHAT = PASSING["openai_chat"]
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}


def whole(message: dict[str, Any], finish: str = "stop"):
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return CHAT.parse_reply(msgspec.json.encode({"id": "x", "choices": [choice]}))


def streamed(*deltas: dict[str, Any], finish: str | None = None):
    reader = CHAT.stream_reader()
    chunks = [{"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} for delta in deltas]
    return [read for chunk in chunks for read in reader.read(frame(msgspec.json.encode(chunk)))][1:]


def test_the_text_parts_of_a_content_are_joined():
    content = [THOUGHT, {"type": "text", "text": "Hi "}, {"type": "text", "text": "there"}]
    assert whole({"content": content}).parts == (Reasoning(text="Hm."), Text("Hi there"))
    assert streamed({"content": content}) == [ReasoningDelta("Hm."), TextDelta("Hi there")]


@pytest.mark.parametrize(("arguments", "read"), [('{"a": 1}', '{"a": 1}'), ({"a": 1}, '{"a":1}'), (None, ""), ("", "")])
def test_arguments_are_text_or_the_object_itself(arguments, read):
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    assert whole({"content": None, "tool_calls": [call]}).parts == (ToolCall(id="c", name="f", arguments=read),)
    events_sent = streamed({"tool_calls": [{"index": 0, **call}]})
    assert events_sent == [
        ToolStarted(index=0, id="c", name="f"),
        *([ToolArguments(index=0, text=read)] if read else []),
    ]


def test_an_answer_that_ends_with_an_error_is_a_failure():
    with pytest.raises(NotConvertible):
        whole({"content": "Bon"}, "error")
    assert isinstance(streamed({"content": "Bon"}, finish="error")[-1], StreamFailed)


def piece(index: int | None, call_id: str | None, name: str | None, arguments: str | None) -> dict[str, Any]:
    body = {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}
    return {"tool_calls": [{key: value for key, value in body.items() if value is not None}]}


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        # OpenAI's own format
        (
            [piece(0, "a", "f", ""), piece(0, None, None, "[1"), piece(1, "b", "g", ""), piece(1, None, None, "[2]"),
             piece(0, None, None, "]")],
            {("a", "f"): "[1]", ("b", "g"): "[2]"},
        ),
        # two calls with the same index, or without an index
        ([piece(0, "a", "f", "[1]"), piece(0, "b", "f", "[2]")], {("a", "f"): "[1]", ("b", "f"): "[2]"}),
        ([piece(None, "a", "f", "[1]"), piece(None, "b", "f", "[2]")], {("a", "f"): "[1]", ("b", "f"): "[2]"}),
        # the id is repeated in each piece, or another id follows
        ([piece(0, "a", "f", "[1"), piece(0, "a", None, "]")], {("a", "f"): "[1]"}),
        ([piece(0, "a", "f", "[1"), piece(0, "a", "f", "]")], {("a", "f"): "[1]"}),
        ([piece(0, "a", "f", "[1"), piece(0, "x", None, "]")], {("a", "f"): "[1]"}),
        # the text "null" or an empty text instead of a missing id
        ([piece(0, "a", "f", "[1"), piece(0, "null", None, "]")], {("a", "f"): "[1]"}),
        ([piece(0, "", "f", "[1"), piece(0, "", "", "]")], {("", "f"): "[1]"}),
    ],
)  # fmt: skip
def test_pieces_of_tool_calls_are_joined(pieces, calls):
    started: dict[int, tuple[str, str]] = {}
    arguments: dict[int, str] = {}
    for delta in streamed(*pieces):
        if isinstance(delta, ToolStarted):
            assert delta.index not in started
            started[delta.index] = (delta.id, delta.name)
        else:
            arguments[delta.index] = arguments.get(delta.index, "") + delta.text
    assert {started[index]: text for index, text in arguments.items()} == calls

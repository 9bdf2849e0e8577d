"""The inputs of tool calls in answers of the messages API, as arguments of functions."""

import json
from typing import Any

import pytest

from gatehouse.engine.conversation.dialects.anthropic_messages import reply
from gatehouse.engine.conversation.dialects.anthropic_messages.stream import Reader
from gatehouse.engine.conversation.form import Delta, ToolArguments, ToolCall
from gatehouse.engine.conversation.sse import frame

_INPUTS = [
    (None, "{}"),
    ([], "{}"),
    ("text", "{}"),
    ({}, "{}"),
    ({"a": 1}, '{"a": 1}'),
]


def block(value: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "t", "name": "f", "input": value}


@pytest.mark.parametrize(("value", "arguments"), _INPUTS)
def test_the_input_of_an_answer(value: Any, arguments: str) -> None:
    (part,) = reply.read(json.dumps({"content": [block(value)]}).encode()).parts
    assert isinstance(part, ToolCall)
    assert part.arguments == arguments


@pytest.mark.parametrize(("value", "arguments"), _INPUTS)
def test_the_input_of_a_stream_without_deltas(value: Any, arguments: str) -> None:
    reader = Reader()
    sent = [
        {"type": "content_block_start", "index": 0, "content_block": block(value)},
        {"type": "content_block_stop", "index": 0},
    ]
    deltas: list[Delta] = [delta for event in sent for delta in reader.read(frame(json.dumps(event).encode()))]
    assert deltas[1:] == [ToolArguments(index=0, text=arguments)]

"""Converts complete answers of the messages API."""

from collections.abc import Iterable
from typing import Any

import msgspec

from gatehouse.engine.conversation.conversion.arguments import arguments_object
from gatehouse.engine.conversation.decoding.answers import UsageReader, decode
from gatehouse.engine.conversation.dialects.anthropic_messages.usage import UsageShape, merged, usage_fields
from gatehouse.engine.conversation.form import Completion, Finish, Text, ToolCall

FINISH: dict[str | None, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
_STOP_REASON: dict[Finish, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}


class _Block(msgspec.Struct):
    type: str
    text: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = msgspec.Raw(b"{}")


class _Reply(msgspec.Struct):
    content: list[_Block]
    id: str = ""
    model: str = ""
    stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: UsageShape | None = None


usage_in = UsageReader("content", UsageShape)
_reply = msgspec.json.Decoder(_Reply)


def read(body: bytes) -> Completion:
    reply = decode(_reply, body)
    parts: list[Text | ToolCall] = []
    for block in reply.content:
        # Other dialects have no equivalent for other blocks, such as thinking.
        if block.type == "text":
            parts.append(Text(block.text))
        elif block.type == "tool_use":
            parts.append(ToolCall(id=block.id, name=block.name, arguments=bytes(block.input).decode()))
    return Completion(
        id=reply.id,
        model=reply.model,
        parts=tuple(parts),
        finish=FINISH.get(reply.stop_reason, "stop"),
        stop_sequence=reply.stop_sequence,
        usage=merged(None, reply.usage),
    )


def write(completion: Completion) -> bytes:
    body: dict[str, Any] = {
        "id": completion.id,
        "type": "message",
        "role": "assistant",
        "model": completion.model,
        "content": _write_parts(completion.parts),
        "stop_reason": stop_reason(completion.finish, completion.stop_sequence),
        "stop_sequence": completion.stop_sequence,
        "usage": usage_fields(completion.usage),
    }
    return msgspec.json.encode(body)


def stop_reason(finish: Finish, stop_sequence: str | None) -> str:
    return "stop_sequence" if stop_sequence is not None else _STOP_REASON[finish]


def _write_parts(parts: Iterable[Text | ToolCall]) -> list[dict[str, Any]]:
    """Return the blocks as in a stream: consecutive texts are one block."""
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, ToolCall):
            blocks.append(
                {"type": "tool_use", "id": part.id, "name": part.name, "input": arguments_object(part.arguments)}
            )
        elif blocks and blocks[-1]["type"] == "text":
            blocks[-1]["text"] += part.text
        else:
            blocks.append({"type": "text", "text": part.text})
    return blocks

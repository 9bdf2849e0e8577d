"""Converts complete answers of the messages API."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from gatehouse.engine.conversation.conversion.arguments import arguments_object
from gatehouse.engine.conversation.decoding.answers import UsageReader, decode
from gatehouse.engine.conversation.dialects.anthropic_messages.content import write_reasoning
from gatehouse.engine.conversation.dialects.anthropic_messages.usage import UsageShape, read_usage, usage_fields
from gatehouse.engine.conversation.form import AnswerPart, Completion, Finish, Reasoning, Text, ToolCall

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
    thinking: str = ""
    signature: str | None = None
    data: Any = None
    id: str = ""
    name: str = ""
    input: msgspec.Raw = msgspec.Raw(b"{}")
    citations: Any = None


class _Reply(msgspec.Struct):
    content: list[_Block]
    id: str = ""
    model: str = ""
    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: Any = None
    usage: msgspec.Raw = msgspec.Raw(b"null")


usage_in = UsageReader("content", UsageShape)
_reply = msgspec.json.Decoder(_Reply)


def arguments_of(value: msgspec.Raw) -> str:
    """Return the input of a tool's call as the arguments of a function. An input that is not an object has none."""
    data = bytes(value)
    return data.decode() if data.startswith(b"{") else "{}"


def read(body: bytes) -> Completion:
    reply = decode(_reply, body)
    parts: list[AnswerPart] = []
    lost: dict[str, None] = {"answer.stop_details": None} if reply.stop_details else {}
    for block in reply.content:
        if block.type == "text":
            parts.append(Text(block.text))
            if block.citations:
                lost["answer.citations"] = None
        elif block.type == "tool_use":
            parts.append(ToolCall(id=block.id, name=block.name, arguments=arguments_of(block.input)))
        elif block.type == "thinking":
            parts.append(Reasoning(text=block.thinking, signature=block.signature or None))
        elif block.type == "redacted_thinking" and isinstance(block.data, str) and block.data:
            parts.append(Reasoning(signature=block.data, is_sealed=True))
        else:
            # Other dialects have no equivalent for other blocks, such as results of tools that the provider runs.
            lost[f"answer.{block.type}"] = None
    usage, lost_usage = read_usage(None, reply.usage)
    return Completion(
        id=reply.id,
        model=reply.model,
        parts=tuple(parts),
        finish=FINISH.get(reply.stop_reason, "stop"),
        stop_sequence=reply.stop_sequence,
        usage=usage,
        lost=(*lost, *lost_usage),
    )


class ShownThinking(NamedTuple):
    """Which thinking a client expects. `blocks` is true if the client can read blocks with thinking. Other clients
    treat the first block as the answer. `texts` is true if the client also reads the texts of these blocks. Otherwise
    it only sends the signatures of the blocks back."""

    blocks: bool
    texts: bool


def shown_thinking(body: Mapping[str, Any]) -> ShownThinking:
    """Return which thinking the client expects, as its request indicates."""
    thinking = body.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") not in ("enabled", "adaptive"):
        return ShownThinking(blocks=False, texts=False)
    return ShownThinking(blocks=True, texts=thinking.get("display") != "omitted")


def write(completion: Completion, body: Mapping[str, Any]) -> bytes:
    """Return the body for the client. `body` is the client's request."""
    parts = _shown_parts(completion.parts, shown_thinking(body))
    answer: dict[str, Any] = {
        "id": completion.id,
        "type": "message",
        "role": "assistant",
        "model": completion.model,
        "content": _write_parts(parts),
        "stop_reason": stop_reason(completion.finish, completion.stop_sequence),
        "stop_sequence": completion.stop_sequence,
        "usage": usage_fields(completion.usage),
    }
    return msgspec.json.encode(answer)


def stop_reason(finish: Finish, stop_sequence: str | None) -> str:
    return "stop_sequence" if stop_sequence is not None else _STOP_REASON[finish]


def is_shown(reasoning: Reasoning, shown: ShownThinking) -> bool:
    """Return whether the client receives a block with the reasoning, with or without its text."""
    return shown.texts or (shown.blocks and reasoning.signature is not None)


def _shown_parts(parts: Iterable[AnswerPart], shown: ShownThinking) -> Iterator[AnswerPart]:
    for part in parts:
        if not isinstance(part, Reasoning) or shown.texts:
            yield part
        elif is_shown(part, shown):
            yield msgspec.structs.replace(part, text="")


def _write_parts(parts: Iterable[AnswerPart]) -> list[dict[str, Any]]:
    """Return the blocks as in a stream: consecutive texts are one block."""
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, ToolCall):
            blocks.append(
                {"type": "tool_use", "id": part.id, "name": part.name, "input": arguments_object(part.arguments)}
            )
        elif isinstance(part, Reasoning):
            blocks.append(write_reasoning(part))
        elif blocks and blocks[-1]["type"] == "text":
            blocks[-1]["text"] += part.text
        else:
            blocks.append({"type": "text", "text": part.text})
    return blocks

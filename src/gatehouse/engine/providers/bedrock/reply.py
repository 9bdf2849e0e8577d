"""Reads whole answers of Converse, which have neither an id nor the model's name."""

from typing import Any, Final
from uuid import uuid4

import msgspec

from gatehouse.engine.conversation.decoding.answers import decode
from gatehouse.engine.conversation.errors import NotConvertible
from gatehouse.engine.conversation.form import AnswerPart, Completion, Finish, Reasoning, Text, ToolCall
from gatehouse.engine.conversation.usage import Usage

_FINISH_BY_REASON: Final[dict[str, Finish]] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}
#: Stop reasons of malformed output: there is no answer, and another attempt may give one.
_MALFORMED: Final = frozenset({"malformed_model_output", "malformed_tool_use"})


class _ToolUse(msgspec.Struct, rename="camel"):
    tool_use_id: str
    name: str
    input: msgspec.Raw = msgspec.Raw(b"{}")


class _ReasoningText(msgspec.Struct):
    text: str = ""
    signature: str | None = None


class _ReasoningContent(msgspec.Struct, rename="camel"):
    reasoning_text: _ReasoningText | None = None
    redacted_content: str | None = None


class _CitedText(msgspec.Struct):
    text: str = ""


class _CitationsContent(msgspec.Struct):
    content: list[_CitedText] = []


class UnreadParts(msgspec.Struct, rename="camel"):
    """Parts of a block that the dialects of clients cannot express."""

    image: Any = None
    audio: Any = None
    video: Any = None
    document: Any = None
    tool_result: Any = None

    @property
    def lost(self) -> tuple[str, ...]:
        """The names of these parts."""
        parts = {
            "images": self.image,
            "audio": self.audio,
            "video": self.video,
            "document": self.document,
            "tool_result": self.tool_result,
        }
        return tuple(f"answer.{name}" for name, value in parts.items() if value is not None)


class _Block(UnreadParts, rename="camel"):
    text: str | None = None
    reasoning_content: _ReasoningContent | None = None
    tool_use: _ToolUse | None = None
    citations_content: _CitationsContent | None = None


class _Message(msgspec.Struct):
    content: list[_Block]


class _Output(msgspec.Struct):
    message: _Message


class UsageShape(msgspec.Struct, rename="camel"):
    """Token counts. The classes are disjoint."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None


class _Reply(msgspec.Struct, rename="camel"):
    output: _Output
    stop_reason: str
    usage: UsageShape | None = None


_reply = msgspec.json.Decoder(_Reply)


def read(body: bytes) -> Completion:
    reply = decode(_reply, body)
    parts: list[AnswerPart] = []
    lost: dict[str, None] = {}
    for block in reply.output.message.content:
        if block.reasoning_content is not None:
            parts += _reasoning(block.reasoning_content)
        elif block.tool_use is not None:
            call = block.tool_use
            parts.append(ToolCall(id=call.tool_use_id, name=call.name, arguments=bytes(call.input).decode()))
        elif block.text:
            parts.append(Text(block.text))
        elif block.citations_content is not None:
            parts += [Text(cited.text) for cited in block.citations_content.content if cited.text]
            lost["answer.citations"] = None
        lost |= dict.fromkeys(block.lost)
    return Completion(
        id=new_id(),
        model="",
        parts=tuple(parts),
        finish=finish_of(reply.stop_reason),
        usage=usage_of(reply.usage),
        lost=tuple(lost),
    )


def _reasoning(content: _ReasoningContent) -> list[AnswerPart]:
    if content.redacted_content:
        return [Reasoning(signature=content.redacted_content, is_sealed=True)]
    shown = content.reasoning_text
    return [] if shown is None else [Reasoning(text=shown.text, signature=shown.signature or None)]


def finish_of(reason: str) -> Finish:
    """Return the finish reason. Raises `NotConvertible` if the output is malformed."""
    if reason in _MALFORMED:
        raise NotConvertible(reason)
    return _FINISH_BY_REASON.get(reason, "stop")


def usage_of(usage: UsageShape | None) -> Usage | None:
    if usage is None:
        return None
    return Usage(
        input_tokens=max(usage.input_tokens, 0),
        output_tokens=max(usage.output_tokens, 0),
        cached_tokens=max(usage.cache_read_input_tokens or 0, 0),
        cache_write_tokens=max(usage.cache_write_input_tokens or 0, 0),
    )


def new_id() -> str:
    return f"msg_{uuid4().hex}"

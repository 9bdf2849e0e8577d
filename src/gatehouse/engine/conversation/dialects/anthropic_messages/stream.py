"""Converts events of the messages API to deltas, and deltas to events."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.decoding.answers import decode
from gatehouse.engine.conversation.dialects.anthropic_messages.content import UNSIGNED
from gatehouse.engine.conversation.dialects.anthropic_messages.reply import (
    FINISH,
    ShownThinking,
    arguments_of,
    stop_reason,
)
from gatehouse.engine.conversation.dialects.anthropic_messages.tap import fault_in
from gatehouse.engine.conversation.dialects.anthropic_messages.usage import read_usage, usage_fields
from gatehouse.engine.conversation.form import (
    Delta,
    GenerationFinished,
    PartsLost,
    ReasoningDelta,
    ReasoningSigned,
    StreamEnded,
    StreamFailed,
    StreamStarted,
    TextDelta,
    ToolArguments,
    ToolStarted,
    UsageDelta,
)
from gatehouse.engine.conversation.sse import data_of, frame
from gatehouse.engine.conversation.usage import Usage

_NO_USAGE: Final = msgspec.Raw(b"null")


class _Message(msgspec.Struct):
    id: str = ""
    model: str = ""
    usage: msgspec.Raw = _NO_USAGE


class _Block(msgspec.Struct):
    type: str = ""
    id: str = ""
    name: str = ""
    text: str = ""
    thinking: str = ""
    input: msgspec.Raw = msgspec.Raw(b"{}")
    data: Any = None
    citations: Any = None


class _Delta(msgspec.Struct):
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: Any = None
    citation: Any = None


class _Event(msgspec.Struct):
    type: str
    index: int = 0
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None
    usage: msgspec.Raw = _NO_USAGE


_event = msgspec.json.Decoder(_Event)
#: types of blocks that are converted; thinking arrives in deltas
_READ_BLOCKS: Final = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})


class Reader:
    """A `StreamReader`. Leaves out blocks that no other dialect has, such as results of tools that the provider
    runs."""

    __slots__ = ("_inputs", "_tools", "_usage")

    def __init__(self) -> None:
        #: index of a tool call, by the index of its content block
        self._tools: dict[int, int] = {}
        #: the inputs of tool calls for which no piece of the arguments has arrived, by block
        self._inputs: dict[int, str] = {}
        self._usage: Usage | None = None

    def read(self, event: bytes) -> Sequence[Delta]:
        data = data_of(event)
        if not data:
            return ()
        parsed = decode(_event, data)
        match parsed.type:
            case "message_start":
                return self._started(parsed.message or _Message())
            case "content_block_start":
                return self._block(parsed.index, parsed.content_block or _Block())
            case "content_block_delta":
                return self._delta(parsed.index, parsed.delta or _Delta())
            case "content_block_stop" if parsed.index in self._inputs:
                return (ToolArguments(index=self._tools[parsed.index], text=self._inputs.pop(parsed.index)),)
            case "message_delta":
                return self._message_delta(parsed.delta or _Delta(), parsed.usage)
            case "message_stop":
                return (StreamEnded(),)
            case "error":
                return (StreamFailed(fault_in(data) or ""),)
            case _:
                return ()

    def _started(self, message: _Message) -> Sequence[Delta]:
        self._usage, lost_usage = read_usage(None, message.usage)
        started = StreamStarted(id=message.id, model=message.model, usage=self._usage)
        return (started, PartsLost(lost_usage)) if lost_usage else (started,)

    def _block(self, index: int, block: _Block) -> Sequence[Delta]:
        if block.type == "tool_use":
            self._tools[index] = len(self._tools)
            self._inputs[index] = arguments_of(block.input)
            return (ToolStarted(index=self._tools[index], id=block.id, name=block.name),)
        if block.type == "redacted_thinking" and isinstance(block.data, str) and block.data:
            return (ReasoningSigned(block.data, is_sealed=True),)
        if block.type not in _READ_BLOCKS:
            return (PartsLost((f"answer.{block.type}",)),)
        # Usually these are empty, and the content follows in deltas.
        deltas: list[Delta] = []
        if block.type == "text" and block.text:
            deltas.append(TextDelta(block.text))
        if block.type == "thinking" and block.thinking:
            deltas.append(ReasoningDelta(block.thinking))
        if block.citations:
            deltas.append(PartsLost(("answer.citations",)))
        return deltas

    def _delta(self, index: int, delta: _Delta) -> Sequence[Delta]:
        if delta.text:
            return (TextDelta(delta.text),)
        if delta.thinking:
            return (ReasoningDelta(delta.thinking),)
        if delta.signature:
            return (ReasoningSigned(delta.signature),)
        if delta.partial_json and index in self._tools:
            self._inputs.pop(index, None)
            return (ToolArguments(index=self._tools[index], text=delta.partial_json),)
        return (PartsLost(("answer.citations",)),) if delta.citation else ()

    def _message_delta(self, delta: _Delta, usage: msgspec.Raw) -> Sequence[Delta]:
        deltas: list[Delta] = [PartsLost(("answer.stop_details",))] if delta.stop_details else []
        if delta.stop_reason is not None:
            reason = FINISH.get(delta.stop_reason, "stop")
            deltas.append(GenerationFinished(reason=reason, stop_sequence=delta.stop_sequence))
        self._usage, lost_usage = read_usage(self._usage, usage)
        if lost_usage:
            deltas.append(PartsLost(lost_usage))
        if self._usage is not None:
            deltas.append(UsageDelta(self._usage))
        return deltas


class Writer:
    """A `StreamWriter`. Only one block is open at a time: a new block closes the previous one. `shown` is what the
    client expects of the thinking."""

    __slots__ = ("_blocks", "_finished", "_kind", "_shown", "_tools", "_usage")

    def __init__(self, shown: ShownThinking) -> None:
        self._shown = shown
        self._blocks = 0
        #: the open block: `text`, `thinking`, `tool`, or None
        self._kind: str | None = None
        self._tools: dict[int, int] = {}
        self._finished = GenerationFinished(reason="stop")
        self._usage: Usage | None = None

    def write(self, delta: Delta) -> bytes:
        match delta:
            case StreamStarted():
                self._usage = delta.usage
                return self._start(delta)
            case TextDelta():
                return self._text(delta.text)
            case ReasoningDelta() | ReasoningSigned():
                return self._reasoning(delta)
            case ToolStarted():
                block = {"type": "tool_use", "id": delta.id, "name": delta.name, "input": {}}
                opening = self._open("tool", block)
                self._tools[delta.index] = self._blocks - 1
                return opening
            case ToolArguments():
                index = self._tools.get(delta.index, self._blocks - 1)
                return self._delta(index, {"type": "input_json_delta", "partial_json": delta.text})
            case GenerationFinished():
                # Sent together with the usage, which is last in other dialects.
                self._finished = delta
                return b""
            case UsageDelta():
                self._usage = delta.usage
                return b""
            case StreamEnded():
                return self._end()
            case PartsLost() | StreamFailed():
                return b""

    def _start(self, started: StreamStarted) -> bytes:
        message: dict[str, Any] = {
            "id": started.id,
            "type": "message",
            "role": "assistant",
            "model": started.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_fields(started.usage),
        }
        return _framed("message_start", message=message)

    def _text(self, text: str) -> bytes:
        opening = b"" if self._kind == "text" else self._open("text", {"type": "text", "text": ""})
        return opening + self._delta(self._blocks - 1, {"type": "text_delta", "text": text})

    def _reasoning(self, delta: ReasoningDelta | ReasoningSigned) -> bytes:
        if isinstance(delta, ReasoningDelta):
            return self._thinking(delta.text) if self._shown.texts else b""
        return self._signed(delta) if self._shown.blocks else b""

    def _thinking(self, text: str) -> bytes:
        opening = b""
        if self._kind != "thinking":
            opening = self._open("thinking", {"type": "thinking", "thinking": "", "signature": ""})
        return (
            opening + self._delta(self._blocks - 1, {"type": "thinking_delta", "thinking": text}) if text else opening
        )

    def _signed(self, signed: ReasoningSigned) -> bytes:
        if signed.is_sealed:
            return self._open("sealed", {"type": "redacted_thinking", "data": signed.signature}) + self._close()
        # Without a text, the block consists of its signature.
        opening = b"" if self._kind == "thinking" else self._thinking("")
        return opening + self._close(signed.signature)

    def _open(self, kind: str, block: dict[str, Any]) -> bytes:
        closing = self._close()
        self._kind = kind
        self._blocks += 1
        return closing + _framed("content_block_start", index=self._blocks - 1, content_block=block)

    def _close(self, signature: str = UNSIGNED) -> bytes:
        if self._kind is None:
            return b""
        signed = b""
        if self._kind == "thinking":
            signed = self._delta(self._blocks - 1, {"type": "signature_delta", "signature": signature})
        self._kind = None
        return signed + _framed("content_block_stop", index=self._blocks - 1)

    def _delta(self, index: int, delta: dict[str, Any]) -> bytes:
        return _framed("content_block_delta", index=index, delta=delta)

    def _end(self) -> bytes:
        sequence = self._finished.stop_sequence
        delta = {"stop_reason": stop_reason(self._finished.reason, sequence), "stop_sequence": sequence}
        closing = self._close()
        return (
            closing + _framed("message_delta", delta=delta, usage=usage_fields(self._usage)) + _framed("message_stop")
        )


def _framed(name: str, **fields: Any) -> bytes:
    return frame(msgspec.json.encode({"type": name, **fields}), name)

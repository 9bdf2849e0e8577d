"""Converts chunks of chat completions to deltas, and deltas to chunks."""

import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.decoding.answers import decode
from gatehouse.engine.conversation.dialects.openai_chat.content import signature_fields, signature_of
from gatehouse.engine.conversation.dialects.openai_chat.reply import (
    FAILED_FINISH_REASON,
    FINISH,
    Cited,
    Function,
    Reasoned,
    text_of,
)
from gatehouse.engine.conversation.dialects.openai_chat.tap import fault_in
from gatehouse.engine.conversation.dialects.openai_chat.usage import read_usage, usage_fields
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

_NO_USAGE: Final = msgspec.Raw(b"null")


class _ToolCallDelta(msgspec.Struct):
    index: int = 0
    id: str | None = None
    function: Function | None = None
    extra_content: Any = None


class _Delta(Reasoned):
    refusal: str | None = None
    tool_calls: list[_ToolCallDelta] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None
    index: int = 0
    logprobs: Any = None


class _Chunk(Cited):
    choices: list[_Choice] | None = None
    id: str = ""
    model: str = ""
    created: int = 0
    usage: msgspec.Raw = _NO_USAGE


_chunk = msgspec.json.Decoder(_Chunk)

#: values of a missing id of a tool call; one library writes "null"
_NO_IDS: Final = (None, "", "null")


class Reader:
    """A `StreamReader`. Reads only the first of several choices, because other dialects have one."""

    __slots__ = ("_calls", "_started")

    def __init__(self) -> None:
        self._started = False
        #: the id and index of each tool call so far
        self._calls: list[tuple[str | None, int]] = []

    def read(self, event: bytes) -> Sequence[Delta]:
        data = data_of(event)
        if not data:
            return ()
        if data == b"[DONE]":
            return (StreamEnded(),)
        chunk = decode(_chunk, data)
        usage, lost_usage = read_usage(chunk.usage)
        if chunk.choices is None and usage is None and (fault := fault_in(data)) is not None:
            return (StreamFailed(fault),)
        deltas: list[Delta] = []
        # Some servers first send a chunk about the prompt, which has neither an id nor choices.
        if not self._started and (chunk.choices or chunk.id or usage is not None):
            self._started = True
            deltas.append(StreamStarted(id=chunk.id, model=chunk.model, created=chunk.created))
        first = next((choice for choice in chunk.choices or () if choice.index == 0), _Choice())
        if lost := (*chunk.lost(first.delta, first.logprobs), *lost_usage):
            deltas.append(PartsLost(lost))
        for choice in chunk.choices or ():
            if choice.finish_reason == FAILED_FINISH_REASON:
                return [*deltas, StreamFailed("the model broke down")]
            if choice.index == 0:
                self._choice(choice, deltas)
        if usage is not None:
            deltas.append(UsageDelta(usage))
        return deltas

    def _choice(self, choice: _Choice, deltas: list[Delta]) -> None:
        if choice.delta is not None:
            if thoughts := choice.delta.thoughts:
                deltas.append(ReasoningDelta(thoughts))
            for text, refusal in ((text_of(choice.delta.content), False), (choice.delta.refusal, True)):
                if text:
                    deltas.append(TextDelta(text, refusal=refusal))
            for call in choice.delta.tool_calls or ():
                self._tool_call(call, deltas)
        if choice.finish_reason is not None:
            deltas.append(GenerationFinished(reason=FINISH.get(choice.finish_reason, "stop")))

    def _tool_call(self, call: _ToolCallDelta, deltas: list[Delta]) -> None:
        function = call.function or Function()
        number = self._number(call, function)
        if number == len(self._calls):
            self._calls.append((call.id, call.index))
            signature = signature_of({"extra_content": call.extra_content})
            deltas.append(ToolStarted(index=number, id=call.id or "", name=function.name or "", signature=signature))
        if arguments := function.text:
            deltas.append(ToolArguments(index=number, text=arguments))

    def _number(self, call: _ToolCallDelta, function: Function) -> int:
        """Return the number of a call. Calls normally have different indexes, but some servers send parallel calls with
        one index and different ids."""
        has_id = call.id not in _NO_IDS
        matches = [number for number, (call_id, _) in enumerate(self._calls) if has_id and call_id == call.id]
        if not matches and not (has_id and function.name):
            matches = [number for number, (_, index) in enumerate(self._calls) if index == call.index]
        return matches[-1] if matches else len(self._calls)


class Writer:
    """A `StreamWriter`. With `send_usage`, the last chunk has the usage."""

    __slots__ = ("_created", "_id", "_model", "_send_usage", "_usage")

    def __init__(self, *, send_usage: bool) -> None:
        self._send_usage = send_usage
        self._usage: Any = None
        self._id = ""
        self._model = ""
        self._created = int(time.time())

    def write(self, delta: Delta) -> bytes:
        match delta:
            case StreamStarted():
                self._id, self._model = delta.id, delta.model
                self._created = delta.created or self._created
                return self._choice({"role": "assistant", "content": ""})
            case TextDelta():
                return self._choice(_text_fields(delta))
            case ReasoningDelta():
                return self._choice({"reasoning_content": delta.text})
            case ToolStarted():
                function = {"name": delta.name, "arguments": ""}
                call = {"index": delta.index, "id": delta.id, "type": "function", "function": function}
                call |= signature_fields(delta.signature)
                return self._choice({"tool_calls": [call]})
            case ToolArguments():
                return self._choice({"tool_calls": [{"index": delta.index, "function": {"arguments": delta.text}}]})
            case GenerationFinished():
                return self._choice({}, delta.reason)
            case UsageDelta():
                self._usage = usage_fields(delta.usage)
                return b""
            case StreamEnded():
                return self._usage_chunk() + frame(b"[DONE]")
            case ReasoningSigned() | PartsLost() | StreamFailed():
                return b""

    def _usage_chunk(self) -> bytes:
        if not self._send_usage or self._usage is None:
            return b""
        return self._chunk([], usage=self._usage)

    def _choice(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        return self._chunk([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}])

    def _chunk(self, choices: list[Any], **more: Any) -> bytes:
        chunk = {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
            "choices": choices,
            **more,
        }
        return frame(msgspec.json.encode(chunk))


def _text_fields(delta: TextDelta) -> dict[str, Any]:
    return {"refusal" if delta.refusal else "content": delta.text}

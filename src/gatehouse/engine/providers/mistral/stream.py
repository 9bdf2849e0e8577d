"""Chunks to deltas. A tool call comes whole in one chunk, or in pieces of one index."""

from collections.abc import Sequence

import msgspec

from gatehouse.engine.conversation.answers import decoded
from gatehouse.engine.conversation.form import (
    Delta,
    Ended,
    Faulted,
    Finished,
    Started,
    TextDelta,
    ToolArguments,
    ToolStarted,
    UsageTold,
)
from gatehouse.engine.conversation.sse import data_of
from gatehouse.engine.providers.mistral.failure import message_in
from gatehouse.engine.providers.mistral.reply import ERROR, FINISH, Content, MistralUsage, ToolCall, text_of, usage_in


class _Delta(msgspec.Struct, frozen=True):
    content: Content = None
    tool_calls: list[ToolCall] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta = _Delta()
    finish_reason: str | None = None
    index: int = 0


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    id: str = ""
    model: str = ""
    created: int = 0
    usage: MistralUsage | None = None


_chunk = msgspec.json.Decoder(_Chunk)


class Reader:
    """See `StreamReader`. Of several choices only the first is read."""

    __slots__ = ("_calls", "_started")

    def __init__(self) -> None:
        self._started = False
        #: the id and index of each tool call so far
        self._calls: list[tuple[str, int]] = []

    def read(self, event: bytes) -> Sequence[Delta]:
        data = data_of(event)
        if not data:
            return ()
        if data == b"[DONE]":
            return (Ended(),)
        chunk = decoded(_chunk, data)
        if chunk.choices is None and chunk.usage is None:
            return (Faulted(message_in(data)),)
        deltas: list[Delta] = []
        if not self._started:
            self._started = True
            deltas.append(Started(id=chunk.id, model=chunk.model, created=chunk.created))
        for choice in chunk.choices or ():
            if choice.finish_reason == ERROR:
                return [*deltas, Faulted("the model broke down")]
            if choice.index == 0:
                self._choice(choice, deltas)
        usage = usage_in(chunk.usage)
        if usage is not None:
            deltas.append(UsageTold(usage))
        return deltas

    def _choice(self, choice: _Choice, deltas: list[Delta]) -> None:
        text = text_of(choice.delta.content)
        if text:
            deltas.append(TextDelta(text))
        for call in choice.delta.tool_calls or ():
            number = self._number(call)
            if number == len(self._calls):
                self._calls.append((call.id or "", call.index))
                deltas.append(ToolStarted(index=number, id=call.id or "", name=call.function.name))
            if call.function.text:
                deltas.append(ToolArguments(index=number, text=call.function.text))
        if choice.finish_reason is not None:
            deltas.append(Finished(reason=FINISH.get(choice.finish_reason, "stop")))

    def _number(self, call: ToolCall) -> int:
        """Which call it is. Calls side by side may all say index 0, with ids of their own."""
        unnamed = call.id in {None, "", "null"}
        for number in reversed(range(len(self._calls))):
            call_id, index = self._calls[number]
            if (unnamed and index == call.index) or (not unnamed and call_id == call.id):
                return number
        return len(self._calls)

"""Converts events of ConverseStream to deltas."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.decoding.answers import decode
from gatehouse.engine.conversation.form import (
    Delta,
    GenerationFinished,
    PartsLost,
    ReasoningDelta,
    ReasoningSigned,
    StreamEnded,
    StreamStarted,
    TextDelta,
    ToolArguments,
    ToolStarted,
    UsageDelta,
)
from gatehouse.engine.conversation.sse import data_of
from gatehouse.engine.providers.bedrock.reply import UnreadParts, UsageShape, finish_of, new_id, usage_of


class _ToolUseDelta(msgspec.Struct, rename="camel"):
    tool_use_id: str = ""
    name: str = ""
    input: str = ""


class _ReasoningPiece(msgspec.Struct, rename="camel"):
    text: str = ""
    signature: str = ""
    redacted_content: str = ""


class _Piece(UnreadParts, rename="camel"):
    text: str | None = None
    reasoning_content: _ReasoningPiece | None = None
    tool_use: _ToolUseDelta | None = None
    citation: Any = None

    @property
    def deltas(self) -> Sequence[Delta]:
        """The names of the parts that the dialects of clients cannot express, as deltas."""
        names = self.lost if self.citation is None else (*self.lost, "answer.citations")
        return (PartsLost(names),) if names else ()


class _Event(msgspec.Struct, rename="camel"):
    """All fields of all events: each event has some of them."""

    content_block_index: int = 0
    start: _Piece | None = None
    delta: _Piece | None = None
    stop_reason: str = ""
    usage: UsageShape | None = None


_event = msgspec.json.Decoder(_Event)


class Reader:
    """See `StreamReader`. An event's name is its type; the last event has the usage."""

    __slots__ = ("_tools", "_without_arguments")

    def __init__(self) -> None:
        #: index of a tool call, by the index of its content block
        self._tools: dict[int, int] = {}
        #: blocks of tools whose arguments have not been received
        self._without_arguments: set[int] = set()

    def read(self, event: bytes) -> Sequence[Delta]:
        name = event.partition(b"\n")[0].removeprefix(b"event: ")
        handler = _HANDLERS.get(name)
        return handler(self, decode(_event, data_of(event))) if handler is not None else ()

    def _message_start(self, event: _Event) -> Sequence[Delta]:
        return (StreamStarted(id=new_id(), model=""),)

    def _block_start(self, event: _Event) -> Sequence[Delta]:
        if event.start is None or event.start.tool_use is None:
            return () if event.start is None else event.start.deltas
        index = self._tools[event.content_block_index] = len(self._tools)
        self._without_arguments.add(event.content_block_index)
        return (ToolStarted(index=index, id=event.start.tool_use.tool_use_id, name=event.start.tool_use.name),)

    def _block_delta(self, event: _Event) -> Sequence[Delta]:
        delta, block = event.delta or _Piece(), event.content_block_index
        if delta.text:
            return (TextDelta(delta.text),)
        if delta.reasoning_content is not None:
            return _reasoning(delta.reasoning_content)
        if delta.tool_use is not None and delta.tool_use.input and block in self._tools:
            self._without_arguments.discard(block)
            return (ToolArguments(index=self._tools[block], text=delta.tool_use.input),)
        return delta.deltas

    def _block_stop(self, event: _Event) -> Sequence[Delta]:
        if event.content_block_index not in self._without_arguments:
            return ()
        self._without_arguments.discard(event.content_block_index)
        return (ToolArguments(index=self._tools[event.content_block_index], text="{}"),)

    def _message_stop(self, event: _Event) -> Sequence[Delta]:
        return (GenerationFinished(reason=finish_of(event.stop_reason)),)

    def _metadata(self, event: _Event) -> Sequence[Delta]:
        usage = usage_of(event.usage)
        return (StreamEnded(),) if usage is None else (UsageDelta(usage), StreamEnded())


def _reasoning(piece: _ReasoningPiece) -> Sequence[Delta]:
    if piece.redacted_content:
        return (ReasoningSigned(piece.redacted_content, is_sealed=True),)
    if piece.signature:
        return (ReasoningSigned(piece.signature),)
    return (ReasoningDelta(piece.text),) if piece.text else ()


_HANDLERS: Final[Mapping[bytes, Callable[[Reader, _Event], Sequence[Delta]]]] = {
    b"messageStart": Reader._message_start,
    b"contentBlockStart": Reader._block_start,
    b"contentBlockDelta": Reader._block_delta,
    b"contentBlockStop": Reader._block_stop,
    b"messageStop": Reader._message_stop,
    b"metadata": Reader._metadata,
}

"""Converts deltas to the typed events of the responses API. A text is sent in pieces. The complete text is then
repeated four times: as text, as part, as item, and in the response."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from gatehouse.engine.conversation.conversion.custom_tools import InputReader
from gatehouse.engine.conversation.dialects.openai_responses.reasoning import (
    ShownReasoning,
    reasoning_item,
    shown_reasoning,
    summary_part,
)
from gatehouse.engine.conversation.dialects.openai_responses.reply import (
    call_item,
    call_item_id,
    message_item,
    part,
    response,
    response_id,
    status,
)
from gatehouse.engine.conversation.dialects.openai_responses.tools import DeclaredTool, read_tools
from gatehouse.engine.conversation.form import (
    Delta,
    Finish,
    GenerationFinished,
    PartsLost,
    Reasoning,
    ReasoningDelta,
    ReasoningSigned,
    StreamEnded,
    StreamFailed,
    StreamStarted,
    TextDelta,
    ToolArguments,
    ToolCall,
    ToolStarted,
    UsageDelta,
)
from gatehouse.engine.conversation.sse import frame
from gatehouse.engine.conversation.usage import Usage


class _Message:
    """A message item that is not complete."""

    __slots__ = ("id", "parts")

    def __init__(self, id: str) -> None:
        self.id = id
        #: the pieces of each part's text, and whether the part is a refusal
        self.parts: list[tuple[list[str], bool]] = []

    def rendered(self, status_: str) -> dict[str, Any]:
        parts = [] if status_ == "in_progress" else self.parts
        return message_item(self.id, status_, [part("".join(text), refusal=refusal) for text, refusal in parts])


class _Reasoning:
    """An item with reasoning that is not complete."""

    __slots__ = ("_id", "_pieces", "_shown", "signed")

    def __init__(self, id: str, shown: ShownReasoning) -> None:
        self._id = id
        self._shown = shown
        self._pieces: list[str] = []
        self.signed: ReasoningSigned | None = None

    @property
    def item_id(self) -> str:
        return f"rs_{self._id}"

    @property
    def has_text(self) -> bool:
        return bool(self._pieces)

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def push(self, piece: str) -> None:
        self._pieces.append(piece)

    def rendered(self, status_: str) -> dict[str, Any]:
        reasoning = Reasoning()
        if status_ != "in_progress":
            signed = self.signed
            signature, is_sealed = (None, False) if signed is None else (signed.signature, signed.is_sealed)
            reasoning = Reasoning(text=self.text, signature=signature, is_sealed=is_sealed)
        return reasoning_item(self._id, reasoning, self._shown)


class _Call:
    """A tool call that is not complete. `tool` is the called tool of the request, or None if the model invented the
    name."""

    __slots__ = ("_arguments", "_id", "_input", "started", "tool")

    def __init__(self, id: str, started: ToolStarted, tool: DeclaredTool | None) -> None:
        self._id = id
        self.started = started
        self.tool = tool
        self._arguments: list[str] = []
        self._input = InputReader() if tool is not None and tool.is_custom else None

    @property
    def item_id(self) -> str:
        return call_item_id(self._id, self.tool)

    @property
    def is_custom(self) -> bool:
        return self._input is not None

    @property
    def text(self) -> str:
        """The arguments so far, or the input of a custom tool."""
        return "".join(self._arguments) if self._input is None else self._input.text

    def push(self, piece: str) -> str:
        """Return the text that a further piece of the arguments adds."""
        if self._input is not None:
            return self._input.push(piece)
        self._arguments.append(piece)
        return piece

    def finish(self) -> str:
        """Return the text that the end of the arguments adds."""
        return "" if self._input is None else self._input.finish()

    def rendered(self, status_: str) -> dict[str, Any]:
        started = self.started
        call = ToolCall(id=started.id, name=started.name, arguments=self.text, signature=started.signature)
        return call_item(self._id, status_, call, self.tool)


class Writer:
    """A `StreamWriter`. Items of tool calls stay open until the end, because calls may be parallel."""

    __slots__ = (
        "_body", "_calls", "_completion_id", "_created", "_finish", "_id", "_items", "_model", "_number", "_shown",
        "_tools", "_unsigned", "_usage",
    )  # fmt: skip

    def __init__(self, body: Mapping[str, Any]) -> None:
        """`body` is the client's request."""
        self._body = body
        self._shown = shown_reasoning(body)
        self._tools = read_tools(body).by_function
        self._completion_id = self._id = self._model = ""
        self._created = 0
        self._items: list[_Message | _Reasoning | _Call] = []
        #: reasoning that is only shown if its signature follows
        self._unsigned: list[str] = []
        #: index of an item, by the index of its tool call
        self._calls: dict[int, int] = {}
        self._finish: Finish = "stop"
        self._usage: Usage | None = None
        self._number = 0

    def write(self, delta: Delta) -> bytes:
        match delta:
            case StreamStarted():
                return b"".join(self._start(delta))
            case TextDelta():
                return b"".join(self._text(delta))
            case ReasoningDelta() | ReasoningSigned():
                return b"".join(self._reasoned(delta))
            case ToolStarted():
                return b"".join(self._call(delta))
            case ToolArguments():
                return self._arguments(delta)
            case GenerationFinished():
                self._finish = delta.reason
            case UsageDelta():
                self._usage = delta.usage
            case StreamEnded():
                return b"".join(self._end())
            case PartsLost() | StreamFailed():
                pass
        return b""

    def _start(self, started: StreamStarted) -> Iterator[bytes]:
        self._completion_id, self._id, self._model = started.id, response_id(started.id), started.model
        self._created = started.created or int(time.time())
        self._usage = started.usage
        rendered = response(self._body, self._id, self._model, self._created)
        yield self._event("response.created", response=rendered)
        yield self._event("response.in_progress", response=rendered)

    def _text(self, delta: TextDelta) -> Iterator[bytes]:
        if not self._items or not isinstance(self._items[-1], _Message):
            yield from self._close_last()
            yield self._added(_Message(self._next_id()))
        message, index = self._items[-1], len(self._items) - 1
        assert isinstance(message, _Message)
        if not message.parts or message.parts[-1][1] != delta.refusal:
            yield from self._part_done(message, index)
            message.parts.append(([], delta.refusal))
            empty = part("", refusal=delta.refusal)
            yield self._part_event("response.content_part.added", message, index, part=empty)
        message.parts[-1][0].append(delta.text)
        if delta.refusal:
            yield self._part_event("response.refusal.delta", message, index, delta=delta.text)
        else:
            yield self._part_event("response.output_text.delta", message, index, delta=delta.text, logprobs=[])

    def _call(self, started: ToolStarted) -> Iterator[bytes]:
        yield from self._close_last()
        self._calls[started.index] = len(self._items)
        yield self._added(_Call(self._next_id(), started, self._tools.get(started.name)))

    def _reasoned(self, delta: ReasoningDelta | ReasoningSigned) -> Iterator[bytes]:
        if isinstance(delta, ReasoningSigned):
            if any(self._shown):
                yield from self._signed(delta)
        elif self._shown.texts:
            yield from self._reasoning(delta.text)
        elif self._shown.signatures:
            self._unsigned.append(delta.text)

    def _reasoning(self, text: str) -> Iterator[bytes]:
        last = self._items[-1] if self._items else None
        if not isinstance(last, _Reasoning) or last.signed is not None:
            yield from self._close_last()
            last = _Reasoning(self._next_id(), self._shown)
            yield self._added(last)
        location = {"item_id": last.item_id, "output_index": len(self._items) - 1, "summary_index": 0}
        if text and not last.has_text:
            yield self._event("response.reasoning_summary_part.added", **location, part=summary_part(""))
        if text:
            last.push(text)
            yield self._event("response.reasoning_summary_text.delta", **location, delta=text)

    def _signed(self, signed: ReasoningSigned) -> Iterator[bytes]:
        if self._unsigned:
            yield from self._reasoning("".join(self._unsigned))
            self._unsigned.clear()
        last = self._items[-1] if self._items else None
        if signed.is_sealed or not isinstance(last, _Reasoning) or last.signed is not None:
            yield from self._close_last()
            last = _Reasoning(self._next_id(), self._shown)
            yield self._added(last)
        last.signed = signed

    def _close_last(self) -> Iterator[bytes]:
        """Yields the end of the last item. Items of tool calls end later."""
        self._unsigned.clear()
        if self._items and not isinstance(self._items[-1], _Call):
            yield from self._done(len(self._items) - 1, "completed")

    def _arguments(self, delta: ToolArguments) -> bytes:
        index = self._calls.get(delta.index)
        item = self._items[index] if index is not None else None
        if not isinstance(item, _Call):
            return b""
        return self._call_delta(item, index, item.push(delta.text))

    def _call_delta(self, call: _Call, index: int | None, text: str) -> bytes:
        if call.is_custom and not text:
            return b""
        kind = "custom_tool_call_input" if call.is_custom else "function_call_arguments"
        return self._event(f"response.{kind}.delta", item_id=call.item_id, output_index=index, delta=text)

    def _end(self) -> Iterator[bytes]:
        closed = status(self._finish)
        for index, item in enumerate(self._items):
            # A message or reasoning followed by another item was completed when that item began.
            if isinstance(item, _Call) or index == len(self._items) - 1:
                yield from self._done(index, closed)
        output = [
            item.rendered("completed" if not isinstance(item, _Call) and item is not self._items[-1] else closed)
            for item in self._items
        ]
        rendered = response(
            self._body, self._id, self._model, self._created, output=output, finish=self._finish, usage=self._usage
        )
        yield self._event(f"response.{closed}", response=rendered)

    def _done(self, index: int, status_: str) -> Iterator[bytes]:
        item = self._items[index]
        if isinstance(item, _Message):
            yield from self._part_done(item, index)
        elif isinstance(item, _Reasoning):
            if item.has_text:
                location = {"item_id": item.item_id, "output_index": index, "summary_index": 0}
                yield self._event("response.reasoning_summary_text.done", **location, text=item.text)
                yield self._event("response.reasoning_summary_part.done", **location, part=summary_part(item.text))
        elif item.is_custom:
            yield self._call_delta(item, index, item.finish())
            location = {"item_id": item.item_id, "output_index": index}
            yield self._event("response.custom_tool_call_input.done", **location, input=item.text)
        else:
            name = item.started.name if item.tool is None else item.tool.key.name
            yield self._event(
                "response.function_call_arguments.done",
                item_id=item.item_id, output_index=index, name=name, arguments=item.text,
            )  # fmt: skip
        yield self._event("response.output_item.done", output_index=index, item=item.rendered(status_))

    def _part_done(self, message: _Message, index: int) -> Iterator[bytes]:
        if not message.parts:
            return
        pieces, refusal = message.parts[-1]
        text = "".join(pieces)
        if refusal:
            yield self._part_event("response.refusal.done", message, index, refusal=text)
        else:
            yield self._part_event("response.output_text.done", message, index, text=text, logprobs=[])
        yield self._part_event("response.content_part.done", message, index, part=part(text, refusal=refusal))

    def _added(self, item: _Message | _Reasoning | _Call) -> bytes:
        self._items.append(item)
        index = len(self._items) - 1
        return self._event("response.output_item.added", output_index=index, item=item.rendered("in_progress"))

    def _part_event(self, kind: str, message: _Message, index: int, **fields: Any) -> bytes:
        location = {"item_id": f"msg_{message.id}", "output_index": index, "content_index": len(message.parts) - 1}
        return self._event(kind, **location, **fields)

    def _next_id(self) -> str:
        return f"{self._completion_id}_{len(self._items)}"

    def _event(self, kind: str, /, **fields: Any) -> bytes:
        number = self._number
        self._number += 1
        return frame(msgspec.json.encode({"type": kind, "sequence_number": number, **fields}), kind)

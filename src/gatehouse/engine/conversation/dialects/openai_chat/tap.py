"""Watching a chat stream that passes as it is: its bytes are searched, and parsed only where they speak of usage."""

import re

import msgspec

from gatehouse.engine.conversation.dialects.openai_chat.usage import UsageShape, usage_of
from gatehouse.engine.conversation.naming import EventNames
from gatehouse.engine.conversation.sse import data_of, event_at, up_to_fault
from gatehouse.engine.conversation.usage import Usage

#: A line break is escaped inside JSON, so this cannot stand in a text.
_DONE = re.compile(rb"^data: ?\[DONE\]", re.MULTILINE)
_USAGE = (b'"usage":{', b'"usage": {')
#: Quotes inside a text are escaped, so none of these can stand in one.
_FAULTS = re.compile(rb'\{"error"|event: error|"object": ?"error"')

#: What ends a stream (its usage, a fault, its last word) stands at the end of what came: the rest of a long block is
#: not searched, because a search costs more than everything else that is done with the block.
_TAIL_BYTES = 2048
_DONE_BYTES = 32


class _UsageChunk(msgspec.Struct, gc=False):
    choices: list[msgspec.Raw] | None = None
    usage: UsageShape | None = None


class _Message(msgspec.Struct, gc=False):
    message: str | None = None


class _ErrorChunk(msgspec.Struct, gc=False):
    """`{"error": ...}`, or an object that is one itself."""

    error: _Message | str | None = None
    object: str | None = None
    message: str | dict[str, msgspec.Raw] | None = None


_usage_chunk = msgspec.json.Decoder(_UsageChunk)
_error_chunk = msgspec.json.Decoder(_ErrorChunk)


class ChatTap:
    """See `Tap`. `model` is the name that the client asked for. `withhold_usage`: the chunk that only tells usage was
    asked for by the gateway, not by the client."""

    __slots__ = ("_last", "_names", "_withhold", "fault", "finished", "usage")

    def __init__(self, model: str, *, withhold_usage: bool) -> None:
        self._names = EventNames(model)
        self._withhold = withhold_usage
        self._last = b""
        self.usage: Usage | None = None
        self.finished = False
        self.fault: str | None = None

    def take(self, block: bytes) -> bytes:
        tail = block if len(block) <= _TAIL_BYTES else block[-_TAIL_BYTES:]
        if b"error" in tail and _FAULTS.search(tail) is not None:
            block, self.fault = up_to_fault(block, fault_in)
        if b'"usage":' in tail and (_USAGE[0] in tail or _USAGE[1] in tail):
            block = self._read_usage(block)
        if b"[DONE]" in tail[-_DONE_BYTES:] and _DONE.search(block, len(block) - _DONE_BYTES) is not None:
            self.finished = True
        elif block:
            self._last = block
        return self._names.in_block(block)

    def complete(self) -> bool:
        # Some servers end without [DONE]; a reason to finish is as good.
        last = self._last.replace(b" ", b"")
        return self.finished or b'"finish_reason":"' in last

    def _read_usage(self, block: bytes) -> bytes:
        """The last usage in the block counts: those that tell it again and again add up themselves."""
        place = block.rfind(_USAGE[0])
        start, end = event_at(block, place if place >= 0 else block.rfind(_USAGE[1]))
        return block[:start] + block[end:] if self._only_usage(block[start:end]) else block

    def _only_usage(self, event: bytes) -> bool:
        try:
            chunk = _usage_chunk.decode(data_of(event))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        if chunk.usage is None:
            return False
        self.usage = usage_of(chunk.usage)
        return self._withhold and chunk.choices == []


def fault_in(data: bytes) -> str | None:
    """The message of a chunk that is an error, else None."""
    try:
        chunk = _error_chunk.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "" if data.startswith(b'{"error"') else None
    error = chunk.error
    if error is None and chunk.object == "error":
        return chunk.message if isinstance(chunk.message, str) else ""
    return (error.message or "") if isinstance(error, _Message) else error

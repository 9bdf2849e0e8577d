"""Observes a chat stream that is passed through: searches its bytes, and parses only events with usage or errors."""

import re

import msgspec

from gatehouse.engine.conversation.conversion.naming import EventNames
from gatehouse.engine.conversation.dialects.openai_chat.usage import UsageShape, usage_of
from gatehouse.engine.conversation.sse import data_of, event_at, up_to_fault
from gatehouse.engine.conversation.usage import Usage

#: line breaks are escaped in JSON strings, so this cannot occur in a text
_DONE = re.compile(rb"^data: ?\[DONE\]", re.MULTILINE)
_USAGE = (b'"usage":{', b'"usage": {')
#: quotes are escaped in JSON strings, so none of these can occur in a text
_FAULTS = re.compile(rb'\{"error"|event: error|"object": ?"error"')

#: The end of a stream (usage, error, [DONE]) is at the end of its last block. The rest of a long block is not searched,
#: because the search costs more than all other work on the block.
_TAIL_BYTES = 2048
_DONE_BYTES = 32


class _UsageChunk(msgspec.Struct, gc=False):
    choices: list[msgspec.Raw] | None = None
    usage: UsageShape | None = None


class _Message(msgspec.Struct, gc=False):
    message: str | None = None


class _ErrorChunk(msgspec.Struct, gc=False):
    """An error: `{"error": ...}`, or an object with the error's fields."""

    error: _Message | str | None = None
    object: str | None = None
    message: str | dict[str, msgspec.Raw] | None = None


_usage_chunk = msgspec.json.Decoder(_UsageChunk)
_error_chunk = msgspec.json.Decoder(_ErrorChunk)


class ChatTap:
    """A `Tap`. `model` is the requested name. `withhold_usage`: the gateway, not the client, requested the chunk with
    only the usage."""

    __slots__ = ("_last_block", "_names", "_withhold_usage", "fault", "finished", "usage")

    def __init__(self, model: str, *, withhold_usage: bool) -> None:
        self._names = EventNames(model)
        self._withhold_usage = withhold_usage
        self._last_block = b""
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
            self._last_block = block
        return self._names.in_block(block)

    def complete(self) -> bool:
        # Some servers end without [DONE]; a finish reason is enough.
        last = self._last_block.replace(b" ", b"")
        return self.finished or b'"finish_reason":"' in last

    def _read_usage(self, block: bytes) -> bytes:
        """Reads the last usage in the block: servers that send it repeatedly send running totals. Returns the block
        without a withheld chunk."""
        position = block.rfind(_USAGE[0])
        start, end = event_at(block, position if position >= 0 else block.rfind(_USAGE[1]))
        return block[:start] + block[end:] if self._only_usage(block[start:end]) else block

    def _only_usage(self, event: bytes) -> bool:
        """Reads an event's usage. Returns whether the event is to be withheld."""
        try:
            chunk = _usage_chunk.decode(data_of(event))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        if chunk.usage is None:
            return False
        self.usage = usage_of(chunk.usage)
        return self._withhold_usage and chunk.choices == []


def fault_in(data: bytes) -> str | None:
    """Return the message of an error chunk, or None for another chunk."""
    try:
        chunk = _error_chunk.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "" if data.startswith(b'{"error"') else None
    error = chunk.error
    if error is None and chunk.object == "error":
        return chunk.message if isinstance(chunk.message, str) else ""
    return (error.message or "") if isinstance(error, _Message) else error

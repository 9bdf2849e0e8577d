"""Watching a chat stream that passes as it is: its bytes are searched, and parsed only where they speak of usage."""

import re

import msgspec

from gatehouse.engine.conversation.dialects.openai_chat.usage import UsageShape, usage_of
from gatehouse.engine.conversation.sse import data_of, event_at, events
from gatehouse.engine.conversation.usage import Usage

#: A line break is escaped inside JSON, so this cannot stand in a text.
_DONE = re.compile(rb"^data: ?\[DONE\]", re.MULTILINE)
_USAGE = re.compile(rb'"usage": ?\{')


class _UsageChunk(msgspec.Struct, gc=False):
    choices: list[msgspec.Raw] | None = None
    usage: UsageShape | None = None


class _Message(msgspec.Struct, gc=False):
    message: str | None = None


class _ErrorChunk(msgspec.Struct, gc=False):
    error: _Message | str | None = None


_usage_chunk = msgspec.json.Decoder(_UsageChunk)
_error_chunk = msgspec.json.Decoder(_ErrorChunk)


class ChatTap:
    """See `Tap`. `withhold_usage`: the chunk that only tells usage was asked for by the gateway, not by the client."""

    __slots__ = ("_last", "_withhold", "fault", "finished", "usage")

    def __init__(self, *, withhold_usage: bool) -> None:
        self._withhold = withhold_usage
        self._last = b""
        self.usage: Usage | None = None
        self.finished = False
        self.fault: str | None = None

    def take(self, block: bytes) -> bytes:
        # One search each for what most blocks do not have; only a hit is looked at more closely.
        if b"error" in block and (b'{"error"' in block or b"event: error" in block):
            block = self._stop_at_fault(block)
        if b'"usage":' in block and (b'"usage":{' in block or b'"usage": {' in block):
            block = self._read_usage(block)
        if b"[DONE]" in block and _DONE.search(block) is not None:
            self.finished = True
        elif block:
            self._last = block
        return block

    def complete(self) -> bool:
        # Some servers end without [DONE]; a reason to finish is as good.
        last = self._last.replace(b" ", b"")
        return self.finished or b'"finish_reason":"' in last

    def _read_usage(self, block: bytes) -> bytes:
        position = 0
        while (hit := _USAGE.search(block, position)) is not None:
            start, end = event_at(block, hit.start())
            if self._only_usage(block[start:end]):
                block = block[:start] + block[end:]
                position = start
            else:
                position = end
        return block

    def _only_usage(self, event: bytes) -> bool:
        try:
            chunk = _usage_chunk.decode(data_of(event))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        if chunk.usage is None:
            return False
        self.usage = usage_of(chunk.usage)
        return self._withhold and chunk.choices == []

    def _stop_at_fault(self, block: bytes) -> bytes:
        kept = []
        for event in events(block):
            message = fault_in(data_of(event))
            if message is not None:
                self.fault = message
                break
            kept.append(event)
        return b"".join(kept)


def fault_in(data: bytes) -> str | None:
    """The message of a chunk that is an error, else None."""
    try:
        error = _error_chunk.decode(data).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "" if data.startswith(b'{"error"') else None
    return (error.message or "") if isinstance(error, _Message) else error

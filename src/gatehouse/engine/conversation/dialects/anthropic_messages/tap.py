"""Observes a stream of the messages API that is passed through."""

from collections.abc import Callable

import msgspec

from gatehouse.engine.conversation.conversion import naming
from gatehouse.engine.conversation.dialects.anthropic_messages import containers
from gatehouse.engine.conversation.dialects.anthropic_messages.usage import UsageShape, merged
from gatehouse.engine.conversation.sse import data_of, event_at, up_to_fault
from gatehouse.engine.conversation.usage import Usage


class _Started(msgspec.Struct, gc=False):
    usage: UsageShape | None = None


class _Event(msgspec.Struct, gc=False):
    usage: UsageShape | None = None
    message: _Started | None = None


class _Error(msgspec.Struct, gc=False):
    message: str = ""


class _Fault(msgspec.Struct, gc=False):
    type: str = ""
    error: _Error | None = None


_event = msgspec.json.Decoder(_Event)
_fault = msgspec.json.Decoder(_Fault)


class MessagesTap:
    """A `Tap`. `model` is the requested name. `public_container` converts the provider's id of a container to the
    client's."""

    __slots__ = ("_model", "_named", "_public_container", "fault", "finished", "usage")

    def __init__(self, model: str, public_container: Callable[[str], str] | None = None) -> None:
        self._model = model
        self._public_container = public_container
        self._named = False
        self.usage: Usage | None = None
        self.finished = False
        self.fault: str | None = None

    def take(self, block: bytes) -> bytes:
        position = 0
        while (position := block.find(b'"usage":', position)) >= 0:
            start, position = event_at(block, position)
            self._read_usage(block[start:position])
        # Quotes are escaped in JSON strings, so neither of these can occur in a text.
        if b'"message_stop"' in block:
            self.finished = True
        if b'"error"' in block:
            block, self.fault = up_to_fault(block, fault_in)
        if self._public_container is not None:
            block = containers.in_block(block, self._public_container)
        if not self._named and b'"message_start"' in block:
            self._named = True
            return naming.in_object(block, "message", self._model)
        return block

    def complete(self) -> bool:
        return self.finished

    def _read_usage(self, event: bytes) -> None:
        try:
            parsed = _event.decode(data_of(event))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        self.usage = merged(self.usage, parsed.message.usage if parsed.message is not None else None)
        self.usage = merged(self.usage, parsed.usage)


def fault_in(data: bytes) -> str | None:
    """Return the message of an error event, or None for another event."""
    try:
        fault = _fault.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if fault.type != "error":
        return None
    return fault.error.message if fault.error is not None else ""

"""Observes a stream of a provider that has the Responses API. Rewrites the events that contain a response, and reads
the usage and the error of the response from them."""

from typing import Final

import msgspec

from gatehouse.engine.conversation.dialects.openai_responses.native import ResponseEditor
from gatehouse.engine.conversation.dialects.openai_responses.usage import UsageShape, usage_of
from gatehouse.engine.conversation.errors import NotConvertible
from gatehouse.engine.conversation.sse import data_of, events, frame
from gatehouse.engine.conversation.usage import Usage

#: Quotes are escaped in JSON strings, so none of these can occur in a text.
_RESPONSE: Final = b'"response":'
_ERROR: Final = b'"error"'
_DONE: Final = b"data: [DONE]"
#: types of the events that end a stream
_FINAL: Final = frozenset({"response.completed", "response.incomplete"})


class _Error(msgspec.Struct, gc=False):
    message: str | None = None


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    message: str | None = None
    error: _Error | None = None


class _TappedResponse(msgspec.Struct, gc=False):
    usage: UsageShape | None = None
    error: _Error | None = None


_event = msgspec.json.Decoder(_Event)
_response = msgspec.json.Decoder(_TappedResponse)
_text: msgspec.json.Decoder[str] = msgspec.json.Decoder(str)
_members: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class ResponsesTap:
    """A `Tap`."""

    __slots__ = ("_editor", "fault", "finished", "usage")

    def __init__(self, editor: ResponseEditor) -> None:
        self._editor = editor
        self.usage: Usage | None = None
        self.finished = False
        self.fault: str | None = None

    def take(self, block: bytes) -> bytes:
        if _RESPONSE in block or _ERROR in block or _DONE in block:
            out: list[bytes] = []
            for event in events(block):
                if _RESPONSE in event or _ERROR in event:
                    taken = self._take_event(event)
                    if self.fault is not None:
                        break
                    out.append(taken)
                elif not event.startswith(_DONE):
                    # Some servers send the end marker of a chat stream, which clients of this API do not expect.
                    out.append(event)
            block = b"".join(out)
        return self._editor.edited(block)

    def complete(self) -> bool:
        return self.finished

    def _take_event(self, event: bytes) -> bytes:
        data = data_of(event)
        try:
            members = _members.decode(data)
            response = members.get("response")
            if response is None:
                self._read_fault(data)
                return event
            kind = _text.decode(members["type"])
            read = _response.decode(response)
            members["response"] = msgspec.Raw(self._editor.response(bytes(response)))
        except (*_UNREADABLE, NotConvertible, KeyError):
            # If the stream is inspected, the inspection refuses an event that cannot be read.
            return event
        return self._take_response(kind, members, read)

    def _read_fault(self, data: bytes) -> None:
        read = _event.decode(data)
        if read.type == "error":
            self.fault = read.message or (read.error.message if read.error is not None else None) or ""

    def _take_response(self, kind: str, members: dict[str, msgspec.Raw], read: _TappedResponse) -> bytes:
        self.usage = usage_of(read.usage) or self.usage
        if kind == "response.failed":
            self.fault = (read.error.message if read.error is not None else None) or ""
            return b""
        self.finished = self.finished or kind in _FINAL
        return frame(msgspec.json.encode(members), kind)

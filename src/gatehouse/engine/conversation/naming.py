"""The model's name in an answer that passes as it is: the name that the client asked for, whoever answered.

Clients compare the two: some drop what a model of another name has thought. Which model answered is told by headers and
by the record. All other bytes stay as the provider sent them.
"""

import re
from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.sse import data_of, events, frame

_SPACE: Final = rb"[ \t\r\n]*+"
_TEXT: Final = rb'"(?:[^"\\]|\\.)*+"'
_SCALAR: Final = rb"(?:" + _TEXT + rb"|[-+.0-9A-Za-z]++)"
#: Members of an object before `model` that hold no object and no list.
_BEFORE: Final = (
    rb"\{" + _SPACE + rb'(?:(?!"model")' + _TEXT + _SPACE + rb":" + _SPACE + _SCALAR + _SPACE + rb"," + _SPACE + rb")*+"
)
_MODEL: Final = rb'"model"' + _SPACE + rb":" + _SPACE
#: Each has what stands before the name as its first group; the name follows.
_IN_BODY: Final = re.compile(rb"\A(" + _SPACE + _BEFORE + _MODEL + rb")" + _TEXT)
_IN_EVENT: Final = re.compile(rb"(data: ?" + _BEFORE + _MODEL + rb")" + _TEXT)
#: `model` near the end of a body, behind a long list: what follows closes one object, the whole.
_FLAT_OBJECT: Final = rb"\{[^{}\[\]]*+\}"
_AT_END: Final = re.compile(
    rb"(" + _MODEL + rb")" + _TEXT + rb"(?=(?:" + _SPACE + rb"," + _SPACE + _TEXT + _SPACE + rb":" + _SPACE
    + rb"(?:" + _SCALAR + rb"|" + _FLAT_OBJECT + rb"))*+" + _SPACE + rb"\}" + _SPACE + rb"\Z)"
)  # fmt: skip
_KEY: Final = b'"model"'

_fields: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode: Final = msgspec.json.Encoder().encode
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def in_body(body: bytes, model: str) -> bytes:
    """A JSON object whose top-level `model`, where it has one, is the given name."""
    name = _encode(model)
    match = _IN_BODY.match(body) or _AT_END.search(body, max(body.rfind(_KEY), 0))
    if match is not None:
        return body[: match.end(1)] + name + body[match.end() :]
    return _decoded(body, name) or body


class EventNames:
    """Names the model in a stream of events whose data are objects with `model` at the top. One for each stream."""

    __slots__ = ("_as_it_came", "_as_it_goes", "_name")

    def __init__(self, model: str) -> None:
        self._name = _encode(model)
        #: the member as the provider writes it in nearly every event, and what it becomes
        self._as_it_came = self._as_it_goes = b""

    def in_block(self, block: bytes) -> bytes:
        # A quotation mark inside a text is escaped, so the key stands in no text.
        count = block.count(_KEY)
        if not count:
            return block
        if self._as_it_came and block.count(self._as_it_came) == count:
            return block.replace(self._as_it_came, self._as_it_goes)
        return b"".join(self._event(event) for event in events(block))

    def _event(self, event: bytes) -> bytes:
        match = _IN_EVENT.match(event)
        if match is not None:
            start, name_start, end = event.rindex(_KEY, 0, match.end(1)), match.end(1), match.end()
            self._as_it_came = event[start:end]
            self._as_it_goes = event[start:name_start] + self._name
            return event[:start] + self._as_it_goes + event[end:]
        data = _decoded(data_of(event), self._name) if _KEY in event else None
        return event if data is None else frame(data)


def in_object(block: bytes, field: str, model: str) -> bytes:
    """A block of events, in which the `model` of the object `field` of an event's data is the given name."""
    return b"".join(_nested(event, field, _encode(model)) if _KEY in event else event for event in events(block))


def _nested(event: bytes, field: str, name: bytes) -> bytes:
    fields = _read(data_of(event))
    inner = None if fields is None or field not in fields else _decoded(bytes(fields[field]), name)
    if fields is None or inner is None:
        return event
    kind: Any = msgspec.json.decode(fields["type"]) if "type" in fields else None
    return frame(_encode({**fields, field: msgspec.Raw(inner)}), kind if isinstance(kind, str) else None)


def _decoded(data: bytes, name: bytes) -> bytes | None:
    """The object with the name in it. None where it has no `model`, or is no object."""
    fields = _read(data)
    if fields is None or "model" not in fields:
        return None
    return _encode({**fields, "model": msgspec.Raw(name)})


def _read(data: bytes) -> dict[str, msgspec.Raw] | None:
    try:
        return _fields.decode(data)
    except _UNREADABLE:
        return None

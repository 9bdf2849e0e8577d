"""In answers that are passed through, replaces the model's name by the requested name.

Clients compare the two: some drop the reasoning of a model with another name. Headers and the record have the name of
the model that answered. All other bytes stay as the provider sent them.
"""

import re
from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.sse import data_of, events, frame

_SPACE: Final = rb"[ \t\r\n]*+"
_TEXT: Final = rb'"(?:[^"\\]|\\.)*+"'
_SCALAR: Final = rb"(?:" + _TEXT + rb"|[-+.0-9A-Za-z]++)"
#: members of an object before `model` whose values are neither objects nor lists
_BEFORE: Final = (
    rb"\{" + _SPACE + rb'(?:(?!"model")' + _TEXT + _SPACE + rb":" + _SPACE + _SCALAR + _SPACE + rb"," + _SPACE + rb")*+"
)
_MODEL: Final = rb'"model"' + _SPACE + rb":" + _SPACE
#: In each pattern, the first group ends before the name.
_IN_BODY: Final = re.compile(rb"\A(" + _SPACE + _BEFORE + _MODEL + rb")" + _TEXT)
_IN_EVENT: Final = re.compile(rb"(data: ?" + _BEFORE + _MODEL + rb")" + _TEXT)
#: `model` near the end of a body, after a long list, followed by simple members and the end of the whole object
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
    """Return a JSON object with its top-level `model`, if it has one, replaced by `model`."""
    name = _encode(model)
    match = _IN_BODY.match(body) or _AT_END.search(body, max(body.rfind(_KEY), 0))
    if match is not None:
        return body[: match.end(1)] + name + body[match.end() :]
    return _renamed(body, name) or body


class EventNames:
    """Replaces the model's name in a stream of events whose data are objects with a top-level `model`. One for each
    stream."""

    __slots__ = ("_name", "_original_member", "_replaced_member")

    def __init__(self, model: str) -> None:
        self._name = _encode(model)
        #: the member as the provider writes it in nearly every event, and its replacement
        self._original_member = self._replaced_member = b""

    def in_block(self, block: bytes) -> bytes:
        # Quotes are escaped in JSON strings, so the key cannot occur in a text.
        count = block.count(_KEY)
        if not count:
            return block
        if self._original_member and block.count(self._original_member) == count:
            return block.replace(self._original_member, self._replaced_member)
        return b"".join(self._event(event) for event in events(block))

    def _event(self, event: bytes) -> bytes:
        match = _IN_EVENT.match(event)
        if match is not None:
            start, name_start, end = event.rindex(_KEY, 0, match.end(1)), match.end(1), match.end()
            self._original_member = event[start:end]
            self._replaced_member = event[start:name_start] + self._name
            return event[:start] + self._replaced_member + event[end:]
        data = _renamed(data_of(event), self._name) if _KEY in event else None
        return event if data is None else frame(data)


def in_object(block: bytes, field: str, model: str) -> bytes:
    """Return a block of events with the `model` in the object `field` of each event's data replaced."""
    return b"".join(_nested(event, field, _encode(model)) if _KEY in event else event for event in events(block))


def _nested(event: bytes, field: str, name: bytes) -> bytes:
    fields = _read(data_of(event))
    inner = None if fields is None or field not in fields else _renamed(bytes(fields[field]), name)
    if fields is None or inner is None:
        return event
    kind: Any = msgspec.json.decode(fields["type"]) if "type" in fields else None
    return frame(_encode({**fields, field: msgspec.Raw(inner)}), kind if isinstance(kind, str) else None)


def _renamed(data: bytes, name: bytes) -> bytes | None:
    """Return the object with the new name, or None if it has no `model` or is not an object."""
    fields = _read(data)
    if fields is None or "model" not in fields:
        return None
    return _encode({**fields, "model": msgspec.Raw(name)})


def _read(data: bytes) -> dict[str, msgspec.Raw] | None:
    try:
        return _fields.decode(data)
    except _UNREADABLE:
        return None

"""Replaces the ids of containers in answers of the messages API by ids that are bound to the caller."""

from collections.abc import Callable
from typing import Final

import msgspec

from gatehouse.engine.conversation.sse import data_of, events, frame

#: Quotes are escaped in JSON strings, so the key cannot occur in a text.
_KEY: Final = b'"container"'
#: members of an event's data that may have a container
_HOLDERS: Final = ("message", "delta")

_members: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
_string: msgspec.json.Decoder[str] = msgspec.json.Decoder(str)
_encode: Final = msgspec.json.Encoder().encode
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def in_body(body: bytes, public_id: Callable[[str], str]) -> bytes:
    """Return a message with the client's id of its container, if it has one."""
    return (_replaced(body, public_id) or body) if _KEY in body else body


def in_block(block: bytes, public_id: Callable[[str], str]) -> bytes:
    """Return a block of events with the client's ids of containers."""
    if _KEY not in block:
        return block
    return b"".join(_in_event(event, public_id) if _KEY in event else event for event in events(block))


def _in_event(event: bytes, public_id: Callable[[str], str]) -> bytes:
    fields = _read(data_of(event))
    if fields is None:
        return event
    changed = False
    for holder in _HOLDERS:
        inner = _replaced(bytes(fields[holder]), public_id) if holder in fields else None
        if inner is not None:
            fields[holder] = msgspec.Raw(inner)
            changed = True
    if not changed:
        return event
    return frame(_encode(fields), None if "type" not in fields else _text(fields["type"]))


def _replaced(data: bytes, public_id: Callable[[str], str]) -> bytes | None:
    """Return the object with the client's id of its container, or None if it has no such id."""
    fields = _read(data)
    container = None if fields is None or "container" not in fields else _read(bytes(fields["container"]))
    if fields is None or container is None or "id" not in container:
        return None
    upstream_id = _text(container["id"])
    if upstream_id is None:
        return None
    container["id"] = msgspec.Raw(_encode(public_id(upstream_id)))
    return _encode({**fields, "container": msgspec.Raw(_encode(container))})


def _text(value: msgspec.Raw) -> str | None:
    try:
        return _string.decode(value)
    except _UNREADABLE:
        return None


def _read(data: bytes) -> dict[str, msgspec.Raw] | None:
    try:
        return _members.decode(data)
    except _UNREADABLE:
        return None

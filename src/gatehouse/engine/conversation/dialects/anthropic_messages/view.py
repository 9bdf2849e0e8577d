"""Finds the texts in an event. They are inspected before the event is forwarded."""

from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec

from gatehouse.engine.conversation.slots import Slot
from gatehouse.engine.conversation.sse import data_of
from gatehouse.engine.conversation.view import (
    EventView,
    Growth,
    TextPiece,
    decode_event,
    decode_simple_event,
    growing_texts,
    whole_texts,
)

#: the field that contains a delta's text, by the delta's type
_TEXT_FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
    "signature_delta": "signature",
}
_DELTA_PREFIX: Final = b"event: content_block_delta\ndata: "


def view(event: bytes) -> EventView | None:
    data = data_of(event)
    if not data:
        return None
    parsed = decode_event(data)
    kind = parsed.get("type")
    number = parsed.get("index", 0)
    match kind:
        case "content_block_delta":
            return EventView(parsed, list(_pieces_of_delta(parsed, number)), name=kind, follows=None, group=str(number))
        case "content_block_start":
            return EventView(parsed, list(_pieces_of_start(parsed, number)), name=kind)
        case "content_block_stop":
            return EventView(parsed, [], ends=(f"{number}.",), name=kind)
        case "message_stop":
            return EventView(parsed, [], ends=("",), name=kind)
    pieces = list(whole_texts(parsed, "0.event"))
    return EventView(parsed, pieces, name=kind if isinstance(kind, str) else None) if pieces else None


class _TextDelta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["text_delta"]
    text: str


class _BlockDelta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["content_block_delta"]
    delta: _TextDelta
    index: int = 0


_block_delta = msgspec.json.Decoder(_BlockDelta)


def growth(event: bytes) -> Growth | None:
    """Return the growth for the next piece of a block's text."""
    delta_event = decode_simple_event(event, _DELTA_PREFIX, _block_delta)
    return (
        None
        if delta_event is None or not delta_event.delta.text
        else (f"{delta_event.index}.text", delta_event.delta.text)
    )


def _pieces_of_delta(event: dict[str, Any], number: object) -> Iterator[TextPiece]:
    delta = event.get("delta")
    if not isinstance(delta, dict):
        if "delta" in event:
            yield from whole_texts(event, f"{number}.other", key="delta")
        return
    kind = delta.get("type", "")
    field = _TEXT_FIELDS.get(kind)
    if field is None:
        texts = whole_texts if kind == "citations_delta" else growing_texts
        yield from texts(delta, f"{number}.other")
        return
    yield from _pieces_of_field(delta, field, number)


def _pieces_of_start(event: dict[str, Any], number: object) -> Iterator[TextPiece]:
    """Yields the texts in the event that starts a block. The event may contain the beginning of the block's text."""
    block = event.get("content_block")
    if not isinstance(block, dict):
        if "content_block" in event:
            yield from whole_texts(event, f"{number}.block", key="content_block")
        return
    field = next((name for name in ("text", "thinking") if block.get("type") == name), None)
    if field is None:
        yield from whole_texts(block, f"{number}.block")
    else:
        yield from _pieces_of_field(block, field, number)


def _pieces_of_field(holder: dict[str, object], field: str, number: object) -> Iterator[TextPiece]:
    value = holder.get(field)
    if isinstance(value, str):
        if value:
            # A signature comes in one piece, after the content that it signs.
            yield TextPiece(f"{number}.{field}", _slot(holder, field, value), whole=field == "signature")
        if len(holder) == 2:
            # Only the text and the type.
            return
    for piece in whole_texts(holder, f"{number}.beside"):
        if piece.slot.key != field or piece.slot.holder is not holder:
            yield piece


def _slot(holder: dict[str, object], field: str, text: str) -> Slot:
    return Slot(holder, field, text, json_text=field == "partial_json", is_sealed=field == "signature")

"""The texts of an event, for whoever has to look at them before they go on."""

from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from gatehouse.engine.conversation.slots import Slot
from gatehouse.engine.conversation.sse import data_of
from gatehouse.engine.conversation.view import EventView, Growth, Piece, decoded, growing_texts, plain, whole_texts

#: Where a delta's piece of text stands, by the delta's type.
_FIELDS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
#: What the provider signed, in pieces.
_SIGNATURE = "signature_delta"
_DELTA: Final = b"event: content_block_delta\ndata: "


def view(event: bytes) -> EventView | None:
    data = data_of(event)
    if not data:
        return None
    told = decoded(data)
    kind = told.get("type")
    number = told.get("index", 0)
    match kind:
        case "content_block_delta":
            return EventView(told, list(_of_delta(told.get("delta"), number)), name=kind, follows=None)
        case "content_block_start":
            return EventView(told, list(_of_start(told.get("content_block"), number)), name=kind)
        case "content_block_stop":
            return EventView(told, [], ends=(f"{number}.",), name=kind)
        case "message_stop":
            return EventView(told, [], ends=("",), name=kind)
    pieces = list(whole_texts(told, "0.event"))
    return EventView(told, pieces, name=kind if isinstance(kind, str) else None) if pieces else None


class _TextDelta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["text_delta"]
    text: str


class _BlockDelta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["content_block_delta"]
    delta: _TextDelta
    index: int = 0


_block_delta = msgspec.json.Decoder(_BlockDelta)


def growth(event: bytes) -> Growth | None:
    """Of a piece of a block's text."""
    told = plain(event, _DELTA, _block_delta)
    return None if told is None or not told.delta.text else (f"{told.index}.text", told.delta.text)


def _of_delta(delta: object, number: object) -> Iterator[Piece]:
    if not isinstance(delta, dict):
        yield from whole_texts({"delta": delta}, f"{number}.other")
        return
    kind = delta.get("type", "")
    if kind == _SIGNATURE:
        return
    field = _FIELDS.get(kind)
    if field is None:
        texts = whole_texts if kind == "citations_delta" else growing_texts
        yield from texts(delta, f"{number}.other")
        return
    yield from _of_field(delta, field, number)


def _of_start(block: object, number: object) -> Iterator[Piece]:
    """A block may begin with some of its text."""
    if not isinstance(block, dict):
        yield from whole_texts({"block": block}, f"{number}.block")
        return
    field = next((name for name in ("text", "thinking") if block.get("type") == name), None)
    if field is None:
        yield from whole_texts(block, f"{number}.block")
    else:
        yield from _of_field(block, field, number)


def _of_field(holder: dict[str, object], field: str, number: object) -> Iterator[Piece]:
    value = holder.get(field)
    if isinstance(value, str):
        if value:
            yield Piece(f"{number}.{field}", Slot(holder, field, value, json_text=field == "partial_json"))
        if len(holder) == 2:
            # Nothing but that and the type.
            return
    for piece in whole_texts(holder, f"{number}.beside"):
        if piece.slot.key != field or piece.slot.holder is not holder:
            yield piece

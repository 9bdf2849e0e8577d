"""The texts of an event, for whoever has to look at them before they go on."""

from gatehouse.engine.conversation.sse import data_of
from gatehouse.engine.conversation.view import EventView, Piece, decoded, whole_texts

#: Where a delta's piece of text stands, by the delta's type.
_FIELDS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


def view(event: bytes) -> EventView | None:
    data = data_of(event)
    if not data:
        return None
    told = decoded(data)
    kind = told.get("type")
    number = told.get("index", 0)
    if kind == "content_block_delta":
        return EventView(told, _of_delta(told.get("delta"), number), name=kind)
    if kind == "content_block_start":
        return EventView(told, _of_start(told.get("content_block"), number), name=kind)
    if kind == "content_block_stop":
        return EventView(told, [], ends=(f"{number}.",), name=kind)
    if kind == "message_stop":
        return EventView(told, [], ends=("",), name=kind)
    pieces = whole_texts(told, kind or "event") if kind == "message_start" else []
    return EventView(told, pieces, name=kind) if pieces else None


def _of_delta(delta: object, number: int) -> list[Piece]:
    if not isinstance(delta, dict):
        return []
    field = _FIELDS.get(delta.get("type", ""))
    if field is None:
        return whole_texts(delta, f"{number}.other") if delta.get("type") != "signature_delta" else []
    value = delta.get(field)
    if not isinstance(value, str) or not value:
        return []
    return [Piece(f"{number}.{field}", delta, field, value, json_text=field == "partial_json")]


def _of_start(block: object, number: int) -> list[Piece]:
    """A block may begin with some of its text."""
    if not isinstance(block, dict):
        return []
    field = next((name for name in ("text", "thinking") if block.get("type") == name), None)
    if field is None:
        return whole_texts(block, f"{number}.block")
    value = block.get(field)
    return [Piece(f"{number}.{field}", block, field, value)] if isinstance(value, str) and value else []

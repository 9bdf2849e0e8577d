"""Finds the texts of an event for inspection. All events come from `stream`, so that the fields with texts are known:
the pieces of a text, the names of tools, and their repetitions."""

from collections.abc import Iterator
from typing import Any

from gatehouse.engine.conversation.slots import Slot
from gatehouse.engine.conversation.sse import data_of
from gatehouse.engine.conversation.view import EventView, TextPiece, Unreadable, decode_event


def view(event: bytes) -> EventView | None:
    data = data_of(event)
    if not data:
        return None
    event_data = decode_event(data)
    try:
        return _view(event_data)
    except (KeyError, TypeError):
        raise Unreadable from None


def _view(event_data: dict[str, Any]) -> EventView | None:
    kind = event_data["type"]
    match kind:
        case "response.output_text.delta" | "response.refusal.delta":
            return EventView(event_data, [_piece(_text_channel(event_data), event_data, "delta")], name=kind)
        case "response.function_call_arguments.delta":
            return EventView(
                event_data, [_piece(_arguments_channel(event_data), event_data, "delta", json_text=True)], name=kind
            )
        case "response.output_item.added" if event_data["item"]["type"] == "function_call":
            name = _name_channel(event_data["output_index"])
            return EventView(event_data, [_piece(name, event_data["item"], "name")], ends=(name,), name=kind)
        case "response.output_text.done" | "response.refusal.done":
            field = "text" if kind == "response.output_text.done" else "refusal"
            return EventView(
                event_data,
                [],
                ends=(_text_channel(event_data),),
                name=kind,
                echoes=[_piece(_text_channel(event_data), event_data, field)],
            )
        case "response.content_part.done":
            return EventView(
                event_data, [], name=kind, echoes=[_piece_of_part(_text_channel(event_data), event_data["part"])]
            )
        case "response.function_call_arguments.done":
            echoes = [
                _piece(_arguments_channel(event_data), event_data, "arguments", json_text=True),
                _piece(_name_channel(event_data["output_index"]), event_data, "name"),
            ]
            return EventView(event_data, [], ends=(_arguments_channel(event_data),), name=kind, echoes=echoes)
        case "response.output_item.done":
            return EventView(
                event_data, [], name=kind, echoes=list(_pieces_of_item(event_data["output_index"], event_data["item"]))
            )
        case "response.completed" | "response.incomplete":
            items = enumerate(event_data["response"]["output"])
            echoes = [echo for index, item in items for echo in _pieces_of_item(index, item)]
            return EventView(event_data, [], ends=("",), name=kind, echoes=echoes)
    return None


def _pieces_of_item(index: int, item: dict[str, Any]) -> Iterator[TextPiece]:
    if item["type"] == "function_call":
        yield _piece(_name_channel(index), item, "name")
        yield _piece(f"{index}.arguments", item, "arguments", json_text=True)
        return
    for position, part in enumerate(item["content"]):
        yield _piece_of_part(f"{index}.{position}.text", part)


def _piece_of_part(channel: str, part: dict[str, Any]) -> TextPiece:
    return _piece(channel, part, "text" if part["type"] == "output_text" else "refusal")


def _piece(channel: str, holder: dict[str, Any], field: str, *, json_text: bool = False) -> TextPiece:
    return TextPiece(channel, Slot(holder, field, holder[field], json_text=json_text))


def _text_channel(event_data: dict[str, Any]) -> str:
    return f"{event_data['output_index']}.{event_data['content_index']}.text"


def _arguments_channel(event_data: dict[str, Any]) -> str:
    return f"{event_data['output_index']}.arguments"


def _name_channel(index: int) -> str:
    return f"{index}.name"

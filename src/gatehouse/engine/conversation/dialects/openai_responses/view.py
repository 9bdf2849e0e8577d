"""Finds the texts of an event for inspection. All events come from `stream`, so that the fields with texts are known:
the pieces of a text, the names of tools, and their repetitions."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from gatehouse.engine.conversation.slots import Slot
from gatehouse.engine.conversation.sse import data_of
from gatehouse.engine.conversation.view import EventView, TextPiece, Unreadable, decode_event

#: the field with the text of a call by the type of its item
_CALL_TEXTS: Final = {"function_call": "arguments", "custom_tool_call": "input"}


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
    if kind in _DELTAS:
        channel, is_json = _DELTAS[kind]
        return EventView(event_data, [_piece(channel(event_data), event_data, "delta", json_text=is_json)], name=kind)
    return _view_of_repetition(kind, event_data)


def _view_of_repetition(kind: str, event_data: dict[str, Any]) -> EventView | None:
    """Return the view of an event that is no delta: most repeat texts of earlier deltas."""
    match kind:
        case "response.output_item.added" if event_data["item"]["type"] in _CALL_TEXTS:
            pieces = list(_names_of_call(event_data["output_index"], event_data["item"]))
            return EventView(event_data, pieces, ends=tuple(piece.channel for piece in pieces), name=kind)
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
        case "response.custom_tool_call_input.done":
            channel = _arguments_channel(event_data)
            return EventView(event_data, [], ends=(channel,), name=kind, echoes=[_piece(channel, event_data, "input")])
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
    field = _CALL_TEXTS.get(item["type"])
    if field is not None:
        yield from _names_of_call(index, item)
        yield _piece(f"{index}.arguments", item, field, json_text=field == "arguments")
        return
    for position, part in enumerate(item["content"]):
        yield _piece_of_part(f"{index}.{position}.text", part)


def _names_of_call(index: int, item: dict[str, Any]) -> Iterator[TextPiece]:
    yield _piece(_name_channel(index), item, "name")
    if "namespace" in item:
        yield _piece(f"{index}.namespace", item, "namespace")


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


#: the channel of a delta's text by the event's type, and whether the text is JSON
_DELTAS: Final[dict[str, tuple[Callable[[dict[str, Any]], str], bool]]] = {
    "response.output_text.delta": (_text_channel, False),
    "response.refusal.delta": (_text_channel, False),
    "response.function_call_arguments.delta": (_arguments_channel, True),
    "response.custom_tool_call_input.delta": (_arguments_channel, False),
}

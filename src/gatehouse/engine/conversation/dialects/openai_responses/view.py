"""The texts of an event. All events are the gateway's own (`stream`), so that what holds texts is known: the pieces of
a text, the names of tools, and what says these again."""

from collections.abc import Iterator
from typing import Any

from gatehouse.engine.conversation.slots import Slot
from gatehouse.engine.conversation.sse import data_of
from gatehouse.engine.conversation.view import EventView, Piece, Unreadable, decoded


def view(event: bytes) -> EventView | None:
    data = data_of(event)
    if not data:
        return None
    told = decoded(data)
    try:
        return _view(told)
    except (KeyError, TypeError):
        raise Unreadable from None


def _view(told: dict[str, Any]) -> EventView | None:
    kind = told["type"]
    match kind:
        case "response.output_text.delta" | "response.refusal.delta":
            return EventView(told, [_piece(_text(told), told, "delta")], name=kind)
        case "response.function_call_arguments.delta":
            return EventView(told, [_piece(_arguments(told), told, "delta", json_text=True)], name=kind)
        case "response.output_item.added" if told["item"]["type"] == "function_call":
            name = _name(told["output_index"])
            return EventView(told, [_piece(name, told["item"], "name")], ends=(name,), name=kind)
        case "response.output_text.done" | "response.refusal.done":
            field = "text" if kind == "response.output_text.done" else "refusal"
            return EventView(told, [], ends=(_text(told),), name=kind, echoes=[_piece(_text(told), told, field)])
        case "response.content_part.done":
            return EventView(told, [], name=kind, echoes=[_of_part(_text(told), told["part"])])
        case "response.function_call_arguments.done":
            echoes = [
                _piece(_arguments(told), told, "arguments", json_text=True),
                _piece(_name(told["output_index"]), told, "name"),
            ]
            return EventView(told, [], ends=(_arguments(told),), name=kind, echoes=echoes)
        case "response.output_item.done":
            return EventView(told, [], name=kind, echoes=list(_of_item(told["output_index"], told["item"])))
        case "response.completed" | "response.incomplete":
            items = enumerate(told["response"]["output"])
            echoes = [echo for index, item in items for echo in _of_item(index, item)]
            return EventView(told, [], ends=("",), name=kind, echoes=echoes)
    return None


def _of_item(index: int, item: dict[str, Any]) -> Iterator[Piece]:
    if item["type"] == "function_call":
        yield _piece(_name(index), item, "name")
        yield _piece(f"{index}.arguments", item, "arguments", json_text=True)
        return
    for place, part in enumerate(item["content"]):
        yield _of_part(f"{index}.{place}.text", part)


def _of_part(channel: str, part: dict[str, Any]) -> Piece:
    return _piece(channel, part, "text" if part["type"] == "output_text" else "refusal")


def _piece(channel: str, holder: dict[str, Any], field: str, *, json_text: bool = False) -> Piece:
    return Piece(channel, Slot(holder, field, holder[field], json_text=json_text))


def _text(told: dict[str, Any]) -> str:
    return f"{told['output_index']}.{told['content_index']}.text"


def _arguments(told: dict[str, Any]) -> str:
    return f"{told['output_index']}.arguments"


def _name(index: int) -> str:
    return f"{index}.name"

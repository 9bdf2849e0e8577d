"""The texts of a chunk, for whoever has to look at them before they go on."""

from typing import Any

from gatehouse.engine.conversation.sse import data_of
from gatehouse.engine.conversation.view import EventView, Piece, decoded, whole_texts

#: Fields of a delta that hold words of the protocol.
_WORDS = frozenset({"role"})


def view(event: bytes) -> EventView | None:
    data = data_of(event)
    if not data:
        return None
    if data == b"[DONE]":
        return EventView({}, [], ends=("",))
    chunk = decoded(data)
    pieces: list[Piece] = []
    ends: list[str] = []
    for choice in chunk.get("choices") or ():
        number = choice.get("index", 0)
        delta = choice.get("delta")
        if isinstance(delta, dict):
            pieces += _of_delta(delta, number)
        if choice.get("finish_reason") is not None:
            ends.append(f"{number}.")
    return EventView(chunk, pieces, tuple(ends)) if pieces or ends else None


def _of_delta(delta: dict[str, Any], number: int) -> list[Piece]:
    pieces: list[Piece] = []
    for key, value in delta.items():
        if isinstance(value, str):
            if value and key not in _WORDS:
                pieces.append(Piece(f"{number}.{key}", delta, key, value))
        elif key == "tool_calls" and isinstance(value, list):
            for call in value:
                pieces += _of_tool_call(call, f"{number}.tool.{call.get('index', 0)}")
        elif isinstance(value, dict | list):
            pieces += whole_texts({key: value}, f"{number}.{key}")
    return pieces


def _of_tool_call(call: dict[str, Any], name: str) -> list[Piece]:
    function = call.get("function")
    if not isinstance(function, dict):
        return whole_texts(call, name)
    pieces = []
    arguments = function.get("arguments")
    if isinstance(arguments, str) and arguments:
        pieces.append(Piece(name, function, "arguments", arguments, json_text=True))
    called = function.get("name")
    if isinstance(called, str) and called:
        pieces.append(Piece(f"{name}.name", function, "name", called, whole=True))
    return pieces

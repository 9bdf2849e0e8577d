"""The texts of a chunk, for whoever has to look at them before they go on."""

from collections.abc import Iterator
from typing import Any, Final

from gatehouse.engine.conversation.slots import Slot
from gatehouse.engine.conversation.sse import data_of
from gatehouse.engine.conversation.view import (
    EventView,
    Piece,
    decoded,
    growing_texts,
    whole_texts,
    without_logprobs,
)

#: Fields of a chunk without texts. `obfuscation` is noise.
_NO_TEXTS: Final = frozenset(
    {"id", "object", "created", "model", "choices", "usage", "system_fingerprint", "service_tier", "obfuscation"}
)
#: Fields of a choice that are read by themselves, or hold a word of the protocol.
_KNOWN: Final = frozenset({"index", "delta", "finish_reason", "logprobs"})
#: Fields of a delta that hold finished things, each time others.
_LISTS: Final = frozenset({"annotations", "citations", "images"})


def view(event: bytes) -> EventView | None:
    data = data_of(event)
    if not data:
        return EventView({}, [], follows=None)
    if data == b"[DONE]":
        return EventView({}, [], ends=("",))
    chunk = decoded(data)
    piece = _only_piece(chunk)
    return _view(chunk) if piece is None else EventView(chunk, [piece], follows=None)


def _view(chunk: dict[str, Any]) -> EventView:
    altered = without_logprobs(chunk)
    pieces: list[Piece] = []
    finished: set[str] = set()
    ends: list[str] = []
    choices = chunk.get("choices") or ()
    for choice in choices:
        if not isinstance(choice, dict):
            pieces += whole_texts({"choice": choice}, "0.choice")
            continue
        number = str(choice.get("index", 0))
        before = len(pieces)
        pieces += _of_choice(choice, number)
        if choice.get("finish_reason"):
            finished.add(number)
            if len(pieces) == before:
                # Beside a text it is no end: some tell one in every chunk.
                ends.append(f"{number}.")
    for key, value in chunk.items():
        if key not in _NO_TEXTS:
            pieces += whole_texts({key: value}, "0.chunk")
    follows = None
    if finished or not choices:
        # What tells the usage comes last.
        follows = finished.pop() if len(finished) == 1 else ""
    return EventView(chunk, pieces, tuple(ends), altered=altered and not pieces, follows=follows)


def _only_piece(chunk: dict[str, Any]) -> Piece | None:
    """Of a chunk that holds a piece of one choice's content and nothing else of interest, as nearly all of a stream's
    do: `_view` would come to the same."""
    choices = chunk.get("choices")
    if type(choices) is not list or len(choices) != 1 or not chunk.keys() <= _NO_TEXTS:
        return None
    choice = choices[0]
    if type(choice) is not dict or not choice.keys() <= _KNOWN or choice.get("finish_reason") or choice.get("logprobs"):
        return None
    delta = choice.get("delta")
    if type(delta) is not dict or len(delta) != 1:
        return None
    text = delta.get("content")
    if type(text) is not str or not text:
        return None
    return Piece(f"{choice.get('index', 0)}.content", Slot(delta, "content", text))


def _of_choice(choice: dict[str, Any], number: str) -> Iterator[Piece]:
    delta = choice.get("delta")
    if isinstance(delta, dict):
        yield from _of_delta(delta, number)
    for key, value in choice.items():
        if key not in _KNOWN or (key == "delta" and not isinstance(value, dict)):
            yield from whole_texts({key: value}, f"{number}.{key}")


def _of_delta(delta: dict[str, Any], number: str) -> Iterator[Piece]:
    for key, value in delta.items():
        if isinstance(value, str):
            if value and key != "role":
                yield Piece(f"{number}.{key}", Slot(delta, key, value))
        elif key == "tool_calls" and isinstance(value, list):
            for call in value:
                index = call.get("index", 0) if isinstance(call, dict) else 0
                yield from growing_texts({"call": call}, f"{number}.tool.{index}")
        elif isinstance(value, dict | list):
            texts = whole_texts if key in _LISTS else growing_texts
            yield from texts({key: value}, f"{number}.{key}")

"""The texts of a chunk, for whoever has to look at them before they go on."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from gatehouse.engine.conversation.slots import Slot
from gatehouse.engine.conversation.sse import data_of
from gatehouse.engine.conversation.view import (
    EventView,
    Growth,
    Piece,
    decoded,
    growing_texts,
    plain,
    whole_texts,
    without_logprobs,
)

#: Fields of a delta that hold finished things, each time others.
_LISTS: Final = frozenset({"annotations", "citations", "images"})
_DATA: Final = b"data: "


class _Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Of a delta with a piece of content: what else may stand in it says nothing."""

    content: str
    role: str | None = None
    refusal: None = None
    reasoning_content: None = None
    tool_calls: None = None
    function_call: None = None


class _Choice(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    delta: _Delta
    index: int = 0
    finish_reason: None = None
    logprobs: None = None


class _Chunk(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What may stand beside the choices holds no text; `obfuscation` is noise."""

    choices: tuple[_Choice]
    id: Any = None
    object: Any = None
    created: Any = None
    model: Any = None
    usage: Any = None
    system_fingerprint: Any = None
    service_tier: Any = None
    obfuscation: Any = None


_chunk = msgspec.json.Decoder(_Chunk)
#: Fields of a chunk without texts.
_NO_TEXTS: Final = frozenset(_Chunk.__struct_fields__)
#: Fields of a choice that are read by themselves, or hold a word of the protocol.
_KNOWN: Final = frozenset(_Choice.__struct_fields__)


def view(event: bytes) -> EventView | None:
    data = data_of(event)
    if not data:
        return EventView({}, [], follows=None)
    if data == b"[DONE]":
        return EventView({}, [], ends=("",))
    return _view(decoded(data))


def growth(event: bytes) -> Growth | None:
    """Of nearly all chunks of a stream. Anything that `_view` would look at is no field of the shape."""
    chunk = plain(event, _DATA, _chunk)
    if chunk is None:
        return None
    [choice] = chunk.choices
    text = choice.delta.content
    return (f"{choice.index}.content", text) if text else None


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

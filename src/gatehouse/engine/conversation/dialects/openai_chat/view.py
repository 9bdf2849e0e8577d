"""The texts of a chunk, for whoever has to look at them before they go on."""

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from gatehouse.engine.conversation.slots import Slot
from gatehouse.engine.conversation.sse import data_of
from gatehouse.engine.conversation.uninspected import IN_ANSWERS
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
    role: Literal["assistant"] | None = None
    refusal: None = None
    reasoning_content: None = None
    tool_calls: None = None
    function_call: None = None


class _Choice(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    delta: _Delta
    index: int = 0
    finish_reason: None = None
    logprobs: None = None


#: Names and numbers alone.
_Counts: TypeAlias = dict[Annotated[str, msgspec.Meta(pattern=r"\A[a-z_]{1,64}\Z")], float | None]


class _Chunk(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What may stand beside the choices holds no text."""

    choices: tuple[_Choice]
    id: str | None = None
    object: Literal["chat.completion.chunk"] | None = None
    created: float | None = None
    model: str | None = None
    usage: _Counts | None = None
    system_fingerprint: str | None = None
    service_tier: Literal["auto", "default", "flex", "on_demand", "priority", "scale", "standard"] | None = None
    obfuscation: str | None = None


_chunk = msgspec.json.Decoder(_Chunk)
#: Fields of a chunk that are read by themselves, or not inspected.
_OWN: Final = IN_ANSWERS | {"choices", "model"}
#: Fields of a choice that are read by themselves, or say its text again.
_KNOWN: Final = frozenset({"delta", "logprobs"})


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
    for place, choice in enumerate(choices):
        if not isinstance(choice, dict):
            pieces += whole_texts(choices, "0.choice", key=place)
            continue
        number = str(choice.get("index", 0))
        before = len(pieces)
        pieces += _of_choice(choice, number)
        if choice.get("finish_reason"):
            finished.add(number)
            if len(pieces) == before:
                # Beside a text it is no end: some tell one in every chunk.
                ends.append(f"{number}.")
    for key in chunk:
        if key not in _OWN:
            pieces += whole_texts(chunk, "0.chunk", key=key)
    follows = None
    if finished or not choices:
        # What tells the usage comes last.
        follows = finished.pop() if len(finished) == 1 else ""
    groups = {str(choice.get("index", 0)) for choice in choices if isinstance(choice, dict)}
    group = groups.pop() if len(groups) == 1 else None
    return EventView(chunk, pieces, tuple(ends), altered=altered and not pieces, follows=follows, group=group)


def _of_choice(choice: dict[str, Any], number: str) -> Iterator[Piece]:
    delta = choice.get("delta")
    if isinstance(delta, dict):
        yield from _of_delta(delta, number)
    for key, value in choice.items():
        if key not in _KNOWN or (key == "delta" and not isinstance(value, dict)):
            yield from whole_texts(choice, f"{number}.{key}", key=key)


def _of_delta(delta: dict[str, Any], number: str) -> Iterator[Piece]:
    for key, value in delta.items():
        if key == "role":
            yield from whole_texts(delta, f"{number}.{key}", key=key)
        elif isinstance(value, str):
            if value:
                yield Piece(f"{number}.{key}", Slot(delta, key, value))
        elif key == "tool_calls" and isinstance(value, list):
            for place, call in enumerate(value):
                index = call.get("index", 0) if isinstance(call, dict) else 0
                yield from growing_texts(value, f"{number}.tool.{index}", key=place)
        elif isinstance(value, dict | list):
            texts = whole_texts if key in _LISTS else growing_texts
            yield from texts(delta, f"{number}.{key}", key=key)

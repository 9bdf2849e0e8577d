"""Finds the texts in a chunk. They are inspected before the chunk is forwarded."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from gatehouse.engine.conversation.slots import Slot
from gatehouse.engine.conversation.sse import data_of
from gatehouse.engine.conversation.uninspected import IN_ANSWERS
from gatehouse.engine.conversation.view import (
    EventView,
    Growth,
    TextPiece,
    decode_event,
    decode_simple_event,
    growing_texts,
    whole_texts,
    without_logprobs,
)

#: fields of a delta whose items are complete in each delta
_COMPLETE_LISTS: Final = frozenset({"annotations", "citations", "images"})
_DATA_PREFIX: Final = b"data: "


class _Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A delta with a piece of content and no other text."""

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


#: an object that contains only names and numbers
Counts: TypeAlias = dict[Annotated[str, msgspec.Meta(pattern=r"\A[a-z_]{1,64}\Z")], float | None]


class _Chunk(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A chunk with no text outside its choice."""

    choices: tuple[_Choice]
    id: str | None = None
    object: Literal["chat.completion.chunk"] | None = None
    created: float | None = None
    model: str | None = None
    usage: Counts | None = None
    system_fingerprint: str | None = None
    service_tier: Literal["auto", "default", "flex", "on_demand", "priority", "scale", "standard"] | None = None
    obfuscation: str | None = None


_chunk = msgspec.json.Decoder(_Chunk)
#: fields of a chunk that are read separately or not inspected
_SEPARATE_CHUNK_FIELDS: Final = IN_ANSWERS | {"choices", "model"}
#: fields of a choice that are read separately or repeat its text
_SEPARATE_CHOICE_FIELDS: Final = frozenset({"delta", "logprobs"})


def view(event: bytes) -> EventView | None:
    return view_chunk(event, _pieces_of_choice)


def view_chunk(
    event: bytes, pieces_of_choice: Callable[[dict[str, Any], str], Iterator[TextPiece]]
) -> EventView | None:
    """Return the view of a chunk. `pieces_of_choice` yields the texts of a choice with a number."""
    data = data_of(event)
    if not data:
        return EventView({}, [], follows=None)
    if data == b"[DONE]":
        return EventView({}, [], ends=("",))
    return _view(decode_event(data), pieces_of_choice)


def growth(event: bytes) -> Growth | None:
    """Return the growth for a chunk without other texts, or None. Nearly all chunks of a stream have no other text."""
    chunk = decode_simple_event(event, _DATA_PREFIX, _chunk)
    if chunk is None:
        return None
    [choice] = chunk.choices
    text = choice.delta.content
    return (f"{choice.index}.content", text) if text else None


def _view(chunk: dict[str, Any], pieces_of_choice: Callable[[dict[str, Any], str], Iterator[TextPiece]]) -> EventView:
    altered = without_logprobs(chunk)
    pieces: list[TextPiece] = []
    finished: set[str] = set()
    ends: list[str] = []
    choices = chunk.get("choices") or ()
    for position, choice in enumerate(choices):
        if not isinstance(choice, dict):
            pieces += whole_texts(choices, "0.choice", key=position)
            continue
        number = str(choice.get("index", 0))
        before = len(pieces)
        pieces += pieces_of_choice(choice, number)
        if choice.get("finish_reason"):
            finished.add(number)
            if len(pieces) == before:
                # Some servers send a finish reason in every chunk, so a reason next to a text does not end the choice.
                ends.append(f"{number}.")
    for key in chunk:
        if key not in _SEPARATE_CHUNK_FIELDS:
            pieces += whole_texts(chunk, "0.chunk", key=key)
    follows = None
    if finished or not choices:
        # A chunk without choices, such as the one with the usage, comes last.
        follows = finished.pop() if len(finished) == 1 else ""
    groups = {str(choice.get("index", 0)) for choice in choices if isinstance(choice, dict)}
    group = groups.pop() if len(groups) == 1 else None
    return EventView(chunk, pieces, tuple(ends), altered=altered and not pieces, follows=follows, group=group)


def _pieces_of_choice(choice: dict[str, Any], number: str) -> Iterator[TextPiece]:
    delta = choice.get("delta")
    if isinstance(delta, dict):
        yield from _pieces_of_delta(delta, number)
    for key, value in choice.items():
        if key not in _SEPARATE_CHOICE_FIELDS or (key == "delta" and not isinstance(value, dict)):
            yield from whole_texts(choice, f"{number}.{key}", key=key)


def _pieces_of_delta(delta: dict[str, Any], number: str) -> Iterator[TextPiece]:
    for key, value in delta.items():
        if key == "role":
            yield from whole_texts(delta, f"{number}.{key}", key=key)
        elif isinstance(value, str):
            if value:
                yield TextPiece(f"{number}.{key}", Slot(delta, key, value))
        elif key == "tool_calls" and isinstance(value, list):
            for position, call in enumerate(value):
                index = call.get("index", 0) if isinstance(call, dict) else 0
                yield from growing_texts(value, f"{number}.tool.{index}", key=position)
        elif isinstance(value, dict | list):
            texts = whole_texts if key in _COMPLETE_LISTS else growing_texts
            yield from texts(delta, f"{number}.{key}", key=key)

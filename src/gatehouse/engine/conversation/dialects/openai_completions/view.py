"""Finds the texts in a chunk of a text completion. They are inspected before the chunk is forwarded."""

from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec

from gatehouse.engine.conversation.dialects.openai_chat.view import Counts, view_chunk
from gatehouse.engine.conversation.slots import Slot
from gatehouse.engine.conversation.view import EventView, Growth, TextPiece, decode_simple_event, whole_texts

_DATA_PREFIX: Final = b"data: "


class _Choice(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    text: str
    index: int = 0
    finish_reason: None = None
    logprobs: None = None


class _Chunk(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A chunk with no text outside its choice."""

    choices: tuple[_Choice]
    id: str | None = None
    object: Literal["text_completion"] | None = None
    created: float | None = None
    model: str | None = None
    usage: Counts | None = None
    system_fingerprint: str | None = None


_chunk = msgspec.json.Decoder(_Chunk)
#: fields of a choice that are read separately or repeat its text
_SEPARATE_CHOICE_FIELDS: Final = frozenset({"text", "logprobs"})


def view(event: bytes) -> EventView | None:
    return view_chunk(event, _pieces_of_choice)


def growth(event: bytes) -> Growth | None:
    """Return the growth for a chunk without other texts, or None. Nearly all chunks of a stream have no other text."""
    chunk = decode_simple_event(event, _DATA_PREFIX, _chunk)
    if chunk is None:
        return None
    [choice] = chunk.choices
    return (f"{choice.index}.text", choice.text) if choice.text else None


def _pieces_of_choice(choice: dict[str, Any], number: str) -> Iterator[TextPiece]:
    for key, value in choice.items():
        if key == "text" and isinstance(value, str):
            if value:
                yield TextPiece(f"{number}.text", Slot(choice, key, value))
        elif key not in _SEPARATE_CHOICE_FIELDS or key == "text":
            yield from whole_texts(choice, f"{number}.{key}", key=key)

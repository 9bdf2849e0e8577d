"""The type `EventView`, and helpers to create it. A dialect uses them to describe an event of a stream: its texts, the
texts that end with it, and the events that it must not overtake."""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from gatehouse.engine.conversation.slots import Slot, slots
from gatehouse.engine.conversation.uninspected import IN_ANSWERS

#: fields of a delta whose texts do not continue in the next delta
_COMPLETE_FIELDS: Final = frozenset({"name", "title", "url", "filename", "cited_text"})


class TextPiece(msgspec.Struct, gc=False):
    """A piece of a text of the answer. `channel` is the name of the text. The name consists of the name of a choice or
    block, a dot, and a name within this choice or block. `whole` is true if the piece is the whole text."""

    channel: str
    slot: Slot
    whole: bool = False


Shape = TypeVar("Shape")
#: the next piece of a text: its channel, as in `TextPiece`, and its content
Growth: TypeAlias = tuple[str, str]


class EventView(msgspec.Struct):
    """The texts of an event, and its place in the order of events. `data` is the decoded event; it is encoded again if
    a piece was changed or `altered` is set. `name` is the event's name or None.

    `ends` lists the names of the channels that end with this event. A name with a dot at its end means all channels of
    a choice or block. An empty name means all channels.

    Each piece in `echoes` repeats the whole text of a channel that has ended. A change to the text of the channel is
    also made in the piece. The piece is not inspected again.

    `follows` says which earlier events this event must not overtake: all events (""), or all events of a choice or
    block (its name). If it is None, the event must not overtake earlier pieces of its own texts. If `follows` is None
    and every piece of the event is a whole text, the event must not overtake the latest text of the choice or block
    `group` that arrives in pieces.
    """

    data: dict[str, Any]
    pieces: list[TextPiece]
    ends: tuple[str, ...] = ()
    name: str | None = None
    altered: bool = False
    follows: str | None = ""
    group: str | None = None
    echoes: list[TextPiece] = []


def whole_texts(holder: Any, prefix: str, *, key: Any = None) -> Iterator[TextPiece]:
    """Yields the texts of a part of an event that do not continue in the next event. With `key`, only those of
    `holder[key]`. A slot refers to its place in the event, so a replacement changes the event that is sent."""
    for slot in _texts(holder, key):
        yield TextPiece(f"{prefix}.{slot.key}", slot, whole=True)


def growing_texts(holder: Any, prefix: str, *, key: Any = None) -> Iterator[TextPiece]:
    """Yields the texts of a delta, or of its value at `key`. The field's name determines whether the next delta
    continues a text."""
    for slot in _texts(holder, key):
        yield TextPiece(
            f"{prefix}.{slot.key}", slot, whole=slot.is_key or slot.is_object or slot.key in _COMPLETE_FIELDS
        )


def _texts(holder: Any, key: Any) -> Iterator[Slot]:
    for slot in slots(holder, answer=True, only=key):
        if isinstance(slot, Slot) and slot.key not in IN_ANSWERS:
            yield slot


def without_logprobs(data: dict[str, Any]) -> bool:
    """Removes the log probabilities from a decoded answer or event, because inspection cannot find a value that is
    repeated token by token. Also removes the tokens and the single words of a transcription. Returns whether there were
    any. An unchanged answer is forwarded with its original bytes."""
    removed = False
    if "segments" in data or "words" in data or "logprobs" in data:
        removed = data.pop("words", None) is not None
        removed = data.pop("logprobs", None) is not None or removed
        for segment in data.get("segments") or ():
            if isinstance(segment, dict):
                removed = segment.pop("tokens", None) is not None or removed
    for choice in data.get("choices") or ():
        if isinstance(choice, dict) and choice.get("logprobs"):
            choice["logprobs"] = None
            removed = True
    # Responses, and lists of their items.
    for items in (data.get("output"), data.get("data")):
        for item in items if isinstance(items, list) else ():
            parts = item.get("content") if isinstance(item, dict) else None
            for part in parts if isinstance(parts, list) else ():
                if isinstance(part, dict) and part.get("logprobs"):
                    part["logprobs"] = []
                    removed = True
    return removed


_decoder: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


def decode_event(data: bytes) -> dict[str, Any]:
    """Return the decoded event. Raises `Unreadable`."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Unreadable from None


def decode_simple_event(event: bytes, prefix: bytes, shape: msgspec.json.Decoder[Shape]) -> Shape | None:
    """Return the data of an event that consists of `prefix` and one line of JSON in the form of `shape`. Return None
    for any other event."""
    if not event.startswith(prefix) or event.find(b"\n", len(prefix)) != len(event) - 2 or b"\r" in event:
        return None
    try:
        return shape.decode(event[len(prefix) :])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class Unreadable(Exception):
    """An event cannot be read and must not be forwarded."""

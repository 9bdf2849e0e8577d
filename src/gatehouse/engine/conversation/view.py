"""The texts of one event of a stream: what a dialect tells about its own events."""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from gatehouse.engine.conversation.slots import Slot, slots
from gatehouse.engine.conversation.uninspected import IN_ANSWERS

#: Fields of a delta that do not go on in the next one.
_AT_ONCE: Final = frozenset({"name", "title", "url", "filename", "cited_text"})


class Piece(msgspec.Struct, gc=False):
    """A piece of one of the answer's texts. `channel` names the text: what it belongs to (a choice, a block), a dot,
    and more. `whole`: the text comes in this piece alone."""

    channel: str
    slot: Slot
    whole: bool = False


Shape = TypeVar("Shape")
#: The next piece of a text: its channel, as in `Piece`, and what it holds.
Growth: TypeAlias = tuple[str, str]


class EventView(msgspec.Struct):
    """`ends` are names of channels that have come to their end with this event. A name with a dot at its end stands for
    all channels of a choice or block, an empty one for all there are. `data` is the decoded event, encoded anew after a
    piece was changed, or where it is `altered` already; `name` the event's name where it has one. `echoes` say again
    all that came in the channel of their name, which has ended before: what was changed there is changed in them, and
    nothing in them is looked at again.

    `follows` says what the event must not overtake: everything (""), all of a choice or block, or, where it is None,
    only what is before it in the texts that it has pieces of. One that has no piece of a growing text stays behind the
    text that came last in its `group`, a choice or block."""

    data: dict[str, Any]
    pieces: list[Piece]
    ends: tuple[str, ...] = ()
    name: str | None = None
    altered: bool = False
    follows: str | None = ""
    group: str | None = None
    echoes: list[Piece] = []


def whole_texts(holder: Any, prefix: str, *, key: Any = None) -> Iterator[Piece]:
    """Texts of an event's part that do not go on in the next one. With `key`, of what stands there in `holder`: the
    slots are places in the event itself, so that what is replaced there leaves."""
    for slot in _texts(holder, key):
        yield Piece(f"{prefix}.{slot.key}", slot, whole=True)


def growing_texts(holder: Any, prefix: str, *, key: Any = None) -> Iterator[Piece]:
    """Texts of a delta, or of what stands there at `key`. Those that the next one adds to are told by the names of
    their fields."""
    for slot in _texts(holder, key):
        yield Piece(f"{prefix}.{slot.key}", slot, whole=slot.is_key or slot.is_object or slot.key in _AT_ONCE)


def _texts(holder: Any, key: Any) -> Iterator[Slot]:
    for slot in slots(holder, answer=True, only=key):
        if isinstance(slot, Slot) and slot.key not in IN_ANSWERS:
            yield slot


def without_logprobs(data: dict[str, Any]) -> bool:
    """Takes the probabilities of tokens out of a decoded answer or event: they say its text again, token by token, so
    that nothing is found in them. Whether there were any. An answer that is not changed goes on as its own bytes."""
    had = False
    for choice in data.get("choices") or ():
        if isinstance(choice, dict) and choice.get("logprobs"):
            choice["logprobs"] = None
            had = True
    return had


_decoder: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])


def decoded(data: bytes) -> dict[str, Any]:
    """Raises `Unreadable`."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Unreadable from None


def plain(event: bytes, before: bytes, shape: msgspec.json.Decoder[Shape]) -> Shape | None:
    """An event that is `before` and one line of data in a shape; None where it is not as plain as that."""
    if not event.startswith(before) or event.find(b"\n", len(before)) != len(event) - 2 or b"\r" in event:
        return None
    try:
        return shape.decode(event[len(before) :])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class Unreadable(Exception):
    """An event that is none: what cannot be read cannot be let through."""

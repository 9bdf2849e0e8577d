"""The texts of one event of a stream: what a dialect tells about its own events."""

from typing import Any

import msgspec

from gatehouse.engine.conversation.slots import Slot, slots


class Piece(msgspec.Struct, gc=False):
    """A piece of one of the answer's texts. `channel` names the text, `holder[key]` is where the piece stands. `whole`:
    the text comes in this piece alone."""

    channel: str
    holder: Any
    key: Any
    text: str
    json_text: bool = False
    whole: bool = False


class EventView(msgspec.Struct):
    """`ends` are prefixes of the names of channels that have come to their end with this event. `data` is the decoded
    event, encoded anew after a piece was changed; `name` the event's name where it has one."""

    data: dict[str, Any]
    pieces: list[Piece]
    ends: tuple[str, ...] = ()
    name: str | None = None


def whole_texts(holder: Any, prefix: str) -> list[Piece]:
    """Texts of an event's part that do not go on in the next one."""
    return [
        Piece(f"{prefix}.{number}", slot.holder, slot.key, slot.text, json_text=slot.json_text, whole=True)
        for number, slot in enumerate(slots(holder))
        if isinstance(slot, Slot) and not slot.is_key
    ]


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


class Unreadable(Exception):
    """An event that is none: what cannot be read cannot be let through."""

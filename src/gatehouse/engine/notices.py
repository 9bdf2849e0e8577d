"""What an outpost hands in between its records: notices, each with a number of its own among them, so that they come
once and in order as records do (decisions 8, Wires)."""

from typing import Any, Final, Literal, TypeAlias

import msgspec


class Lost(msgspec.Struct, array_like=True, frozen=True, tag="lost"):
    """Records that this outpost has answered for and cannot hand in. The chain names the gap."""

    #: `damaged`: the journal's bytes are not what was written; `refused`: the platform took the line for no record;
    #: `gone`: they were handed in once, the platform asks for them again, and they are not kept any more
    reason: Literal["damaged", "refused", "gone"]
    #: how many, where that is known
    records: int | None = None
    bytes: int | None = None


class Ended(msgspec.Struct, array_like=True, frozen=True, tag="ended"):
    """The journal's process is dead: streams that it left open were interrupted."""


Notice: TypeAlias = Lost | Ended

_KINDS: Final = frozenset({"lost", "ended"})
_encoder = msgspec.json.Encoder()


def encode(notice: Notice) -> bytes:
    return _encoder.encode(notice)


def read(entry: Any) -> Notice | None:
    """None for what is no notice, and so a record. Raises `msgspec.ValidationError`."""
    if not (isinstance(entry, list) and entry and isinstance(entry[0], str) and entry[0] in _KINDS):
        return None
    notice: Notice = msgspec.convert(entry, Lost | Ended)
    return notice

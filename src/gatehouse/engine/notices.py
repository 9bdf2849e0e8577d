"""Notices that an outpost hands in between its records, such as operators' calls and lost records. Each has a number
among the records, so that notices come once and in order as records do (decisions 8, Wires)."""

from typing import Annotated, Any, Final, Literal, TypeAlias
from uuid import UUID

import msgspec
from msgspec import Meta

#: What an operator's call changed: names and plain values, bounded because the platform stores them.
Details: TypeAlias = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=300)] | int | float | bool | None],
    Meta(max_length=20),
]


class Lost(msgspec.Struct, array_like=True, frozen=True, tag="lost"):
    """Records that this outpost has answered for and cannot hand in. The chain names the gap."""

    #: `damaged`: the journal's bytes are not what was written; `refused`: the platform took the line for no record;
    #: `gone`: they were handed in once, the platform asks for them again, and they are not kept any more
    reason: Literal["damaged", "refused", "gone"]
    #: how many, where that is known
    records: int | None = None
    bytes: int | None = None
    #: Unix time, as far as it is known
    timestamp: float | None = None


class Ended(msgspec.Struct, array_like=True, frozen=True, tag="ended"):
    """The journal's process is dead: streams that it left open were interrupted."""

    #: Unix time of the process' last record
    timestamp: float | None = None


class Operated(msgspec.Struct, array_like=True, frozen=True, tag="operated", kw_only=True):
    """An operator's call that changed something at the outpost."""

    #: the audit event's id
    id: UUID
    #: Unix time
    timestamp: float
    #: `kill_switch`, `provider_overrides`, `routing_overrides`, `budget` or `config_import`
    call: Annotated[str, Meta(pattern="^[a-z_]{1,64}$")]
    ip: Annotated[str, Meta(max_length=64)]
    #: None before the first policy, which says whose the outpost is
    tenant_id: UUID | None = None
    details: Details = {}


Notice: TypeAlias = Lost | Ended | Operated

_KINDS: Final = frozenset({"lost", "ended", "operated"})
_encoder = msgspec.json.Encoder()


def encode(notice: Notice) -> bytes:
    return _encoder.encode(notice)


def read(entry: Any) -> Notice | None:
    """None for what is no notice, and so a record. Raises `msgspec.ValidationError`."""
    if not (isinstance(entry, list) and entry and isinstance(entry[0], str) and entry[0] in _KINDS):
        return None
    notice: Notice = msgspec.convert(entry, Lost | Ended | Operated)
    return notice

"""Notices that an outpost uploads between its records, such as operators' calls and lost records. Each notice has a
sequence number among the records, so that notices arrive once and in order (docs/outpost-records.md)."""

from typing import Annotated, Any, Final, Literal, TypeAlias
from uuid import UUID

import msgspec
from msgspec import Meta

#: Details of an operator's call: names and plain values. The size is bounded because the platform stores them.
Details: TypeAlias = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=300)] | int | float | bool | None],
    Meta(max_length=20),
]


class Lost(msgspec.Struct, array_like=True, frozen=True, tag="lost"):
    """Records that this outpost has written and cannot upload. The audit chain records the gap."""

    #: `damaged`: the journal is corrupt; `refused`: the platform did not accept the line as a record; `gone`: the
    #: platform requested uploaded records again, but they have been deleted
    reason: Literal["damaged", "refused", "gone"]
    #: number of lost records, if known
    records: int | None = None
    bytes: int | None = None
    #: Unix time of the loss, if known
    timestamp: float | None = None


class Ended(msgspec.Struct, array_like=True, frozen=True, tag="ended"):
    """The process that wrote the journal has died, so its open streams were interrupted."""

    #: Unix time of the process' last record
    timestamp: float | None = None


class Operated(msgspec.Struct, array_like=True, frozen=True, tag="operated", kw_only=True):
    """An operator's call that changed the state of the outpost."""

    #: id of the audit event
    id: UUID
    #: Unix time of the call
    timestamp: float
    #: `kill_switch`, `provider_overrides`, `routing_overrides`, `budget` or `config_import`
    call: Annotated[str, Meta(pattern="^[a-z_]{1,64}$")]
    ip: Annotated[str, Meta(max_length=64)]
    #: the organization; None before the first policy, which identifies it
    tenant_id: UUID | None = None
    details: Details = {}


Notice: TypeAlias = Lost | Ended | Operated

_KINDS: Final = frozenset({"lost", "ended", "operated"})
_encoder = msgspec.json.Encoder()


def encode(notice: Notice) -> bytes:
    return _encoder.encode(notice)


def read(entry: Any) -> Notice | None:
    """Return the notice, or None if the entry is a record. Raises `msgspec.ValidationError`."""
    if not (isinstance(entry, list) and entry and isinstance(entry[0], str) and entry[0] in _KINDS):
        return None
    notice: Notice = msgspec.convert(entry, Lost | Ended | Operated)
    return notice

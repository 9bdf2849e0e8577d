"""What a reader hands out."""

from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID


class Position(NamedTuple):
    """Everything of a writer before `offset` of `segment` has been taken."""

    segment: int
    offset: int


class Entry(NamedTuple):
    """One record, and where the next one starts."""

    writer_id: UUID
    segment: int
    offset_end: int
    payload: bytes


class Damage(NamedTuple):
    """Bytes that are no record. `torn`: the end of a segment, cut short before it was acknowledged, which a kill leaves
    behind; otherwise something changed what had been written."""

    writer_id: UUID
    segment: int
    offset: int
    length: int
    torn: bool


@dataclass(slots=True)
class Batch:
    """What to store in one transaction: the entries' rows and, with them, the positions (only those that moved).

    `finished` writers are dead and hold no more records than these: what they left open can be closed. `more` says that
    a limit, not the end, stopped the reading. False when there is nothing to store or confirm.
    """

    entries: list[Entry] = field(default_factory=list)
    positions: dict[UUID, Position] = field(default_factory=dict)
    finished: list[UUID] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    more: bool = False
    #: read for it, damage included
    bytes: int = 0

    def __bool__(self) -> bool:
        return bool(self.positions or self.finished)


class Backlog(NamedTuple):
    """A writer's undrained bytes."""

    writer_id: UUID
    alive: bool
    bytes: int

"""Types that a journal reader returns."""

from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID


class Position(NamedTuple):
    """A writer's position: everything before `offset` of `segment` has been read."""

    segment: int
    offset: int


class JournalEntry(NamedTuple):
    """One record, and the offset of the next one."""

    writer_id: UUID
    segment: int
    offset_end: int
    payload: bytes


class Damage(NamedTuple):
    """Bytes that are not a record. `torn`: an incomplete, unacknowledged line at the end of a segment, after a kill.
    Otherwise written data was changed."""

    writer_id: UUID
    segment: int
    offset: int
    length: int
    torn: bool


@dataclass(slots=True)
class Batch:
    """The content of one transaction: the entries' rows and the positions that have changed.

    `finished` writers are dead and have no further records, so that their open requests can be closed. `more`: a limit
    stopped the reading. A batch is falsy if there is nothing to store or confirm.
    """

    entries: list[JournalEntry] = field(default_factory=list)
    positions: dict[UUID, Position] = field(default_factory=dict)
    finished: list[UUID] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    more: bool = False
    #: bytes read, including damage
    bytes: int = 0

    def __bool__(self) -> bool:
        return bool(self.positions or self.finished)


class Backlog(NamedTuple):
    """The undrained bytes of a writer."""

    writer_id: UUID
    alive: bool
    bytes: int

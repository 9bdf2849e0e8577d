"""Types that a journal reader returns."""

from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID


class Position(NamedTuple):
    """A position in the journal of a writer: everything before byte `offset` of `segment` has been read."""

    segment: int
    offset: int


class JournalEntry(NamedTuple):
    """One record. `offset_end` is the offset of the next record."""

    writer_id: UUID
    segment: int
    offset_end: int
    payload: bytes


class Damage(NamedTuple):
    """Bytes that are not a record. If `torn` is true, they are an incomplete line at the end of a segment: the process
    was killed before it acknowledged the record. Otherwise data was changed after it had been written."""

    writer_id: UUID
    segment: int
    offset: int
    length: int
    torn: bool


@dataclass(slots=True)
class Batch:
    """The content of one transaction: entries to store as rows, and the positions that have changed.

    `finished` lists writers that are dead and have no further records, so that their open requests can be closed.
    `more` is true if reading stopped at a limit. A batch is falsy if there is nothing to store or confirm.
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
    """The number of bytes of a writer that have not been drained yet."""

    writer_id: UUID
    alive: bool
    bytes: int

"""The audit log as one stream of lines: its files first, then what is still in the journal, oldest first. Each record
comes once, although records go from the journal into the files meanwhile."""

from collections.abc import Iterator
from typing import Final
from uuid import UUID

from gatehouse.foundation.journal import JournalReader
from gatehouse.outpost.audit_log import Cursor, NotALine, Spot, in_current_form, line, where
from gatehouse.outpost.records import Place, Records, Taken, taken

#: Entries at a time: some hundred kilobytes.
_PART: Final = 500


class Export:
    """One reading from its beginning to its end. `after`: only what comes after that place. `unsent`: only what is not
    handed in."""

    def __init__(self, records: Records, *, after: Cursor | None = None, unsent: bool = False) -> None:
        self._records = records
        self._after = after
        self._spot = Spot()
        self._reader = JournalReader(records.journal)
        #: of each journal that was read here: where to go on
        self._places: dict[UUID, Place] = {}
        self._ended: set[UUID] = set()
        #: the last number of each journal that was told, from there or from the files
        self._told: dict[UUID, int] = {}
        self._files = not unsent
        self.entries = 0

    def part(self) -> bytes | None:
        """The next lines, maybe none; None at the end. Reads files: not for the loop. Raises `OSError`."""
        if self._files and (lines := self._filed()) is not None:
            return b"".join(lines)
        with self._records.lock:
            # What has left the journal since is in the files by now.
            if self._files and (lines := self._filed()) is not None:
                return b"".join(lines)
            return self._journaled()

    def _filed(self) -> list[bytes] | None:
        lines, self._spot = self._records.audit.read(self._spot)
        found = [_shown(each) for each in lines if self._is_new(where(each))]
        self.entries += len(found)
        return found if lines else None

    def _journaled(self) -> bytes | None:
        for writer_id, place in self._records.places().items():
            held = self._places.get(writer_id)
            if held is None or held.sequence < place.sequence:
                self._places[writer_id] = place
        found = taken(self._reader, self._places, _PART, passing=self._ended)
        if found is None:
            return None
        self._places[found.writer_id] = found.then
        if found.finished:
            self._ended.add(found.writer_id)
        return b"".join(self._lines(found))

    def _lines(self, found: Taken) -> Iterator[bytes]:
        for number, entry in enumerate(found.entries, found.place.sequence):
            at = Cursor(found.writer_id, number)
            if self._is_new(at):
                self.entries += 1
                yield line(at, entry, handed_in=False)

    def _is_new(self, at: Cursor | None) -> bool:
        # A kill leaves some in both, the journal and the files.
        if at is None or at.sequence <= self._told.get(at.journal_id, 0):
            return False
        self._told[at.journal_id] = at.sequence
        return self._after is None or at > self._after


def _shown(of: bytes) -> bytes:
    try:
        return in_current_form(of)
    except NotALine:
        # A line of a later version, which was run here before: as it is.
        return of

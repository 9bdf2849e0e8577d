"""Exports the audit log as one stream of lines: first the lines of its files, then the entries of the journal that are
not uploaded, the oldest first. Each record appears once, although records move from the journal into the files
meanwhile."""

from collections.abc import Iterator
from typing import Final
from uuid import UUID

from gatehouse.foundation.journal import JournalReader
from gatehouse.outpost.records.log import (
    Cursor,
    NotALine,
    Spot,
    in_current_form,
    line,
    where,
)
from gatehouse.outpost.records.positions import (
    OutpostRecords,
    RecordBatch,
    UploadPosition,
    read_batch,
)

#: Maximum number of entries in a part of the stream, which then has some hundred kilobytes.
_BATCH_ENTRIES: Final = 500


class Export:
    """One export. It contains only lines after the position `after`, if `after` is not None. If `unsent` is true, it
    contains only records that are not uploaded."""

    def __init__(self, records: OutpostRecords, *, after: Cursor | None = None, unsent: bool = False) -> None:
        self._records = records
        self._after = after
        self._spot = Spot()
        self._reader = JournalReader(records.journal)
        #: The position of the next entry in each writer's journal.
        self._places: dict[UUID, UploadPosition] = {}
        self._ended: set[UUID] = set()
        #: The last exported sequence number of each journal.
        self._last_emitted: dict[UUID, int] = {}
        self._files = not unsent
        self.entries = 0

    def part(self) -> bytes | None:
        """Returns the next lines, or None at the end of the export. The result may be empty before the end. Blocks on
        files. Raises `OSError`."""
        if self._files and (lines := self._lines_of_files()) is not None:
            return b"".join(lines)
        with self._records.lock:
            # Read the files again, because entries may have moved from the journal into the files meanwhile.
            if self._files and (lines := self._lines_of_files()) is not None:
                return b"".join(lines)
            return self._lines_of_journal()

    def _lines_of_files(self) -> list[bytes] | None:
        lines, self._spot = self._records.audit.read(self._spot)
        new_lines = [_shown(text) for text in lines if self._is_new(where(text))]
        self.entries += len(new_lines)
        return new_lines if lines else None

    def _lines_of_journal(self) -> bytes | None:
        for writer_id, place in self._records.places().items():
            position = self._places.get(writer_id)
            if position is None or position.sequence < place.sequence:
                self._places[writer_id] = place
        batch = read_batch(self._reader, self._places, _BATCH_ENTRIES, skipped_writers=self._ended)
        if batch is None:
            return None
        self._places[batch.writer_id] = batch.then
        if batch.finished:
            self._ended.add(batch.writer_id)
        return b"".join(self._lines(batch))

    def _lines(self, batch: RecordBatch) -> Iterator[bytes]:
        for number, entry in enumerate(batch.entries, batch.place.sequence):
            cursor = Cursor(batch.writer_id, number)
            if self._is_new(cursor):
                self.entries += 1
                yield line(cursor, entry, handed_in=False)

    def _is_new(self, cursor: Cursor | None) -> bool:
        # After a kill some records are both in the journal and in the files.
        if cursor is None or cursor.sequence <= self._last_emitted.get(cursor.journal_id, 0):
            return False
        self._last_emitted[cursor.journal_id] = cursor.sequence
        return self._after is None or cursor > self._after


def _shown(text: bytes) -> bytes:
    try:
        return in_current_form(text)
    except NotALine:
        # A later version of the outpost has written this line.
        return text

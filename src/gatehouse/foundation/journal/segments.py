"""The segments of one writer. Only one thread at a time may use them."""

import contextlib
import os
from pathlib import Path
from uuid import UUID

from gatehouse.foundation.ids import new_id
from gatehouse.foundation.journal import files
from gatehouse.foundation.journal.framing import frame

#: After a failed write, writing resumes when these bytes can be written.
_PROBE = bytes(64 * 1024)


class Segments:
    """The segments of one writer. Lines are appended to the newest segment. The other segments never change."""

    def __init__(self, journal: Path, *, fsync: bool, segment_bytes: int) -> None:
        """Creates and locks the directory of a new writer. Raises `OSError`."""
        self.writer_id: UUID = new_id()
        self._fsync = fsync
        self._segment_bytes = segment_bytes
        self._number = 1
        self._size = 0
        self._broken = False

        journal.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = journal / f"{files.NEW_DIRECTORY_PREFIX}{self.writer_id}"
        self._directory.mkdir(mode=0o700)
        self._lock = files.lock(self._directory / files.LOCK)
        self._segment = self._open(self._number)
        self._directory = self._directory.rename(journal / str(self.writer_id))
        if fsync:
            files.sync_directory(journal)

    def commit(self, records: list[bytes]) -> tuple[int, OSError | None]:
        """Writes records in their order. Returns the number of records that are stored, and the error that prevented
        the others from being stored, or None.

        Without records, tests whether writing works again, and starts a new segment, so that the old segment can be
        deleted.
        """
        lines = b"".join([frame(record) for record in records])
        try:
            if self._broken:
                self._recover()
            elif self._size and (not lines or self._size + len(lines) > self._segment_bytes):
                self._move_to(self._open(self._number + 1))
        except OSError as error:
            return 0, error
        written = 0
        try:
            while written < len(lines):
                written += os.write(self._segment, lines[written:] if written else lines)
            if self._fsync and lines:
                files.sync_data(self._segment)
        except OSError as error:
            return self._discard_torn(lines, written), error
        self._size += written
        return len(records), None

    def close(self) -> None:
        """Releases the lock. A reader then reads the remaining records and deletes the directory."""
        os.close(self._segment)
        os.close(self._lock)

    def _discard_torn(self, lines: bytes, written: int) -> int:
        """Removes a torn line at the end of the segment. No reader has read this line. Returns the number of stored
        records.

        After a failed fsync it is unknown which lines are on the disk, and a second fsync may report success for lines
        that are lost. So no line is treated as stored, and the next write uses a new segment.
        """
        self._broken = True
        complete_bytes = lines.rfind(b"\n", 0, written) + 1
        # If truncation fails, the torn line stays at the end of the segment. The segment is not used again.
        with contextlib.suppress(OSError):
            os.ftruncate(self._segment, self._size + complete_bytes)
        self._size += complete_bytes
        return 0 if self._fsync else lines.count(b"\n", 0, complete_bytes)

    def _recover(self) -> None:
        """Starts a new segment if the disk has room for it. A failed attempt leaves no file. Raises `OSError`."""
        segment = self._open(self._number + 1)
        try:
            room = 0
            while room < len(_PROBE):
                room += os.write(segment, _PROBE[room:])
            os.ftruncate(segment, 0)
        except OSError:
            os.close(segment)
            files.segment_path(self._directory, self._number + 1).unlink()
            raise
        self._move_to(segment)
        self._broken = False

    def _move_to(self, segment: int) -> None:
        os.close(self._segment)
        self._number, self._size, self._segment = self._number + 1, 0, segment

    def _open(self, number: int) -> int:
        # Truncate the file: an attempt that failed may have left it.
        path = files.segment_path(self._directory, number)
        segment = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        if self._fsync:
            try:
                files.sync_directory(self._directory)
            except OSError:
                os.close(segment)
                raise
        return segment

"""Reads the journals of all writers, living and dead, and deletes segments whose records have been stored."""

import os
import shutil
import threading
import time
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from gatehouse.foundation.journal import files
from gatehouse.foundation.journal.batch import Backlog, Batch, Damage, JournalEntry, Position
from gatehouse.foundation.journal.framing import read_lines

START = Position(1, 0)


class JournalReader:
    """Reader of the journals of a home. A home has one keeper. All methods block on files, so do not call them on a
    server's event loop.

        reader.resume(positions stored in the database)
        batch = reader.batch()
        one transaction: rows of batch.entries, batch.positions, batch.finished
        deleted = reader.release(batch)         # the stored positions of the deleted writers may now be deleted

    A failed transaction needs no action: the next batch starts at the same position. If a commit's outcome is unknown,
    call `resume` with the positions in the database.

    A `follower` reads the same journal for another receiver: data is deleted only when both have confirmed it.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._confirmed: dict[UUID, Position] = {}
        self._dead: set[UUID] = set()
        self._first = 0
        self._claim: int | None = None
        #: writers that this reader has finished and another reader has not
        self._finished: set[UUID] = set()
        #: writers deleted since the last `release`
        self._deleted: list[UUID] = []
        self._readers = [self]
        self._deleting = threading.Lock()
        journal.mkdir(mode=0o700, parents=True, exist_ok=True)

    def follower(self) -> "JournalReader":
        """Returns another reader of the same journal with its own positions."""
        other = JournalReader(self._journal)
        self._readers.append(other)
        other._readers, other._deleting = self._readers, self._deleting
        return other

    def claim(self) -> bool:
        """Tries to become the keeper of the home until `close` or the end of the process. Returns whether it has
        succeeded."""
        if self._claim is None:
            with suppress(BlockingIOError):
                self._claim = files.lock(self._journal / files.KEEPER_LOCK)
        return self._claim is not None

    def close(self) -> None:
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None

    def resume(self, positions: Mapping[UUID, Position]) -> None:
        """Replaces the confirmed positions. Writers without a position are read from their start."""
        self._confirmed = dict(positions)

    def pass_over(self, writer_ids: Iterable[UUID]) -> None:
        """Marks writers as finished. An earlier process has read all of their records, but another reader still needs
        them."""
        self._finished.update(writer_ids)

    def last_written(self, writer_id: UUID) -> float | None:
        """Returns the Unix time of the writer's last write, or None if its files do not exist."""
        directory = self._journal / str(writer_id)
        try:
            return files.segment_path(directory, max(files.segments(directory))).stat().st_mtime
        except (ValueError, FileNotFoundError):
            return None

    def batch(self, max_records: int = 5_000, max_bytes: int = 8 * 1024**2) -> Batch:
        """Returns the records after the confirmed positions. The records of a writer are in order, and each writer has
        an equal share of the limits. Raises `OSError`."""
        batch = Batch()
        writers = files.writer_ids(self._journal)
        if writers:
            self._first = (self._first + 1) % len(writers)  # rotates, so that the last writer is not always the same
            writers = writers[self._first :] + writers[: self._first]
        for writers_left, writer_id in zip(range(len(writers), 0, -1), writers, strict=True):
            records = -(-(max_records - len(batch.entries)) // writers_left)
            size = -(-(max_bytes - batch.bytes) // writers_left)
            self._read_writer(writer_id, batch, (len(batch.entries) + records, batch.bytes + size))
        return batch

    def oldest(self, max_records: int, max_bytes: int, passing: Container[UUID] = ()) -> Batch:
        """Returns a batch of the oldest writer that has records and is not in `passing`. Raises `OSError`."""
        for writer_id in files.writer_ids(self._journal):
            if writer_id in passing:
                continue
            batch = Batch()
            self._read_writer(writer_id, batch, (max_records, max_bytes))
            if batch:
                return batch
        return Batch()

    def release(self, batch: Batch) -> list[UUID]:
        """Confirms a stored batch. Deletes the segments before its positions and the finished writers, unless another
        reader needs them. Returns the deleted writers. Raises `OSError` if a file cannot be deleted; the batch is
        confirmed nevertheless, and the next call tries to delete again."""
        self._confirmed.update(batch.positions)
        with self._deleting:
            for writer_id in batch.positions:
                self._drop_segments(writer_id)
            for writer_id in batch.finished:
                self._drop_writer(writer_id)
            deleted, self._deleted = self._deleted, []
        return deleted

    def backlog(self) -> list[Backlog]:
        """Returns the backlog of every writer, for metrics."""
        return [self._backlog(writer_id) for writer_id in files.writer_ids(self._journal)]

    def clean(self, older_than: float = 3600.0) -> None:
        """Removes directories that are at least `older_than` seconds old and whose writer was killed before it renamed
        them."""
        for directory in self._journal.glob(f"{files.NEW_DIRECTORY_PREFIX}*"):
            if directory.stat().st_mtime < time.time() - older_than and not files.is_locked(directory / files.LOCK):
                shutil.rmtree(directory)

    def _drop_segments(self, writer_id: UUID) -> None:
        directory = self._journal / str(writer_id)
        needed = [
            reader._confirmed.get(writer_id, START).segment
            for reader in self._readers
            if writer_id not in reader._finished
        ]
        for number in files.segments(directory):
            if number < min(needed, default=1):
                files.segment_path(directory, number).unlink(missing_ok=True)

    def _drop_writer(self, writer_id: UUID) -> None:
        self._finished.add(writer_id)
        if not all(writer_id in reader._finished for reader in self._readers):
            self._drop_segments(writer_id)
            return
        try:
            with suppress(FileNotFoundError):
                shutil.rmtree(self._journal / str(writer_id))
        except OSError:
            self._finished.discard(writer_id)
            raise
        for reader in self._readers:
            reader._confirmed.pop(writer_id, None)
            reader._finished.discard(writer_id)
            reader._dead.discard(writer_id)
            reader._deleted.append(writer_id)

    def _is_dead(self, writer_id: UUID) -> bool:
        """Returns whether a writer is dead. A dead writer stays dead, because no process uses another's directory."""
        if writer_id not in self._dead and not files.is_locked(self._journal / str(writer_id) / files.LOCK):
            self._dead.add(writer_id)
        return writer_id in self._dead

    def _read_writer(self, writer_id: UUID, batch: Batch, limits: tuple[int, int]) -> None:
        if writer_id in self._finished:
            return
        # Check for a dead writer before listing the segments: a segment of a dead writer, or one that has a successor,
        # no longer grows.
        dead = self._is_dead(writer_id)
        directory = self._journal / str(writer_id)
        confirmed = self._confirmed.get(writer_id, START)
        position = confirmed
        numbers = [number for number in files.segments(directory) if number >= confirmed.segment]
        at_end = True
        for number in numbers:
            if number > position.segment:
                position = Position(number, 0)
            sealed = dead or number != numbers[-1]
            position, at_end = _read_segment(directory, writer_id, position, batch, limits, sealed=sealed)
            if not at_end:
                break
        if position != confirmed:
            batch.positions[writer_id] = position
        batch.more |= not at_end
        if dead and at_end:
            batch.finished.append(writer_id)

    def _backlog(self, writer_id: UUID) -> Backlog:
        directory = self._journal / str(writer_id)
        segment, offset = self._confirmed.get(writer_id, START)
        sizes = files.segments(directory)
        size = sum(size for number, size in sizes.items() if number >= segment)
        return Backlog(writer_id, not self._is_dead(writer_id), size - min(offset, sizes.get(segment, 0)))


def _read_segment(
    directory: Path, writer_id: UUID, position: Position, batch: Batch, limits: tuple[int, int], *, sealed: bool
) -> tuple[Position, bool]:
    """Adds records to the batch until it reaches `limits` (records, bytes). Returns the new position, and whether it is
    the end of the segment."""
    segment, offset = position
    max_records, max_bytes = limits
    descriptor = os.open(files.segment_path(directory, segment), os.O_RDONLY)
    try:
        for end, record, torn in read_lines(descriptor, offset, sealed=sealed):
            if len(batch.entries) >= max_records or batch.bytes >= max_bytes:
                return Position(segment, offset), False
            if record is None:
                batch.damage.append(Damage(writer_id, segment, offset, end - offset, torn))
            else:
                batch.entries.append(JournalEntry(writer_id, segment, end, record))
            batch.bytes += end - offset
            offset = end
        return Position(segment, offset), True
    finally:
        os.close(descriptor)

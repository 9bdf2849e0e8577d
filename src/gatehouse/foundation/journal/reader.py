"""The keeper's side: follows all writers, living and dead, and deletes what the database has."""

import os
import shutil
import threading
import time
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from gatehouse.foundation.journal import files
from gatehouse.foundation.journal.batch import Backlog, Batch, Damage, Entry, Position
from gatehouse.foundation.journal.framing import read_lines

START = Position(1, 0)


class JournalReader:
    """One keeper per home. All calls read or delete files: not for the loop of a server.

        reader.resume(positions stored in the database)
        batch = reader.batch()
        one transaction: rows of batch.entries, batch.positions, batch.finished
        gone = reader.release(batch)            # stored positions of these writers can be deleted now, not before

    A failed transaction needs nothing: the next batch starts at the same place. Where a commit's outcome is unknown,
    `resume` with what the database says.

    A `follower` reads the same journal for another receiver: what one of the two has not confirmed yet, stays.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._confirmed: dict[UUID, Position] = {}
        self._dead: set[UUID] = set()
        self._first = 0
        self._claim: int | None = None
        #: read to their end here, and kept for another reader
        self._through: set[UUID] = set()
        #: gone since `release` last said which
        self._gone: list[UUID] = []
        self._readers = [self]
        self._deleting = threading.Lock()
        journal.mkdir(mode=0o700, parents=True, exist_ok=True)

    def follower(self) -> "JournalReader":
        """One with positions of its own."""
        other = JournalReader(self._journal)
        self._readers.append(other)
        other._readers, other._deleting = self._readers, self._deleting
        return other

    def claim(self) -> bool:
        """Whether this is the home's one keeper, from now until `close` or the process's end."""
        if self._claim is None:
            with suppress(BlockingIOError):
                self._claim = files.lock(self._journal / files.KEEPER_LOCK)
        return self._claim is not None

    def close(self) -> None:
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None

    def resume(self, positions: Mapping[UUID, Position]) -> None:
        """Forgets what was confirmed here, and goes on from `positions`; unknown writers from their start."""
        self._confirmed = dict(positions)

    def pass_over(self, writer_ids: Iterable[UUID]) -> None:
        """These writers were read to their end, before this reader was made; they are there for another one."""
        self._through.update(writer_ids)

    def last_written(self, writer_id: UUID) -> float | None:
        """When the writer's journal was last written to, as Unix time; None where its files are gone."""
        directory = self._journal / str(writer_id)
        try:
            return files.segment_path(directory, max(files.segments(directory))).stat().st_mtime
        except (ValueError, FileNotFoundError):
            return None

    def batch(self, max_records: int = 5_000, max_bytes: int = 8 * 1024**2) -> Batch:
        """The records after the confirmed positions, each writer's in order; a fair share of each. Raises `OSError`."""
        batch = Batch()
        writers = files.writer_ids(self._journal)
        if writers:
            self._first = (self._first + 1) % len(writers)  # whoever was cut short last time is not last again
            writers = writers[self._first :] + writers[: self._first]
        for left, writer_id in zip(range(len(writers), 0, -1), writers, strict=True):
            records = -(-(max_records - len(batch.entries)) // left)
            size = -(-(max_bytes - batch.bytes) // left)
            self._read_writer(writer_id, batch, (len(batch.entries) + records, batch.bytes + size))
        return batch

    def oldest(self, max_records: int, max_bytes: int, passing: Container[UUID] = ()) -> Batch:
        """As `batch`, of one writer: the oldest that holds anything, `passing` over some. Raises `OSError`."""
        for writer_id in files.writer_ids(self._journal):
            if writer_id in passing:
                continue
            batch = Batch()
            self._read_writer(writer_id, batch, (max_records, max_bytes))
            if batch:
                return batch
        return Batch()

    def release(self, batch: Batch) -> list[UUID]:
        """Confirms a batch that is stored. Deletes what no reader needs any more: segments before the positions, and
        finished writers whole; returns those of them that are gone now. Raises `OSError`; the batch is confirmed all
        the same, and the next tries the deleting again."""
        self._confirmed.update(batch.positions)
        with self._deleting:
            for writer_id in batch.positions:
                self._drop_segments(writer_id)
            for writer_id in batch.finished:
                self._drop_writer(writer_id)
            gone, self._gone = self._gone, []
        return gone

    def backlog(self) -> list[Backlog]:
        """Of every writer, for metrics."""
        return [self._backlog(writer_id) for writer_id in files.writer_ids(self._journal)]

    def clean(self, older_than: float = 3600.0) -> None:
        """Removes directories whose writer was killed before it had its name, seconds old at least."""
        for directory in self._journal.glob(f"{files.UNBORN}*"):
            if directory.stat().st_mtime < time.time() - older_than and not files.is_locked(directory / files.LOCK):
                shutil.rmtree(directory)

    def _drop_segments(self, writer_id: UUID) -> None:
        directory = self._journal / str(writer_id)
        needed = [
            reader._confirmed.get(writer_id, START).segment
            for reader in self._readers
            if writer_id not in reader._through
        ]
        for number in files.segments(directory):
            if number < min(needed, default=1):
                files.segment_path(directory, number).unlink(missing_ok=True)

    def _drop_writer(self, writer_id: UUID) -> None:
        self._through.add(writer_id)
        if not all(writer_id in reader._through for reader in self._readers):
            self._drop_segments(writer_id)
            return
        try:
            with suppress(FileNotFoundError):
                shutil.rmtree(self._journal / str(writer_id))
        except OSError:
            self._through.discard(writer_id)
            raise
        for reader in self._readers:
            reader._confirmed.pop(writer_id, None)
            reader._through.discard(writer_id)
            reader._dead.discard(writer_id)
            reader._gone.append(writer_id)

    def _is_dead(self, writer_id: UUID) -> bool:
        """For good: no process takes another's directory."""
        if writer_id not in self._dead and not files.is_locked(self._journal / str(writer_id) / files.LOCK):
            self._dead.add(writer_id)
        return writer_id in self._dead

    def _read_writer(self, writer_id: UUID, batch: Batch, limits: tuple[int, int]) -> None:
        if writer_id in self._through:
            return
        # In this order: a writer found dead writes no more, and a segment with a successor grows no more.
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
        held = sum(size for number, size in sizes.items() if number >= segment)
        return Backlog(writer_id, not self._is_dead(writer_id), held - min(offset, sizes.get(segment, 0)))


def _read_segment(
    directory: Path, writer_id: UUID, position: Position, batch: Batch, limits: tuple[int, int], *, sealed: bool
) -> tuple[Position, bool]:
    """Adds lines until the batch is as large as `limits` (records, bytes). Returns where it stopped, and whether that
    is the segment's end."""
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
                batch.entries.append(Entry(writer_id, segment, end, record))
            batch.bytes += end - offset
            offset = end
        return Position(segment, offset), True
    finally:
        os.close(descriptor)

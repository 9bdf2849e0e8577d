"""Writes records to the journal. Records appended in one iteration of the event loop are written together."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias
from uuid import UUID

from gatehouse.foundation.errors import Unavailable
from gatehouse.foundation.journal import files
from gatehouse.foundation.journal.framing import MAX_RECORD_BYTES, OVERHEAD_BYTES
from gatehouse.foundation.journal.segments import Segments

Sync: TypeAlias = Literal["write", "fsync"]

DEFAULT_MAX_BYTES = 4 * 1024**3
SEGMENT_BYTES = 8 * 1024**2
#: maximum size of the records that wait for the disk, some thousand records
QUEUE_BYTES = 4 * 1024**2
#: space that is reserved for the records of requests that were admitted before the journal was full
_RESERVE_BYTES = 64 * 1024**2


class JournalFull(Unavailable):
    """`JOURNAL_MAX_BYTES` is reached, or records arrive faster than the disk writes them."""

    code = "journal_full"
    message = "The journal is full. The request was not served, because it could not be recorded."


class JournalUnwritable(Unavailable):
    """The operating system refused the write (its `OSError` is the cause), or the journal is closed."""

    code = "journal_unwritable"
    message = "The journal cannot be written. The request was not served, because it could not be recorded."


class JournalWriter:
    """The journal writer of this process. Create, use and close it on one running event loop.

    With `sync="write"` a record is safe when it is in the page cache: it survives kill -9 of this process, but not a
    loss of power. The write takes microseconds and runs on the loop. With `sync="fsync"` a record is safe when it is on
    the disk. An fsync takes milliseconds and runs in a thread. One fsync runs at a time, for all records since the last
    one.
    """

    def __init__(
        self,
        journal: Path,
        *,
        sync: Sync = "write",
        max_bytes: int = DEFAULT_MAX_BYTES,
        segment_bytes: int = SEGMENT_BYTES,
        look_every: float = 1.0,
    ) -> None:
        """Creates the directory of the writer in `journal`. All writers of a home share `journal` and its limit
        `max_bytes`. Every `look_every` seconds the writer measures the size of all writers' segments. Raises `OSError`
        if a file cannot be created.
        """
        self._loop = asyncio.get_running_loop()
        self._journal = journal
        self._segments = Segments(journal, fsync=sync == "fsync", segment_bytes=min(segment_bytes, max_bytes // 16))
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal") if sync == "fsync" else None
        self._records: list[bytes] = []
        self._waiters: list[asyncio.Future[None]] = []
        self._queued = 0
        self._flush_due = False
        #: whether at most one record arrived in the last iteration of the loop that wrote records
        self._single_record = False
        #: loop time at which a single record was last written immediately
        self._written_at = 0.0
        self._committing: asyncio.Future[tuple[int, OSError | None]] | None = None
        self._failing = False
        self._closed = False

        self._max_bytes = max_bytes
        self._reserve = min(_RESERVE_BYTES, max_bytes // 8)
        self._measure_interval_seconds = look_every
        self._next_measurement = self._loop.time() + look_every
        self._measuring: asyncio.Future[tuple[int, int]] | None = None
        self._appended = 0
        self._set_limit(0, *_measure(journal))

    @property
    def writer_id(self) -> UUID:
        return self._segments.writer_id

    def append(self, record: bytes) -> asyncio.Future[None]:
        """Appends a record and returns a future that is done when the record is safe (see `sync`). Cancelling the
        future does not remove the record. Raises `ValueError` for a record that contains a line break or is longer than
        `MAX_RECORD_BYTES`.

        Raises `JournalFull` at the call. Raises `JournalUnwritable` at the call or from the future; the record is then
        not acknowledged.
        """
        size = len(record) + OVERHEAD_BYTES
        if size > MAX_RECORD_BYTES + OVERHEAD_BYTES or b"\n" in record:
            raise ValueError("a record is one line of at most 1 MiB")
        if self._closed:
            raise JournalUnwritable
        if self._queued + size > QUEUE_BYTES:
            if self._thread is not None:
                raise JournalFull
            self._flush()
        appended = self._appended + size
        if self._base + appended > self._limit:
            raise JournalFull
        self._appended = appended
        self._queued += size
        waiter = self._loop.create_future()
        self._records.append(record)
        self._waiters.append(waiter)
        if not self._flush_due:
            now = self._loop.time()
            if self._single_record and now != self._written_at:
                # With few requests there are no other records to batch, and waiting costs an iteration of the loop.
                self._written_at = now
                self._flush()
            else:
                self._flush_due = True
                self._loop.call_soon(self._scheduled_flush)
        return waiter

    def full(self) -> bool:
        """Returns whether new requests must be refused: if the journal is nearly full, if the disk is nearly full, or
        if the last write failed. It is true before `append` refuses records, so that the records of running requests
        can still be written. A call takes a microsecond."""
        self._measure_if_due()
        return self._failing or self._over_limit()

    def half_full(self) -> bool:
        """Returns whether the journal is half full. Then the keeper drains records more slowly than they arrive, and an
        operator should be warned."""
        return self.size_bytes() * 2 >= self._max_bytes

    def size_bytes(self) -> int:
        """Returns the number of undrained bytes of all writers. The number for other writers is at most `look_every`
        seconds old."""
        self._measure_if_due()
        return self._base + self._appended

    async def close(self) -> None:
        """Writes the waiting records and closes the segment. `append` then refuses further records."""
        if self._closed:
            return
        self._closed = True
        self._flush()
        while self._committing is not None:
            await asyncio.wait([self._committing])
        if self._measuring is not None:
            await asyncio.wait([self._measuring])
        if self._thread is not None:
            self._thread.shutdown()
        self._segments.close()

    def _over_limit(self) -> bool:
        return self._base + self._appended > self._limit - self._reserve

    def _scheduled_flush(self) -> None:
        self._single_record = self._thread is None and len(self._records) <= 1
        self._flush()

    def _flush(self) -> None:
        self._flush_due = False
        if self._committing is not None:
            return  # when the running commit is done, it writes the records that have arrived meanwhile
        self._measure_if_due()
        if self._records:
            self._commit()

    def _commit(self) -> None:
        records, self._records = self._records, []
        waiters, self._waiters = self._waiters, []
        self._queued = 0
        if self._thread is None:
            self._settle(waiters, self._segments.commit(records))
        else:
            self._committing = self._loop.run_in_executor(self._thread, self._segments.commit, records)
            self._committing.add_done_callback(partial(self._committed, waiters))

    def _committed(self, waiters: list[asyncio.Future[None]], done: asyncio.Future[tuple[int, OSError | None]]) -> None:
        self._committing = None
        self._settle(waiters, done.result())
        self._flush()

    def _settle(self, waiters: list[asyncio.Future[None]], done: tuple[int, OSError | None]) -> None:
        stored, error = done
        self._failing = error is not None
        for waiter in waiters[:stored] if error else waiters:
            if not waiter.done():
                waiter.set_result(None)
        if error is not None:
            for waiter in waiters[stored:]:
                if not waiter.done():
                    refusal = JournalUnwritable()
                    refusal.__cause__ = error
                    waiter.set_exception(refusal)

    def _measure_if_due(self) -> None:
        """Starts a measurement if one is due. The measurement runs in a thread, because the directory may have hundreds
        of files. The writer's methods call this function, so an idle writer measures nothing."""
        if self._measuring is not None or self._loop.time() < self._next_measurement or self._closed:
            return
        if (self._failing or self._over_limit()) and self._committing is None and not self._records:
            # A commit without records tests the disk and starts a new segment. New requests are refused meanwhile, so
            # no record causes a commit.
            self._commit()
        self._measuring = self._loop.run_in_executor(None, _measure, self._journal)
        self._measuring.add_done_callback(partial(self._measured, self._appended))

    def _measured(self, appended_before: int, measuring: asyncio.Future[tuple[int, int]]) -> None:
        self._measuring = None
        self._next_measurement = self._loop.time() + self._measure_interval_seconds
        if not measuring.cancelled() and measuring.exception() is None:
            self._set_limit(appended_before, *measuring.result())

    def _set_limit(self, appended_before: int, used: int, free: int) -> None:
        self._base = used - appended_before
        # The free disk space is also a limit, so that new requests are refused before running ones fail.
        self._limit = min(self._max_bytes, used + free)


def _measure(journal: Path) -> tuple[int, int]:
    """Returns the size of the journal and the free space of its disk, in bytes."""
    return files.journal_bytes(journal), files.free_bytes(journal)

"""The request path's side: records appended in one turn of the loop are written together."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias
from uuid import UUID

from gatehouse.foundation.journal import files
from gatehouse.foundation.journal.errors import JournalFull, JournalUnwritable
from gatehouse.foundation.journal.framing import MAX_RECORD_BYTES, OVERHEAD_BYTES
from gatehouse.foundation.journal.segments import Segments

Sync: TypeAlias = Literal["write", "fsync"]

DEFAULT_MAX_BYTES = 4 * 1024**3
SEGMENT_BYTES = 8 * 1024**2
#: Records that wait for the disk, at most: some thousand.
QUEUE_BYTES = 4 * 1024**2
#: Kept for requests that were let in before the journal was full: their records still fit.
_RESERVE_BYTES = 64 * 1024**2


class JournalWriter:
    """This process's part of the journal. Made, used and closed in one running loop.

    `sync` is `write` (a record is with the system: it survives kill -9 of this process, not a loss of power) or `fsync`
    (it is on the disk). A write into the page cache takes some microseconds and is done on the loop; a sync takes
    milliseconds and is done by a thread, one at a time, for everything that came since the last.
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
        """`journal` is shared by all writers of a home, and so is its bound, `max_bytes`: every `look_every` seconds
        a writer looks what the others wrote and the keeper drained. Raises `OSError` if no file can be made there.
        """
        self._loop = asyncio.get_running_loop()
        self._journal = journal
        self._segments = Segments(journal, fsync=sync == "fsync", segment_bytes=min(segment_bytes, max_bytes // 16))
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal") if sync == "fsync" else None
        self._records: list[bytes] = []
        self._waiters: list[asyncio.Future[None]] = []
        self._queued = 0
        self._flush_due = False
        #: whether the last turn of the loop had one record, and when such a one was last written at once
        self._alone = False
        self._moment = 0.0
        self._committing: asyncio.Future[tuple[int, OSError | None]] | None = None
        self._failing = False
        self._closed = False

        self._max_bytes = max_bytes
        self._reserve = min(_RESERVE_BYTES, max_bytes // 8)
        self._look_every = look_every
        self._next_look = self._loop.time() + look_every
        self._look: asyncio.Future[tuple[int, int]] | None = None
        self._appended = 0
        self._seen(0, *_look(journal))

    @property
    def writer_id(self) -> UUID:
        return self._segments.writer_id

    def append(self, record: bytes) -> asyncio.Future[None]:
        """Done when the record is safe (see `sync`). The record is taken at the call: a caller who stops waiting does
        not take it back. It holds no line break and at most `MAX_RECORD_BYTES` (else `ValueError`).

        Raises `JournalFull` or `JournalUnwritable`, at the call or when awaited; the record is then not acknowledged.
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
            moment = self._loop.time()
            if self._alone and moment != self._moment:
                # With few requests there is no other to go with, and waiting for one costs a turn of the loop.
                self._moment = moment
                self._flush()
            else:
                self._flush_due = True
                self._loop.call_soon(self._turn_over)
        return waiter

    def full(self) -> bool:
        """Whether no new request may start. True a little before `append` refuses, so that the records of those that
        have started still fit; and while the disk is nearly full or refuses to be written. Costs a microsecond."""
        self._look_if_due()
        return self._failing or self._over()

    def half_full(self) -> bool:
        """Worth a warning: the drain does not keep up."""
        return self.size_bytes() * 2 >= self._max_bytes

    def size_bytes(self) -> int:
        """Undrained bytes of all writers, at most `look_every` old in what the others do."""
        self._look_if_due()
        return self._base + self._appended

    async def close(self) -> None:
        """Writes what waits, and leaves the rest to the reader. A record appended later is refused."""
        if self._closed:
            return
        self._closed = True
        self._flush()
        while self._committing is not None:
            await asyncio.wait([self._committing])
        if self._look is not None:
            await asyncio.wait([self._look])
        if self._thread is not None:
            self._thread.shutdown()
        self._segments.close()

    def _over(self) -> bool:
        return self._base + self._appended > self._limit - self._reserve

    def _turn_over(self) -> None:
        self._alone = self._thread is None and len(self._records) <= 1
        self._flush()

    def _flush(self) -> None:
        self._flush_due = False
        if self._committing is not None:
            return  # what came meanwhile goes together when that is done
        self._look_if_due()
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
        kept, error = done
        self._failing = error is not None
        for waiter in waiters[:kept] if error else waiters:
            if not waiter.done():
                waiter.set_result(None)
        if error is not None:
            for waiter in waiters[kept:]:
                if not waiter.done():
                    refusal = JournalUnwritable()
                    refusal.__cause__ = error
                    waiter.set_exception(refusal)

    def _look_if_due(self) -> None:
        """Off the loop: the folder may hold hundreds of files. Driven by use, so that an idle writer costs nothing."""
        if self._look is not None or self._loop.time() < self._next_look or self._closed:
            return
        if (self._failing or self._over()) and self._committing is None and not self._records:
            self._commit()  # of nothing: no record comes that could find the disk well, or the segment at its size
        self._look = self._loop.run_in_executor(None, _look, self._journal)
        self._look.add_done_callback(partial(self._looked, self._appended))

    def _looked(self, appended_before: int, look: asyncio.Future[tuple[int, int]]) -> None:
        self._look = None
        self._next_look = self._loop.time() + self._look_every
        if not look.cancelled() and look.exception() is None:
            self._seen(appended_before, *look.result())

    def _seen(self, appended_before: int, held: int, free: int) -> None:
        self._base = held - appended_before
        # A disk that runs out before the bound is reached is a bound too, and better met early than in mid-request.
        self._limit = min(self._max_bytes, held + free)


def _look(journal: Path) -> tuple[int, int]:
    """Bytes held by the journal, and free on its disk."""
    return files.journal_bytes(journal), files.free_bytes(journal)

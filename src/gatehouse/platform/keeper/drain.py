"""The loop that follows the journal. Runs in a thread of its own: it reads files and waits for the database."""

import os
import threading
import time
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

import msgspec
import psycopg
import structlog

from gatehouse.foundation.journal import Batch, JournalReader, Position
from gatehouse.platform.keeper.prepare import decoded, prepare
from gatehouse.platform.keeper.store import BadRecord, Overtaken, Store

log = structlog.get_logger(__name__)

#: What one transaction holds at most: its tenants' chains are locked for some 50 ms then.
MOST_RECORDS: Final = 2_000
#: Seconds between looks while little happens, and while much does: a larger batch costs less a record.
_PAUSE: Final = 0.05
_BUSY_PAUSE: Final = 0.15
_BUSY_RECORDS: Final = 50
_FIRST_RETRY: Final = 0.1
_LAST_RETRY: Final = 2.0
#: Seconds between notes of the keys' last use, and of the backlog.
_NOTE_EVERY: Final = 1.0
_CLEAN_EVERY: Final = 3600.0
#: `store` bounds statements and transactions: a database that is too slow for a batch is asked for half of it.
_TOOK_TOO_LONG: Final = (psycopg.errors.QueryCanceled, psycopg.errors.TransactionTimeout)


class DrainStatus(msgspec.Struct):
    """For metrics: read from other threads, written by one."""

    #: whether the database took the last batch
    connected: bool = False
    #: stored since the start
    rows: int = 0
    batches: int = 0
    #: entries that cannot be stored; they are kept in `rejected.log` beside the journal
    rejected: int = 0
    #: bytes of the journal that were no record and not the torn end of a killed process
    damaged_bytes: int = 0
    #: not yet stored
    backlog_bytes: int = 0
    #: age of the oldest request of the last batch when it was stored
    lag_seconds: float = 0.0
    #: Unix time
    away_since: float | None = None


class Rejected(NamedTuple):
    payloads: list[bytes]
    reason: str


class Drain:
    """One home's. `stop` lets it store what is there, and end."""

    def __init__(self, url: str, journal: Path) -> None:
        self.status = DrainStatus()
        self._url = url
        self._journal = journal
        self._reader = JournalReader(journal)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="drain", daemon=True)
        self._store: Store | None = None
        #: what the database holds, as far as is known here
        self._held: dict[UUID, Position] = {}
        self._most = MOST_RECORDS
        self._retry = _FIRST_RETRY
        self._next_note = 0.0
        self._next_clean = 0.0

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Returns when everything is stored, the database is away, or after `timeout` seconds. Nothing is lost by
        that: the rest is in the journal."""
        self._stopping.set()
        self._thread.join(timeout)

    def lag_seconds(self) -> float:
        """How far the database is behind the journal."""
        status = self.status
        away = 0.0 if status.away_since is None else time.time() - status.away_since
        return away if status.backlog_bytes and away else status.lag_seconds

    def _run(self) -> None:
        if not self._claimed():
            return
        while True:
            stopping = self._stopping.is_set()
            try:
                pause = self._step()
            except Overtaken:
                log.info("drain.resumed")
                self._disconnect()
                pause = 0.0
            except (psycopg.Error, OSError) as error:
                pause = self._failed(error)
                if stopping:
                    break
            except Exception:
                log.exception("drain.fault")
                pause = self._failed(None)
                if stopping:
                    break
            if stopping and pause == _PAUSE:
                break
            if pause and not stopping:
                self._stopping.wait(pause)
        self._disconnect()
        self._reader.close()

    def _claimed(self) -> bool:
        """Waits for a keeper that is still ending. False when told to stop meanwhile."""
        told = False
        while not self._reader.claim():
            if not told:
                log.warning("drain.waiting", reason="another keeper has this home")
                told = True
            if self._stopping.wait(0.2):
                return False
        return True

    def _step(self) -> float:
        """Stores one batch. How long to wait before the next, `_PAUSE` where nothing is left."""
        store = self._store or self._connect()
        batch = self._reader.batch(max_records=self._most)
        if batch:
            try:
                self._drain(store, batch)
            except BadRecord as error:
                # One record is bad. Which one shows in batches half as large, and at last alone.
                if len(batch.entries) > 1:
                    self._most = max(1, len(batch.entries) // 2)
                    return 0.0
                alone = [entry.payload for entry in batch.entries]
                self._drain(store, _without_entries(batch), Rejected(alone, str(error)))
            self._most = min(MOST_RECORDS, self._most * 2)
        else:
            self._most = MOST_RECORDS
            self.status.lag_seconds = 0.0
        self._status_now()
        if batch.more or self._most < MOST_RECORDS:
            return 0.0
        return _BUSY_PAUSE if len(batch.entries) > _BUSY_RECORDS else _PAUSE

    def _connect(self) -> Store:
        store = Store(self._url)
        try:
            self._held = store.positions()
        except BaseException:
            store.close()
            raise
        self._reader.resume(self._held)
        self._store = store
        if not self.status.connected:
            log.info("drain.connected")
        return store

    def _disconnect(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def _failed(self, error: Exception | None) -> float:
        """The outcome of a commit may be unknown: the next connection asks the database how far it is."""
        if self.status.connected or self._retry == _FIRST_RETRY:
            reason = "" if error is None else f"{type(error).__name__}: {error}".split("\n", 1)[0]
            log.warning("drain.database_away", reason=reason)
        if isinstance(error, _TOOK_TOO_LONG):
            self._most = max(1, self._most // 2)
        self.status.connected = False
        self.status.away_since = self.status.away_since or time.time()
        self.status.backlog_bytes = sum(each.bytes for each in self._reader.backlog())
        self._disconnect()
        pause, self._retry = self._retry, min(self._retry * 2, _LAST_RETRY)
        return pause

    def _drain(self, store: Store, batch: Batch, aside: Rejected | None = None) -> None:
        entries, unreadable = decoded(batch)
        missing = store.missing_tenants({each.entry.tenant_id for each in entries})
        nobodys = [each.payload for each in entries if each.entry.tenant_id in missing]
        entries = [each for each in entries if each.entry.tenant_id not in missing]
        rejected = [
            Rejected(unreadable, "not an entry"),
            Rejected(nobodys, "of a tenant that is not in the database"),
            aside or Rejected([], ""),
        ]
        prepared = prepare(entries, batch.finished, store.left_open(batch.finished))
        store.ensure_months({*prepared.usage, *prepared.dlp.events})
        store.write(batch, self._held, prepared, at_last=lambda: self._reject(rejected))
        self._held.update(batch.positions)
        gone = self._reader.release(batch)
        store.forget(gone)
        for writer in gone:
            self._held.pop(writer, None)
        self.status.rejected += sum(len(each.payloads) for each in rejected)
        self._stored(batch, prepared.rows, prepared.first_ended)

    def _stored(self, batch: Batch, rows: int, first_ended: float) -> None:
        status = self.status
        status.rows += rows
        status.batches += 1
        status.lag_seconds = max(0.0, time.time() - first_ended) if rows else 0.0
        for damage in batch.damage:
            if not damage.torn:
                status.damaged_bytes += damage.length
                log.error("drain.damaged", writer_id=str(damage.writer_id), segment=damage.segment, at=damage.offset)

    def _status_now(self) -> None:
        """The database has taken everything so far."""
        self.status.connected, self.status.away_since = True, None
        self._retry = _FIRST_RETRY
        now = time.monotonic()
        if now >= self._next_note or self._stopping.is_set():
            self._next_note = now + _NOTE_EVERY
            self.status.backlog_bytes = sum(each.bytes for each in self._reader.backlog())
        if now >= self._next_clean:
            self._next_clean = now + _CLEAN_EVERY
            self._reader.clean()

    def _reject(self, rejected: list[Rejected]) -> None:
        """Puts entries aside that can never be stored, so that those behind them can. They stay on this machine."""
        payloads = []
        for each in rejected:
            if each.payloads:
                log.error("drain.rejected", records=len(each.payloads), reason=each.reason.split("\n", 1)[0])
                payloads += each.payloads
        if not payloads:
            return
        descriptor = os.open(self._journal / "rejected.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, b"".join(payload + b"\n" for payload in payloads))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _without_entries(batch: Batch) -> Batch:
    """The batch without its entries: only its position is stored."""
    return Batch([], batch.positions, batch.finished, batch.damage, batch.more, batch.bytes)

"""Stores the journal in the database in a loop. The loop runs in its own thread, because it reads files and blocks on
the database."""

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
from gatehouse.platform.keeper.prepare import decode_batch, prepare
from gatehouse.platform.keeper.store import BadRecord, Overtaken, Store

log = structlog.get_logger(__name__)

#: Maximum number of records in a transaction. The transaction locks the audit chains of its tenants for about 50
#: milliseconds.
MAX_BATCH_RECORDS: Final = 2_000
#: Pause between batches. It is longer after a batch of more than `_BUSY_RECORDS` records, because larger batches cost
#: less per record.
_IDLE_PAUSE_SECONDS: Final = 0.05
_BUSY_PAUSE_SECONDS: Final = 0.15
_BUSY_RECORDS: Final = 50
_FIRST_RETRY_SECONDS: Final = 0.1
_MAX_RETRY_SECONDS: Final = 2.0
_CLAIM_RETRY_SECONDS: Final = 0.2
_BACKLOG_INTERVAL_SECONDS: Final = 1.0
_CLEAN_INTERVAL_SECONDS: Final = 3600.0
#: Errors of the statement and transaction timeouts that `store` sets. After one of these errors, the size of the batch
#: is halved.
_TIMEOUT_ERRORS: Final = (psycopg.errors.QueryCanceled, psycopg.errors.TransactionTimeout)


class DrainStatus(msgspec.Struct):
    """The state of the drain, for metrics and heartbeats. The drain's thread writes it, and other threads read it."""

    #: whether the last step succeeded: it stored a batch, or there was nothing to store
    connected: bool = False
    #: number of requests stored since the start
    rows: int = 0
    batches: int = 0
    #: number of entries that cannot be stored; they are appended to `rejected.log` in the folder of the journal
    rejected: int = 0
    #: number of damaged bytes of the journal. An incomplete record at the end, which a killed process leaves, is no
    #: damage.
    damaged_bytes: int = 0
    #: number of bytes that are not stored yet
    backlog_bytes: int = 0
    #: age of the oldest request of the last batch when it was stored
    lag_seconds: float = 0.0
    #: Unix time since which the database is unreachable
    away_since: float | None = None


class RejectedEntries(NamedTuple):
    payloads: list[bytes]
    reason: str


class Drain:
    """The drain of one home. `stop` stores the remaining records of the journal and ends the thread."""

    def __init__(self, url: str, journal: Path) -> None:
        self.status = DrainStatus()
        self._url = url
        self._journal = journal
        self._reader = JournalReader(journal)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="drain", daemon=True)
        self._store: Store | None = None
        #: the positions in the database when this process last read or stored them
        self._positions: dict[UUID, Position] = {}
        self._max_records = MAX_BATCH_RECORDS
        self._retry_seconds = _FIRST_RETRY_SECONDS
        self._next_backlog = 0.0
        self._next_clean = 0.0

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Stop the drain. Returns when everything is stored, the database is unreachable, or `timeout` seconds are
        over. Records that are not stored remain in the journal."""
        self._stopping.set()
        self._thread.join(timeout)

    def lag_seconds(self) -> float:
        """Return the number of seconds by which the database is behind the journal."""
        status = self.status
        outage = 0.0 if status.away_since is None else time.time() - status.away_since
        return outage if status.backlog_bytes and outage else status.lag_seconds

    def _run(self) -> None:
        if not self._claim():
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
                pause = self._handle_failure(error)
                if stopping:
                    break
            except Exception:
                log.exception("drain.fault")
                pause = self._handle_failure(None)
                if stopping:
                    break
            if stopping and pause == _IDLE_PAUSE_SECONDS:
                break
            if pause and not stopping:
                self._stopping.wait(pause)
        self._disconnect()
        self._reader.close()

    def _claim(self) -> bool:
        """Claim the journal. Waits for another keeper of this home that is still stopping. Returns False if `stop` was
        called."""
        logged = False
        while not self._reader.claim():
            if not logged:
                log.warning("drain.waiting", reason="another keeper has this home")
                logged = True
            if self._stopping.wait(_CLAIM_RETRY_SECONDS):
                return False
        return True

    def _step(self) -> float:
        """Store one batch. Returns the number of seconds to wait before the next batch, which is `_IDLE_PAUSE_SECONDS`
        if no records remain."""
        store = self._store or self._connect()
        batch = self._reader.batch(max_records=self._max_records)
        if batch:
            try:
                self._drain(store, batch)
            except BadRecord as error:
                # Halve the batch until it contains only the bad record.
                if len(batch.entries) > 1:
                    self._max_records = max(1, len(batch.entries) // 2)
                    return 0.0
                payloads = [entry.payload for entry in batch.entries]
                self._drain(store, _without_entries(batch), RejectedEntries(payloads, str(error)))
            self._max_records = min(MAX_BATCH_RECORDS, self._max_records * 2)
        else:
            self._max_records = MAX_BATCH_RECORDS
            self.status.lag_seconds = 0.0
        self._note_success()
        if batch.more or self._max_records < MAX_BATCH_RECORDS:
            return 0.0
        return _BUSY_PAUSE_SECONDS if len(batch.entries) > _BUSY_RECORDS else _IDLE_PAUSE_SECONDS

    def _connect(self) -> Store:
        store = Store(self._url)
        try:
            self._positions = store.positions()
        except BaseException:
            store.close()
            raise
        self._reader.resume(self._positions)
        self._store = store
        if not self.status.connected:
            log.info("drain.connected")
        return store

    def _disconnect(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def _handle_failure(self, error: Exception | None) -> float:
        """Disconnect, and return the number of seconds until the retry. The result of a commit may be unknown, so the
        next connection reads the positions from the database."""
        if self.status.connected or self._retry_seconds == _FIRST_RETRY_SECONDS:
            reason = "" if error is None else f"{type(error).__name__}: {error}".split("\n", 1)[0]
            log.warning("drain.database_away", reason=reason)
        if isinstance(error, _TIMEOUT_ERRORS):
            self._max_records = max(1, self._max_records // 2)
        self.status.connected = False
        self.status.away_since = self.status.away_since or time.time()
        self.status.backlog_bytes = sum(backlog.bytes for backlog in self._reader.backlog())
        self._disconnect()
        pause, self._retry_seconds = self._retry_seconds, min(self._retry_seconds * 2, _MAX_RETRY_SECONDS)
        return pause

    def _drain(self, store: Store, batch: Batch, bad_record: RejectedEntries | None = None) -> None:
        entries, unreadable = decode_batch(batch)
        missing = store.missing_tenants({decoded.entry.tenant_id for decoded in entries})
        orphans = [decoded.payload for decoded in entries if decoded.entry.tenant_id in missing]
        entries = [decoded for decoded in entries if decoded.entry.tenant_id not in missing]
        rejected = [
            RejectedEntries(unreadable, "not a valid entry"),
            RejectedEntries(orphans, "the tenant is not in the database"),
            bad_record or RejectedEntries([], ""),
        ]
        prepared = prepare(entries, batch.finished, store.left_open(batch.finished))
        store.ensure_months({*prepared.usage, *prepared.dlp.events})
        store.write(batch, self._positions, prepared, before_commit=lambda: self._reject(rejected))
        self._positions.update(batch.positions)
        finished_writers = self._reader.release(batch)
        store.forget_writers(finished_writers)
        for writer in finished_writers:
            self._positions.pop(writer, None)
        self.status.rejected += sum(len(group.payloads) for group in rejected)
        self._note_stored(batch, prepared.rows, prepared.first_ended)

    def _note_stored(self, batch: Batch, rows: int, first_ended: float) -> None:
        status = self.status
        status.rows += rows
        status.batches += 1
        status.lag_seconds = max(0.0, time.time() - first_ended) if rows else 0.0
        for damage in batch.damage:
            if not damage.torn:
                status.damaged_bytes += damage.length
                log.error("drain.damaged", writer_id=str(damage.writer_id), segment=damage.segment, at=damage.offset)

    def _note_success(self) -> None:
        """Update the status after a batch was stored, or if there was nothing to store.

        Resets the retry delay. Counts the backlog and cleans the journal at their intervals.
        """
        self.status.connected, self.status.away_since = True, None
        self._retry_seconds = _FIRST_RETRY_SECONDS
        now = time.monotonic()
        if now >= self._next_backlog or self._stopping.is_set():
            self._next_backlog = now + _BACKLOG_INTERVAL_SECONDS
            self.status.backlog_bytes = sum(backlog.bytes for backlog in self._reader.backlog())
        if now >= self._next_clean:
            self._next_clean = now + _CLEAN_INTERVAL_SECONDS
            self._reader.clean()

    def _reject(self, rejected: list[RejectedEntries]) -> None:
        """Append entries that can never be stored to `rejected.log` on this machine, so that they do not block later
        entries."""
        payloads = []
        for group in rejected:
            if group.payloads:
                log.error("drain.rejected", records=len(group.payloads), reason=group.reason.split("\n", 1)[0])
                payloads += group.payloads
        if not payloads:
            return
        descriptor = os.open(self._journal / "rejected.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, b"".join(payload + b"\n" for payload in payloads))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _without_entries(batch: Batch) -> Batch:
    """Return the batch without its entries, so that only its positions are stored."""
    return Batch([], batch.positions, batch.finished, batch.damage, batch.more, batch.bytes)

"""Uploads the records of the journal in order, while the platform is reachable (docs/outpost-records.md).

Records stay in the journal until the platform has confirmed that it has stored them. If the process is killed after the
confirmation and before it has stored the upload position, it sends the same sequence numbers again, and the platform
skips them.
"""

import asyncio
import random
import time
from typing import Any, Final

import msgspec
import structlog

from gatehouse.engine.records import upload_notices
from gatehouse.engine.records.upload_notices import Lost
from gatehouse.outpost.platform_link.client import PlatformClient, PlatformRefusal, PlatformUnavailable
from gatehouse.outpost.records.journal_loop import JournalLoop
from gatehouse.outpost.records.positions import MAX_UPLOAD_RECORDS, OutpostRecords, RecordBatch

log = structlog.get_logger(__name__)

#: The interval between retries doubles from the first to the second number.
_MIN_RETRY_SECONDS, _MAX_RETRY_SECONDS = 0.5, 15.0
#: Number of doublings after which the interval has its maximum.
_MAX_DOUBLINGS: Final = 5
#: Statuses with which the platform refuses a batch that has an invalid record or is too large.
_BATCH_REFUSED: Final = frozenset({400, 413, 422})
#: Maximum number of rejected records of one upload that are logged.
_MAX_LOGGED_REJECTIONS: Final = 20


class UploadStatus(msgspec.Struct):
    """The state of the upload. Numbers count records since the start. `at` is the Unix time of the last upload."""

    handed_in: int = 0
    #: rejected by the platform; they are in the audit log
    rejected: int = 0
    #: damaged entries, and entries that the platform requests again and that are no longer stored
    lost: int = 0
    at: float | None = None
    fault: str | None = None


class RecordUpload(JournalLoop):
    """Uploads records from `start` to `stop`."""

    name = "records"
    # The pause leaves processor time for requests.
    backlog_interval_seconds = 0.02
    shutdown_timeout_seconds = 5.0

    def __init__(self, platform: PlatformClient, records: OutpostRecords) -> None:
        super().__init__(records)
        self.status = UploadStatus()
        self._platform = platform
        self._batch_size = MAX_UPLOAD_RECORDS

    def retry_seconds(self, failures: int) -> float:
        doublings = min(failures - 1, _MAX_DOUBLINGS)
        seconds = min(_MIN_RETRY_SECONDS * float(2**doublings), _MAX_RETRY_SECONDS)
        return seconds * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load

    async def send_next(self) -> bool:
        """Uploads one batch. Returns whether there may be more records. Raises `PlatformUnavailable`,
        `PlatformRefusal`, `OSError`."""
        batch = await asyncio.to_thread(self.records.take, self._batch_size)
        if batch is None:
            self._batch_size = MAX_UPLOAD_RECORDS
            return False
        if batch.entries and not await self._upload_batch(batch):
            return True
        await asyncio.to_thread(self.records.mark_uploaded, batch)
        full = len(batch.entries) >= self._batch_size
        self._batch_size = min(MAX_UPLOAD_RECORDS, self._batch_size * 2)
        return full or batch.finished or self.stopping.is_set()

    async def _upload_batch(self, batch: RecordBatch) -> bool:
        """Uploads a batch. Returns False if the caller must read again from the stored position."""
        try:
            if batch.place.lost is not None:
                notice = upload_notices.encode(Lost("gone", records=batch.place.lost, timestamp=time.time()))
                self._count(batch, await self._platform.hand_in(batch.journal_id, batch.place.number - 1, [notice]))
                await asyncio.to_thread(self.records.loss_reported, batch)
                return False
            self._count(batch, await self._platform.hand_in(batch.journal_id, batch.place.number, batch.entries))
        except PlatformRefusal as error:
            expected = error.body.get("expected_sequence") if isinstance(error.body, dict) else None
            if error.status == 409 and isinstance(expected, int) and 0 < expected < batch.place.number:
                await self._fill(batch, expected)
                return False
            if error.status not in _BATCH_REFUSED:
                raise
            if len(batch.entries) > 1:
                # One record is invalid, or the batch is too large. Try half of the batch.
                self._batch_size = len(batch.entries) // 2
                return False
            log.warning("outpost.record_refused", journal_id=str(batch.journal_id), number=batch.place.number)
            notice = upload_notices.encode(Lost("refused", 1, len(batch.entries[0]), time.time()))
            self._count(batch, await self._platform.hand_in(batch.journal_id, batch.place.number, [notice]))
        damaged = sum(entry.startswith(b'["lost"') for entry in batch.entries)
        if damaged:
            self.status.lost += damaged
            log.error("outpost.journal_damaged", journal_id=str(batch.journal_id), places=damaged)
        return True

    async def _fill(self, batch: RecordBatch, expected: int) -> None:
        """Uploads from the audit log the records that the platform lacks, because it was restored from a backup. If the
        audit log does not contain all of them, the journal continues as a new journal, which begins with a notice of
        the missing records."""
        first, missing = expected + batch.place.skipped, batch.place.number - expected
        log.warning(
            "outpost.platform_lacks_records", journal_id=str(batch.journal_id), number=expected, records=missing
        )
        parts = self.records.audit.of(batch.writer_id, first, MAX_UPLOAD_RECORDS // 2)
        while missing and (part := await asyncio.to_thread(next, parts, None)):
            part = part[:missing]
            self._count(batch, await self._platform.hand_in(batch.journal_id, expected, part))
            expected, missing = expected + len(part), missing - len(part)
        if missing:
            self.status.lost += missing
            await asyncio.to_thread(self.records.continue_as_new_journal, batch, missing)

    def _count(self, batch: RecordBatch, answer: dict[str, Any]) -> None:
        status = self.status
        if status.fault is not None:
            log.info("outpost.upload_back")
        status.at, status.fault = time.time(), None
        status.handed_in += answer.get("stored", 0)
        rejected = answer.get("rejected", ())
        status.rejected += len(rejected)
        for rejection in rejected[:_MAX_LOGGED_REJECTIONS]:
            log.error(
                "outpost.record_rejected",
                journal_id=str(batch.journal_id), number=rejection["sequence"], reason=rejection["reason"],
            )  # fmt: skip

    def failed(self, error: Exception) -> None:
        reason = str(error)
        if not isinstance(error, PlatformUnavailable | PlatformRefusal | OSError):
            reason = "an unexpected error; see the log"
            log.error("outpost.upload_fault", exc_info=error)
        if self.status.fault is None:
            log.warning("outpost.upload_failed", reason=reason)
        self.status.fault = reason

"""Hands the journal's records in, in their order and once each, whenever the platform is there (decisions 9).

What is sent stays in the journal until the platform has said that it is stored. A kill between its answer and the note
of it sends the same numbers again, which the platform passes over.
"""

import asyncio
import contextlib
import random
import time
from typing import Any, Final

import msgspec
import structlog

from gatehouse.engine import notices
from gatehouse.engine.notices import Lost
from gatehouse.outpost.platform import Platform, PlatformAway, PlatformRefuses
from gatehouse.outpost.records import MOST_RECORDS, Records, Taken

log = structlog.get_logger(__name__)

#: Seconds between two looks at a journal that is handed in.
_PAUSE: Final = 0.5
#: Seconds between two uploads of many: requests come first.
_BREATH: Final = 0.02
#: Seconds between two tries where there is no answer, growing.
_FIRST_RETRY, _LAST_RETRY = 0.5, 15.0
#: Seconds for what is left, when the outpost ends.
_LAST_WORDS: Final = 5.0
#: Statuses that say: not these records, or not so many.
_TOO_MUCH: Final = frozenset({400, 413, 422})
#: Rejected records that one upload names in the log.
_NAMED: Final = 20


class UploadStatus(msgspec.Struct):
    """Since the start. Times are Unix times."""

    handed_in: int = 0
    #: taken by the platform for no records of its own; they are in the audit log
    rejected: int = 0
    #: entries that damage has cost, or that are gone while the platform asks for them
    lost: int = 0
    at: float | None = None
    fault: str | None = None


class Upload:
    """From `start` to `stop`. Of all processes of a home one uploads."""

    def __init__(self, platform: Platform, records: Records) -> None:
        self.status = UploadStatus()
        self._platform = platform
        self._records = records
        self._most = MOST_RECORDS
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="records")

    async def stop(self) -> None:
        """What is left is handed in, if the platform takes it at once; else the next start does it."""
        self._stopping.set()
        if self._task is not None:
            _, late = await asyncio.wait([self._task], timeout=_LAST_WORDS)
            for task in late:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def _run(self) -> None:
        retry = _FIRST_RETRY
        while not await asyncio.to_thread(self._records.claim):
            if await self._stopped(_PAUSE):
                return
        while True:
            stopping = self._stopping.is_set()
            try:
                more, retry = await self._once(), _FIRST_RETRY
            except (PlatformAway, PlatformRefuses, OSError) as error:
                self._failed(str(error))
                more = None
            except Exception:
                # What nobody has thought of must not keep the records here for ever.
                self._failed("an unexpected fault; the log has it")
                log.exception("outpost.upload_fault")
                more = None
            if stopping and not more:
                return
            if more is None:
                await self._stopped(retry * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load
                retry = min(retry * 2, _LAST_RETRY)
            else:
                await self._stopped(_BREATH if more else _PAUSE)

    async def _stopped(self, seconds: float) -> bool:
        """Waits, and says whether it was told to stop."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
        return self._stopping.is_set()

    async def _once(self) -> bool:
        """Whether there may be more. Raises `PlatformAway`, `PlatformRefuses`, `OSError`."""
        taken = await asyncio.to_thread(self._records.take, self._most)
        if taken is None:
            self._most = MOST_RECORDS
            return False
        if taken.entries and not await self._handed_in(taken):
            return True
        await asyncio.to_thread(self._records.settle, taken)
        full = len(taken.entries) >= self._most
        self._most = min(MOST_RECORDS, self._most * 2)
        return full or taken.finished or self._stopping.is_set()

    async def _handed_in(self, taken: Taken) -> bool:
        """False: to be tried again, from what is noted by then."""
        try:
            if taken.place.lost is not None:
                gone = notices.encode(Lost("gone", records=taken.place.lost, timestamp=time.time()))
                self._count(taken, await self._platform.hand_in(taken.journal_id, taken.place.number - 1, [gone]))
                await asyncio.to_thread(self._records.told, taken)
                return False
            self._count(taken, await self._platform.hand_in(taken.journal_id, taken.place.number, taken.entries))
        except PlatformRefuses as refused:
            expected = refused.body.get("expected_sequence") if isinstance(refused.body, dict) else None
            if refused.status == 409 and isinstance(expected, int) and 0 < expected < taken.place.number:
                await self._fill(taken, expected)
                return False
            if refused.status not in _TOO_MUCH:
                raise
            if len(taken.entries) > 1:
                # One record is bad, or all are too long together.
                self._most = len(taken.entries) // 2
                return False
            log.warning("outpost.record_refused", journal_id=str(taken.journal_id), number=taken.place.number)
            instead = notices.encode(Lost("refused", 1, len(taken.entries[0]), time.time()))
            self._count(taken, await self._platform.hand_in(taken.journal_id, taken.place.number, [instead]))
        damaged = sum(entry.startswith(b'["lost"') for entry in taken.entries)
        if damaged:
            self.status.lost += damaged
            log.error("outpost.journal_damaged", journal_id=str(taken.journal_id), places=damaged)
        return True

    async def _fill(self, taken: Taken, expected: int) -> None:
        """The platform has gone back, as one does that was restored from a backup: it gets from the audit log what it
        lacks; where that is gone, the rest comes under another id, and says so first."""
        first, missing = expected + taken.place.skipped, taken.place.number - expected
        log.warning(
            "outpost.platform_lacks_records", journal_id=str(taken.journal_id), number=expected, records=missing
        )
        parts = self._records.audit.of(taken.writer_id, first, MOST_RECORDS // 2)
        while missing and (part := await asyncio.to_thread(next, parts, None)):
            part = part[:missing]
            self._count(taken, await self._platform.hand_in(taken.journal_id, expected, part))
            expected, missing = expected + len(part), missing - len(part)
        if missing:
            self.status.lost += missing
            await asyncio.to_thread(self._records.begin_anew, taken, missing)

    def _count(self, taken: Taken, answer: dict[str, Any]) -> None:
        status = self.status
        if status.fault is not None:
            log.info("outpost.upload_back")
        status.at, status.fault = time.time(), None
        status.handed_in += answer.get("stored", 0)
        rejected = answer.get("rejected", ())
        status.rejected += len(rejected)
        for each in rejected[:_NAMED]:
            log.error(
                "outpost.record_rejected",
                journal_id=str(taken.journal_id), number=each["sequence"], reason=each["reason"],
            )  # fmt: skip

    def _failed(self, why: str) -> None:
        if self.status.fault is None:
            log.warning("outpost.upload_failed", reason=why)
        self.status.fault = why

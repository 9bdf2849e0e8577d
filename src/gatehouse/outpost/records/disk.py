"""Drops audit data while the disk is nearly full, so that requests can still be served (`DISK_MONITOR_*`;
docs/outpost-records.md).

The steps are taken in this order. First, files of the audit log are removed, the oldest first. Then new lines of the
audit log are dropped. Then new entries of the journal are written without detail. If the journal becomes full
nevertheless, `JournalWriter.full` reports it and new requests are refused. The records of requests that have been
admitted are always written.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec
import structlog

from gatehouse.engine.ports import Journal
from gatehouse.engine.records.outcome import Opened, Outcome, Scanned, ToolCalled
from gatehouse.outpost.records.positions import OutpostRecords

log = structlog.get_logger(__name__)

Shed: TypeAlias = Literal["nothing", "audit_files", "audit_lines", "journal_detail"]
STEPS: Final[tuple[Shed, ...]] = ("nothing", "audit_files", "audit_lines", "journal_detail")

#: A step ends when the disk is this many percent below the threshold, so that a single file does not begin and end it
#: repeatedly.
_HYSTERESIS_PERCENT: Final = 1.0
_DETAIL_FIELDS: Final = frozenset({"dlp_events", "rule_events", "attempts"})


class DiskUsage(msgspec.Struct):
    """The use of the disk. `percent` is None if it cannot be measured. `shed` is the current step, which includes all
    earlier steps."""

    percent: float | None = None
    shed: Shed = "nothing"
    #: numbers of removed files and of entries without detail since the start
    files_removed: int = 0
    entries_thinned: int = 0


def used_percent(folder: Path) -> float:
    """Returns how many percent of the space that this user may use are used. Raises `OSError`."""
    disk = os.statvfs(folder)
    used = disk.f_blocks - disk.f_bfree
    return 100.0 * used / ((used + disk.f_bavail) or 1)


class DiskMonitor:
    """Measures the disk periodically from `start` to `stop`, and takes the steps."""

    def __init__(
        self,
        folder: Path,
        records: OutpostRecords,
        *,
        threshold: float,
        interval: float,
        used: Callable[[Path], float] = used_percent,
    ) -> None:
        self.status = DiskUsage()
        self._folder = folder
        self._records = records
        self._threshold = threshold
        self._interval = interval
        self._used = used
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._watch(), name="disk")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _watch(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self.look)
            except OSError as error:
                self.status.percent = None
                log.warning("outpost.disk_unknown", reason=str(error))
            await asyncio.sleep(self._interval)

    def look(self) -> None:
        """Measures the disk and takes the step for its use. Blocks on files. Raises `OSError`."""
        percent, removed = self._used(self._folder), 0
        while percent >= self._threshold and self._remove_oldest():
            removed += 1
            percent = self._used(self._folder)
        self.status.files_removed += removed
        self.status.percent = percent
        self._shed(self._step(percent, removed))

    def _step(self, percent: float, removed: int) -> Shed:
        if percent >= (self._threshold + 100.0) / 2:
            return "journal_detail"
        if percent >= self._threshold:
            return "audit_lines"
        if percent >= self._threshold - _HYSTERESIS_PERCENT and self.status.shed != "nothing":
            return self.status.shed
        return "audit_files" if removed else "nothing"

    def _shed(self, step: Shed) -> None:
        previous, self.status.shed = self.status.shed, step
        self._records.audit.keeping = STEPS.index(step) < STEPS.index("audit_lines")
        if step != previous:
            log.warning("outpost.disk_shed", shed=step, before=previous, percent=round(self.status.percent or 0.0, 1))

    def _remove_oldest(self) -> bool:
        with self._records.lock:
            return self._records.audit.remove_oldest()


class ThinningJournal:
    """Implements the engine's `Journal`. Removes detail from new entries while the disk is nearly full."""

    def __init__(self, journal: Journal, disk: DiskUsage) -> None:
        self._journal = journal
        self._disk = disk

    def full(self) -> bool:
        return self._journal.full()

    def append(self, record: bytes) -> asyncio.Future[None]:
        if self._disk.shed == "journal_detail":
            record = self._thin(record)
        return self._journal.append(record)

    def _thin(self, record: bytes) -> bytes:
        entry: list[Any] = msgspec.json.decode(record)
        changed = False
        for index in _DETAIL_INDEXES.get(entry[0], ()):
            if index < len(entry) and entry[index]:
                entry[index], changed = [], True
        if not changed:
            return record
        self._disk.entries_thinned += 1
        return msgspec.json.encode(entry)


def _detail_indexes(fields: tuple[str, ...]) -> tuple[int, ...]:
    # Index 0 is the entry's kind.
    return tuple(index for index, name in enumerate(fields, 1) if name in _DETAIL_FIELDS)


_DETAIL_INDEXES: Final = {
    "outcome": _detail_indexes(Outcome.__struct_fields__),
    "opened": _detail_indexes(Opened.__struct_fields__),
    "scanned": _detail_indexes(Scanned.__struct_fields__),
    "tool_called": _detail_indexes(ToolCalled.__struct_fields__),
}

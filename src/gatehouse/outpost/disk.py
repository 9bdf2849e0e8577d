"""A disk that fills costs detail first, and requests last (`DISK_MONITOR_*`).

In this order: files of the audit log go, the oldest first; then no new lines of it are kept; then the journal's entries
lose their detail. That the journal itself is full comes only after that, and is `JournalWriter.full`'s to say: the
record of a request that was let in is never refused.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec
import structlog

from gatehouse.engine.outcome import Opened, Outcome, Scanned
from gatehouse.engine.ports import Journal
from gatehouse.outpost.records import Records

log = structlog.get_logger(__name__)

Shed: TypeAlias = Literal["nothing", "audit_files", "audit_lines", "journal_detail"]
STEPS: Final[tuple[Shed, ...]] = ("nothing", "audit_files", "audit_lines", "journal_detail")

#: Percent below the threshold at which all is kept again: not at each file that comes or goes.
_BACK: Final = 1.0
_DETAIL: Final = frozenset({"dlp_events", "rule_events", "attempts"})


class DiskStatus(msgspec.Struct):
    """`percent` None: it cannot be asked. `shed` names the last step that was taken, all before it with it."""

    percent: float | None = None
    shed: Shed = "nothing"
    #: since the start
    files_removed: int = 0
    entries_thinned: int = 0


def used_percent(folder: Path) -> float:
    """Of what this user may use. Raises `OSError`."""
    disk = os.statvfs(folder)
    used = disk.f_blocks - disk.f_bfree
    return 100.0 * used / ((used + disk.f_bavail) or 1)


class DiskMonitor:
    """From `start` to `stop`."""

    def __init__(
        self,
        folder: Path,
        records: Records,
        *,
        threshold: float,
        interval: float,
        used: Callable[[Path], float] = used_percent,
    ) -> None:
        self.status = DiskStatus()
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
        """Reads and removes files. Raises `OSError`."""
        percent, removed = self._used(self._folder), 0
        while percent >= self._threshold and self._removed():
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
        if percent >= self._threshold - _BACK and self.status.shed != "nothing":
            return self.status.shed
        return "audit_files" if removed else "nothing"

    def _shed(self, step: Shed) -> None:
        before, self.status.shed = self.status.shed, step
        self._records.audit.keeping = STEPS.index(step) < STEPS.index("audit_lines")
        if step != before:
            log.warning("outpost.disk_shed", shed=step, before=before, percent=round(self.status.percent or 0.0, 1))

    def _removed(self) -> bool:
        with self._records.lock:
            return self._records.audit.remove_oldest()


class Thinned:
    """The engine's `Journal`, whose entries lose their detail while the disk is nearly full."""

    def __init__(self, journal: Journal, disk: DiskStatus) -> None:
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
        lost = False
        for place in _PLACES.get(entry[0], ()):
            if place < len(entry) and entry[place]:
                entry[place], lost = [], True
        if not lost:
            return record
        self._disk.entries_thinned += 1
        return msgspec.json.encode(entry)


def _places(fields: tuple[str, ...]) -> tuple[int, ...]:
    # The kind comes first.
    return tuple(place for place, name in enumerate(fields, 1) if name in _DETAIL)


_PLACES: Final = {
    "outcome": _places(Outcome.__struct_fields__),
    "opened": _places(Opened.__struct_fields__),
    "scanned": _places(Scanned.__struct_fields__),
}

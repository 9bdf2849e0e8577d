"""Returns memory to the operating system after a peak.

CPython and glibc keep much of the memory of a large request: cyclic garbage until the next full collection, and free
blocks between used blocks. Without this module a worker would keep several times its usual size after a large body.
"""

import asyncio
import contextlib
import ctypes
import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from gatehouse.foundation.tasks import is_running

log = structlog.get_logger(__name__)

#: time between two checks of the size of the process
LOOK_INTERVAL_SECONDS: Final = 10.0
#: a change of the resident size by this number of bytes between two checks is the beginning or end of a peak
PEAK_BYTES: Final = 16 * 1024**2
#: number of checks after a peak at which memory is returned; later checks would find nothing to return
LOOKS_AFTER_PEAK: Final = 6

_STATM: Final = Path("/proc/self/statm")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int | None:
    """Returns the resident size of this process in bytes, or None if the system has no /proc."""
    try:
        return int(_STATM.read_text().split()[1]) * _PAGE_BYTES
    except OSError:
        return None


def trim_heap() -> None:
    """Returns free blocks of the C heap to the system. Does nothing where the C library is not glibc."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


class MemoryTrimmer:
    """Checks the size of the process periodically. For a minute after a peak it collects garbage and trims the heap."""

    def __init__(
        self,
        resident: Callable[[], int | None] = resident_bytes,
        collect: Callable[[], object] = gc.collect,
        trim: Callable[[], None] = trim_heap,
    ) -> None:
        self._resident, self._collect, self._trim = resident, collect, trim
        self._last_size = resident() or 0
        self._looks_left = 0

    async def run(self) -> None:
        """Runs until it is cancelled. Returns immediately if the system does not report the size of the process."""
        if self._resident() is None:
            return
        while is_running():
            await asyncio.sleep(LOOK_INTERVAL_SECONDS)
            try:
                await self.look()
            except Exception:
                log.exception("memory.trim_failed")

    async def look(self) -> None:
        """Compares the size with that of the last check and returns memory after a recent peak."""
        size = self._resident() or 0
        if abs(size - self._last_size) >= PEAK_BYTES:
            self._looks_left = LOOKS_AFTER_PEAK
        if self._looks_left:
            self._looks_left -= 1
            # A full collection visits every object. While the size grows, most of them are in use.
            if size <= self._last_size:
                self._collect()
            # Trim in a thread, because it can take milliseconds. The call releases the interpreter's lock.
            await asyncio.to_thread(self._trim)
            size = self._resident() or 0
        self._last_size = size

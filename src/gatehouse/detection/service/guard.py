"""Ends the detection process if a model hangs or memory is exhausted. The supervisor restarts the process."""

import contextlib
import faulthandler
import os
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import structlog

from gatehouse.detection.models import TierName

log = structlog.get_logger(__name__)

#: Exit status of a process that ran out of memory.
OUT_OF_MEMORY: Final = 71
#: Share of the memory limit above which a failure is treated as a lack of memory.
_EXHAUSTED_SHARE: Final = 0.9


class ProcessGuard:
    """A context manager for each use of a model. It ends the process if the use takes too long or fails for lack of
    memory.

    It uses the timer of `faulthandler`, which also works if a library never releases the interpreter lock. When the
    timer ends the process, it prints the stack of each thread.
    """

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._lock = threading.Lock()
        #: for each model in use, the monotonic time at which the use times out
        self._deadlines: dict[TierName, float] = {}

    def limit_memory(self) -> None:
        """Set the memory limit of the process. Call this method once, before a model is loaded."""
        # The limit applies to writable memory, because large libraries reserve address space that they do not use.
        _, hard_limit = resource.getrlimit(resource.RLIMIT_DATA)
        if hard_limit != resource.RLIM_INFINITY:
            self._memory_bytes = min(self._memory_bytes, hard_limit)
        resource.setrlimit(resource.RLIMIT_DATA, (self._memory_bytes, self._memory_bytes))
        # If the machine runs out of memory, the kernel should kill this process and not the database.
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("800")

    @contextmanager
    def __call__(self, tier: TierName, seconds: float) -> Iterator[None]:
        self._arm(tier, time.monotonic() + seconds)
        try:
            yield
        except BaseException as error:
            if self._out_of_memory(error):
                with contextlib.suppress(MemoryError):
                    log.error("detection.out_of_memory", tier=tier)  # noqa: TRY400 - a traceback needs memory
                os._exit(OUT_OF_MEMORY)
            raise
        finally:
            self._disarm(tier)

    def _arm(self, tier: TierName, deadline: float) -> None:
        with self._lock:
            self._deadlines[tier] = deadline
            self._set_timer()

    def _disarm(self, tier: TierName) -> None:
        with self._lock:
            del self._deadlines[tier]
            self._set_timer()

    def _set_timer(self) -> None:
        if self._deadlines:
            faulthandler.dump_traceback_later(max(min(self._deadlines.values()) - time.monotonic(), 0.001), exit=True)
        else:
            faulthandler.cancel_dump_traceback_later()

    def _out_of_memory(self, error: BaseException) -> bool:
        """Return whether an error was caused by a lack of memory. Libraries raise their own exceptions in this case, so
        the amount of used memory is checked too."""
        try:
            return isinstance(error, MemoryError) or _data_bytes() > _EXHAUSTED_SHARE * self._memory_bytes
        except MemoryError:
            return True


def _data_bytes() -> int:
    status = Path("/proc/self/status")
    for line in status.read_text().splitlines() if status.exists() else ():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return 0

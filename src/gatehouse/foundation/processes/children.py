"""Parent and child processes: forking, signals, and shared state."""

import contextlib
import ctypes
import gc
import mmap
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final

import structlog
from setproctitle import setproctitle

log = structlog.get_logger(__name__)

_PR_SET_PDEATHSIG: Final = 1
#: interval of checks whether the parent has ended, on systems without a signal for it
_PARENT_CHECK_INTERVAL_SECONDS: Final = 0.5
_FORK_CONTEXT: Final = multiprocessing.get_context("fork")
#: Signals that end a process. They are blocked during a fork, because the child then still has the parent's handlers.
_TERMINATING_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
#: parameters of glibc's mallopt
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
#: allocations of at least this size have a memory mapping of their own
_MMAP_THRESHOLD_BYTES: Final = 4 * 1024**2
#: free memory at the end of the heap is returned to the system if it exceeds this size
_TRIM_THRESHOLD_BYTES: Final = 8 * 1024**2


def die_with_parent(number: int = signal.SIGTERM) -> None:
    """Arranges that this process receives a signal when its parent ends, so that no child keeps the port of a killed
    supervisor."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number)
    else:
        # Systems other than Linux are only used for development, so polling is sufficient.
        threading.Thread(target=_follow_parent, args=(os.getppid(), number), daemon=True).start()


def _follow_parent(parent: int, number: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PARENT_CHECK_INTERVAL_SECONDS)
    os.kill(os.getpid(), number)


def return_large_blocks() -> None:
    """Makes the C library of this process and its children return large blocks to the system when they are freed. By
    default glibc raises its threshold after the first large block has been freed, and then keeps later blocks. The
    hashing of a password takes a block of 19 MiB."""
    # Only glibc has mallopt.
    with contextlib.suppress(AttributeError, OSError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES)
        library.mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD_BYTES)


class Interrupted(BaseException):
    """SIGTERM or SIGINT arrived during an `Interruptible` block."""


class Interruptible:
    """Handles SIGTERM and SIGINT from its creation on. Both signals set `ending`. In a `with` block the first signal
    also raises `Interrupted`, so that long work ends immediately. Use it only in the main thread."""

    def __init__(self) -> None:
        self.ending = False
        self._raises = False
        for number in _TERMINATING_SIGNALS:
            signal.signal(number, self._end)

    def _end(self, number: int, frame: object) -> None:
        self.ending = True
        if self._raises:
            # Raise only once, so that a second signal does not interrupt the cleanup.
            self._raises = False
            raise Interrupted

    def __enter__(self) -> None:
        if self.ending:
            raise Interrupted
        self._raises = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._raises = False
        # Ctrl-C also reaches the programs that the block runs, so an error of such a program is a consequence of it.
        if self.ending and isinstance(error, Exception):
            raise Interrupted from None


class SharedFlag:
    """A flag in memory that a process shares with its forked children. A flag that has been set stays set."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 1)

    def __bool__(self) -> bool:
        return self._memory[0] != 0

    def up(self) -> None:
        self._memory[0] = 1


class Forked:
    """A forked child, with the interface of `subprocess.Popen`. The child shares imported modules and unmodified memory
    with its parent, and ends when its parent ends. Use it only in a process with one thread."""

    def __init__(self, title: str, run: Callable[[], None]) -> None:
        """Forks the child, which calls `run`. `title` is its name in lists of processes."""
        # A garbage collection in the child would write to all shared objects and so copy their memory.
        gc.collect()
        gc.freeze()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _TERMINATING_SIGNALS)
        try:
            self._process = _FORK_CONTEXT.Process(target=_run_child, args=(title, run, os.getpid(), mask), name=title)
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end of the process and returns its exit code. Raises `subprocess.TimeoutExpired`."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        if number == signal.SIGTERM:
            self._process.terminate()
        else:
            raise ValueError(number)

    def kill(self) -> None:
        self._process.kill()


def _run_child(title: str, run: Callable[[], None], parent: int, mask: set[int]) -> None:
    """Runs in the child, from fork to exit."""
    # Replace the parent's handlers, which would only set its flag.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    die_with_parent()
    if os.getppid() != parent:
        # The parent died before `die_with_parent` took effect.
        raise SystemExit(1)
    setproctitle(title)
    try:
        run()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except Exception:
        log.exception("process.failed", process=title)
        raise SystemExit(1) from None

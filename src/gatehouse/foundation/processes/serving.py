"""Reserves the home folder and the port before a `serve` command starts anything."""

import errno
import fcntl
import os
import socket
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from gatehouse.foundation.settings import BadSettings

_LOCK_FILE: Final = "serve.lock"
_BACKLOG: Final = 2048


class CannotStart(Exception):
    """The process cannot start. The message is one line, which states the fault and its correction."""


def make_home(home: Path, mode: int = 0o777) -> Path:
    """Creates the folder with `mode` if it does not exist, and returns it. Raises `BadSettings` if this process cannot
    write to it."""
    try:
        home.mkdir(mode=mode, parents=True, exist_ok=True)
        if not os.access(home, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise BadSettings(f"GATEHOUSE_HOME: {home} cannot be written to ({error.strerror})") from None
    return home


class HomeLock:
    """A lock for the exclusive use of a home folder. The kernel releases it when the process ends, also after
    SIGKILL."""

    def __init__(self, home: Path, *, mode: int = 0o777) -> None:
        """Locks the folder. Creates it with `mode` if it does not exist. Raises `CannotStart` if another process uses
        the folder (the message identifies the process), and `BadSettings`."""
        file = make_home(home, mode) / _LOCK_FILE
        try:
            self._file = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            # The file may belong to another user, for example to root if root has started the service once.
            raise BadSettings(f"GATEHOUSE_HOME: {file} cannot be written to ({error.strerror})") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._file, 1024, 0).decode(errors="replace").split("\n")
            os.close(self._file)
            address = f" at {owner[1]}" if len(owner) > 1 and owner[1] else ""
            raise CannotStart(
                f"{home.absolute()} is in use by process {owner[0] or 'unknown'}{address};"
                " stop that process, or set another GATEHOUSE_HOME"
            ) from None
        self.describe("")

    def describe(self, address: str) -> None:
        """Writes the id and the address of this process into the lock file. The error message of a second process
        contains them."""
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n{address}\n".encode(), 0)

    def release(self) -> None:
        """Releases the lock. A forked child also calls this method. Otherwise it would keep the lock after its parent
        has been killed."""
        if self._file >= 0:
            os.close(self._file)
            # Forget the descriptor, because the system may reuse its number for another file.
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def listen(host: str, port: int, option: str = "--port") -> socket.socket:
    """Returns a listening socket. Clients that connect before the server accepts connections wait. Raises
    `CannotStart`, whose message identifies `option`."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        # Listen immediately, because a second process can bind the same port until one of the sockets listens.
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise CannotStart(f"cannot listen on {host}:{port}: {error.strerror}; choose {option}") from None
    return listener


def url_of(listener: socket.socket, *, secure: bool) -> str:
    host, port = listener.getsockname()[:2]
    return f"{'https' if secure else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"

"""`python -I -S launcher.py DESCRIPTOR`: runs one command with limits, and kills all of its descendants at the end.

The descriptor is a socket to the owner. The owner sends one line, a JSON object with the fields of `Launch`, and later
the byte `T` to end the command gracefully. If the socket closes, as it does when the owner dies, everything is killed
at once. At the end, the launcher sends the reason: `exit N`, `signal N`, `memory` or `processes`.

The launcher adopts descendants whose parent has ended, so none escapes by forking twice or by starting a session. The
launcher imports no other module of the package, and runs without site-packages, so that it starts fast and stays small.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any, Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38
#: The kernel ends a process with this value first if memory runs out, and not the database.
_OOM_SCORE: Final = b"1000"
#: interval of the measurements of processes and memory
_MEASURE_INTERVAL_SECONDS: Final = 0.25
#: time that a command has after SIGTERM
_GRACE_SECONDS: Final = 2.0
_GRACEFUL: Final = b"T"
_MAX_DESCRIPTORS: Final = 65_536
_MIB: Final = 1024**2
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_MAX_LINE_BYTES: Final = _MIB
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    control = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(control.fileno(), False)
    launch = json.loads(_line(control))
    if _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    # Raises an exception if the system does not list children, because then no limit could be kept.
    _children(os.getpid())
    launcher = os.getpid()
    child = os.fork()
    if child == 0:
        try:
            _become(launch, launcher)
        except BaseException as error:
            os.write(2, f"cannot start: {type(error).__name__}: {getattr(error, 'strerror', '')}\n".encode())
        finally:
            os._exit(127)
    # Only the command has the pipes, so that the owner notices their end.
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    reason = _watch(child, control, launch)
    with contextlib.suppress(OSError):
        control.sendall(reason.encode())
    return 0


def _line(control: socket.socket) -> bytes:
    data = b""
    while b"\n" not in data:
        part = control.recv(65536)
        if not part or len(data) > _MAX_LINE_BYTES:
            # The owner has died.
            raise SystemExit(1)
        data += part
    line, _, rest = data.partition(b"\n")
    if rest:
        # The owner has already ended this server.
        raise SystemExit(1)
    return line


def _become(launch: dict[str, Any], launcher: int) -> None:
    """Turn this process into the command."""
    os.setsid()
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != launcher:
        # The launcher died before its death could send a signal.
        os._exit(127)
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for limit, bound in (
        (resource.RLIMIT_DATA, launch["memory_mib"] * _MIB),
        (resource.RLIMIT_CPU, launch["cpu_seconds"]),
        (resource.RLIMIT_NOFILE, launch["open_files"]),
        (resource.RLIMIT_FSIZE, launch["file_mib"] * _MIB),
        (resource.RLIMIT_CORE, 0),
    ):
        _, inherited = resource.getrlimit(limit)
        value = bound if inherited == resource.RLIM_INFINITY else min(bound, inherited)
        resource.setrlimit(limit, (value, value))
    # A program with the set-user-ID bit would have another user, and could not be killed.
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    with contextlib.suppress(OSError):
        os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY), _OOM_SCORE)
    os.nice(launch["nice"])
    os.umask(0o077)
    os.chdir(launch["folder"])
    os.closerange(3, _MAX_DESCRIPTORS)
    os.execve(launch["command"][0], launch["command"], launch["environment"])  # noqa: S606 - a command of the operator


def _watch(child: int, control: socket.socket, launch: dict[str, Any]) -> str:
    """Wait until the command or the owner ends, or a limit is exceeded. Return the reason when all descendants are
    dead."""
    poll = select.poll()
    ended = os.pidfd_open(child)
    poll.register(ended, select.POLLIN)
    poll.register(control, select.POLLIN)
    kill_at: float | None = None
    reason = ""
    while not reason:
        ready = {descriptor for descriptor, _ in poll.poll(_MEASURE_INTERVAL_SECONDS * 1000)}
        if ended in ready:
            break
        if control.fileno() in ready:
            # An owner that has died does not send the byte.
            if kill_at is not None or not _is_graceful(control):
                break
            kill_at = time.monotonic() + _GRACE_SECONDS
            _signal(child, signal.SIGTERM)
        if kill_at is not None and time.monotonic() >= kill_at:
            break
        reason = _exceeded(launch)
        _reap(child)
    status = _kill_all(child)
    if reason:
        return reason
    code = os.waitstatus_to_exitcode(status)
    return f"exit {code}" if code >= 0 else f"signal {-code}"


def _is_graceful(control: socket.socket) -> bool:
    try:
        return control.recv(1) == _GRACEFUL
    except OSError:
        return False


def _exceeded(launch: dict[str, Any]) -> str:
    """Return the limit that the descendants together exceed, or an empty text."""
    processes = _descendants()
    if len(processes) > launch["processes"]:
        return "processes"
    size = 0
    for pid in processes:
        with contextlib.suppress(OSError, IndexError):
            size += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    return "memory" if size > launch["memory_mib"] * _MIB else ""


def _descendants() -> list[int]:
    pids, pending = [], _children(os.getpid())
    while pending:
        pid = pending.pop()
        pids.append(pid)
        with contextlib.suppress(OSError):
            pending += _children(pid)
    return pids


def _children(pid: int) -> list[int]:
    tasks = list(Path(f"/proc/{pid}/task").iterdir())
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def _signal(pid: int, number: int) -> None:
    """Send a signal to a process and to its group, if it leads one."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _reap(command: int) -> None:
    """Reap adopted processes that have ended. The command itself is reaped at the end."""
    for pid in _children(os.getpid()):
        if pid != command:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _kill_all(command: int) -> int:
    """Kill all descendants, and wait for their end. Return the status of the command."""
    # The group comes first, because one signal reaches all of its processes, including those that fork at this moment.
    _signal(command, signal.SIGKILL)
    status = 0
    while True:
        for pid in _descendants():
            _signal(pid, signal.SIGKILL)
        try:
            pid, ended = os.waitpid(-1, 0)
        except ChildProcessError:
            return status
        if pid == command:
            status = ended


if __name__ == "__main__":
    sys.exit(main())

"""`python -I -S launcher.py DESCRIPTOR`: runs one command with limits, and kills all of its descendants at the end.

The descriptor is a socket to the owner. The owner sends one line, a JSON object with the fields of `Launch`, and later
the byte `T` to end the command gracefully. If the socket closes, as it does when the owner dies, everything is killed
at once. At the end, the launcher sends the reason: `exit N`, `signal N`, `memory`, `processes` or `folder`.

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
_RLIMIT_MSGQUEUE: Final = 12
#: interval of the measurements of files
_FILES_INTERVAL_SECONDS: Final = 1.0
#: Maximum number of files in the folder, and of open files that are measured. More files cannot be measured in time.
_MAX_FILES: Final = 20_000
_MAX_PIDS: Final = 100_000
_BLOCK_BYTES: Final = 512
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - is read only
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
        # No message queues, whose memory could not be measured.
        (_RLIMIT_MSGQUEUE, 0),
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
    files = _Files(launch["own_folder"], launch["folder_mib"] * _MIB)
    try:
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
            reason = _exceeded(launch, files)
            _reap(child)
    finally:
        status = _kill_all(child)
        files.remove_shared()
    if reason:
        return reason
    code = os.waitstatus_to_exitcode(status)
    return f"exit {code}" if code >= 0 else f"signal {-code}"


def _is_graceful(control: socket.socket) -> bool:
    try:
        return control.recv(1) == _GRACEFUL
    except OSError:
        return False


class _Files:
    """Measures what the descendants store: files in the folder, open files that were deleted, and shared memory."""

    def __init__(self, folder: str, limit: int) -> None:
        self._folder, self._limit = folder, limit
        self._next_at = 0.0
        #: Shared memory that a descendant has created and that still exists: paths of files, and ids of segments. It is
        #: removed at the end.
        self._shared: dict[str, tuple[int, int]] = {}
        self._segments: set[int] = set()
        self._pids: set[int] = set()
        #: files that are older than the command; they belong to somebody else
        self._earlier = _shared_files()

    def measure(self, processes: list[int]) -> tuple[bool, int]:
        """Return whether the folder is too large, and the bytes of shared memory that no process has mapped."""
        if len(self._pids) < _MAX_PIDS:
            self._pids.update(processes)
        open_files = self._open(processes)
        memory = sum(size for is_memory, size in open_files.values() if is_memory) + self._left_memory(open_files)
        memory += self._system_v(processes)
        is_too_large = False
        if time.monotonic() >= self._next_at:
            deleted = sum(size for is_memory, size in open_files.values() if not is_memory)
            is_too_large = self._in_folder() + deleted > self._limit
            self._next_at = time.monotonic() + _FILES_INTERVAL_SECONDS
        return is_too_large, memory

    def remove_shared(self) -> None:
        for path, place in self._shared.items():
            with contextlib.suppress(OSError):
                status = Path(path).lstat()
                if (status.st_dev, status.st_ino) == place:
                    Path(path).unlink()
        for segment in self._segments:
            _LIBC.shmctl(segment, 0, None)

    def _open(self, processes: list[int]) -> dict[tuple[int, int], tuple[bool, int]]:
        """Return the open files that are in memory or deleted, with their sizes. They count once, however many
        processes have them open."""
        sizes: dict[tuple[int, int], tuple[bool, int]] = {}
        for pid in processes:
            with contextlib.suppress(OSError):
                for entry in Path(f"/proc/{pid}/fd").iterdir():
                    with contextlib.suppress(OSError):
                        target = str(entry.readlink())
                        is_memory = target.startswith((f"{_SHARED_MEMORY}/", "/memfd:"))
                        if not is_memory and not target.endswith(" (deleted)"):
                            continue
                        status = entry.stat()
                        place = (status.st_dev, status.st_ino)
                        sizes[place] = (is_memory, status.st_blocks * _BLOCK_BYTES)
                        if target.startswith(_SHARED_MEMORY) and place not in self._earlier:
                            self._shared[target] = place
                            if len(self._shared) > _MAX_FILES:
                                self._shared.pop(next(iter(self._shared)))
        return sizes

    def _left_memory(self, open_files: dict[tuple[int, int], tuple[bool, int]]) -> int:
        """Return the bytes of files in shared memory that a descendant had open and has closed."""
        size = 0
        for path, place in list(self._shared.items()):
            try:
                status = Path(path).lstat()
            except OSError:
                del self._shared[path]
                continue
            if (status.st_dev, status.st_ino) == place and place not in open_files:
                size += status.st_blocks * _BLOCK_BYTES
        return size

    def _system_v(self, processes: list[int]) -> int:
        """Return the bytes of System V segments that a descendant has created."""
        size = 0
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]:
                fields = line.split()
                segment, creator = int(fields[1]), int(fields[4])
                # The number of a process that has ended may be that of another process now.
                is_own = creator in processes or (creator in self._pids and not Path(f"/proc/{creator}").exists())
                if is_own:
                    self._segments.add(segment)
                    size += int(fields[3])
        return size

    def _in_folder(self) -> int:
        """Return the bytes of all files in the folder; more than the limit if they cannot be measured."""
        size, count, pending = 0, 0, [self._folder]
        while pending:
            try:
                entries = list(os.scandir(pending.pop()))
            except FileNotFoundError:
                continue
            except OSError:
                # A path that is too long, or a folder without permissions, could hide any number of files.
                return self._limit + 1
            count += len(entries)
            if count > _MAX_FILES:
                return self._limit + 1
            for entry in entries:
                try:
                    size += entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                except FileNotFoundError:
                    continue
                except OSError:
                    return self._limit + 1
        return size


def _shared_files() -> set[tuple[int, int]]:
    """Return the devices and inodes of all files in shared memory."""
    places: set[tuple[int, int]] = set()
    # `os.walk` recurses, and any command can leave a very deep folder. Paths that are too long are left out: the system
    # does not return them for open files either.
    pending = [_SHARED_MEMORY]
    while pending:
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                    continue
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    places.add((status.st_dev, status.st_ino))
    return places


def _exceeded(launch: dict[str, Any], files: _Files) -> str:
    """Return the limit that the descendants together exceed, or an empty text."""
    processes = _descendants()
    if len(processes) > launch["processes"]:
        return "processes"
    is_too_large, size = files.measure(processes)
    if is_too_large:
        return "folder"
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

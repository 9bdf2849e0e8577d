"""The journal's files, and the lock that distinguishes living writers from dead ones."""

import fcntl
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from uuid import UUID

LOCK = "lock"
KEEPER_LOCK = ".keeper"
#: Prefix of a directory that is not locked yet. A directory gets its final name only after it has been locked. So an
#: unlocked directory with a final name belongs to a dead writer.
NEW_DIRECTORY_PREFIX = ".new-"
_SUFFIX = ".log"
_WRITER_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def sync_data(file: int) -> None:
    """Flushes written data to the disk. Uses fsync where the system has no fdatasync."""
    getattr(os, "fdatasync", os.fsync)(file)


def segment_path(directory: Path, number: int) -> Path:
    return directory / f"{number:08d}{_SUFFIX}"


def segments(directory: Path) -> dict[int, int]:
    """Returns the sizes of segments in bytes by number, in ascending order. Segments that are deleted meanwhile are
    left out. The result is empty if the directory does not exist."""
    sizes = {}
    with suppress(FileNotFoundError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith(_SUFFIX):
                with suppress(FileNotFoundError):
                    sizes[int(entry.name[: -len(_SUFFIX)])] = entry.stat().st_size
    return dict(sorted(sizes.items()))


def writer_ids(journal: Path) -> list[UUID]:
    """Returns the ids of all writers, oldest first, because ids are ordered by time."""
    return sorted(UUID(path.name) for path in journal.iterdir() if _WRITER_ID.fullmatch(path.name))


def journal_bytes(journal: Path) -> int:
    """Returns the size in bytes of the segments of all writers."""
    return sum(sum(segments(journal / str(writer)).values()) for writer in writer_ids(journal))


def free_bytes(journal: Path) -> int:
    """Returns the number of bytes that this user can still write, or `sys.maxsize` if the file system does not report
    it."""
    disk = os.statvfs(journal)
    return disk.f_bavail * disk.f_frsize if disk.f_blocks else sys.maxsize


def lock(path: Path) -> int:
    """Locks a file and returns its descriptor. The lock lasts until the descriptor is closed or the process ends.
    Raises `BlockingIOError` if the file is already locked.

    Uses flock and not POSIX record locks. These are released when any descriptor of the file is closed, and a keeper in
    the same process as the writer could not detect them.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def is_locked(path: Path) -> bool:
    """Returns whether a file is locked. Tries a shared lock, so that concurrent checks do not find each other's
    locks."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def sync_directory(directory: Path) -> None:
    """Flushes the entries of a directory to the disk, so that they survive a loss of power."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""The journal's files by name, and the lock that tells a living writer from a dead one."""

import fcntl
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from uuid import UUID

LOCK = "lock"
KEEPER_LOCK = ".keeper"
#: A writer's directory gets its name only when it is locked: one with a name and no lock held is a dead writer's.
UNBORN = ".new-"
_SUFFIX = ".log"
_WRITER_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def sync_data(file: int) -> None:
    """What was written is on the disk. Not every system has a call for the content alone."""
    getattr(os, "fdatasync", os.fsync)(file)


def segment_path(directory: Path, number: int) -> Path:
    return directory / f"{number:08d}{_SUFFIX}"


def segments(directory: Path) -> dict[int, int]:
    """Sizes in bytes by number, ascending; without those that go meanwhile. Empty when the directory is gone."""
    sizes = {}
    with suppress(FileNotFoundError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith(_SUFFIX):
                with suppress(FileNotFoundError):
                    sizes[int(entry.name[: -len(_SUFFIX)])] = entry.stat().st_size
    return dict(sorted(sizes.items()))


def writer_ids(journal: Path) -> list[UUID]:
    """Of all writers, oldest first (the ids are ordered by time)."""
    return sorted(UUID(path.name) for path in journal.iterdir() if _WRITER_ID.fullmatch(path.name))


def journal_bytes(journal: Path) -> int:
    """What all writers hold together."""
    return sum(sum(segments(journal / str(writer)).values()) for writer in writer_ids(journal))


def free_bytes(journal: Path) -> int:
    """What the disk has left for this user; no bound where the file system does not say."""
    disk = os.statvfs(journal)
    return disk.f_bavail * disk.f_frsize if disk.f_blocks else sys.maxsize


def lock(path: Path) -> int:
    """A descriptor that holds the file's lock until it is closed or its process ends. Raises `BlockingIOError` when
    another holds it.

    flock, not POSIX record locks: those go when any descriptor of the file is closed, and a keeper in the writer's own
    process could not tell that they are held.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def is_locked(path: Path) -> bool:
    """Shared, so that two who ask at once do not take each other for the holder."""
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
    """Makes names in it survive a loss of power."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

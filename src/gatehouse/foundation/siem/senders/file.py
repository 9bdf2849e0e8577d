"""Writes JSON lines below `GATEHOUSE_HOME/siem` for a log shipper on this machine. Rotates files and deletes old
files."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gatehouse.foundation.siem.events import SiemEvent
from gatehouse.foundation.siem.senders.sender import BatchRefused, SiemTarget

#: folder below `GATEHOUSE_HOME` that contains a folder for each organization
DIRECTORY: Final = "siem"
NAME: Final = "events.jsonl"
#: a file of this size becomes `events.jsonl.1`, the former `.1` becomes `.2`, and so on
MAX_FILE_BYTES: Final = 64 * 1024**2
MAX_FILES: Final = 10


class FileSender:
    def __init__(self, home: Path) -> None:
        self._directory = home / DIRECTORY

    async def send(self, target: SiemTarget, secret: bytes, events: Sequence[SiemEvent]) -> None:
        lines = b"".join(event.body + b"\n" for event in events)
        try:
            await asyncio.to_thread(append, self._directory / str(target.tenant_id), lines)
        except OSError as error:
            raise BatchRefused(f"the file cannot be written: {os.strerror(error.errno or 0)}") from None


def append(directory: Path, lines: bytes) -> None:
    """Appends lines and flushes them to the disk. Raises `OSError`."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = directory / NAME
    is_new = not path.exists()
    with open(path, "ab+", opener=_open_private) as file:
        size = file.tell()
        if size:
            # End a line that a killed process or a full disk left incomplete.
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(lines)
        file.flush()
        os.fsync(file.fileno())
    if is_new:
        _sync_directories(directory)
    if size + len(lines) >= MAX_FILE_BYTES:
        _rotate(path)


def _rotate(path: Path) -> None:
    for number in range(MAX_FILES - 2, 0, -1):
        older = path.with_name(f"{NAME}.{number}")
        if older.exists():
            older.replace(path.with_name(f"{NAME}.{number + 1}"))
    path.replace(path.with_name(f"{NAME}.1"))


def _sync_directories(directory: Path) -> None:
    """Flushes the directory entries of a new file and its folders, so that they survive a loss of power."""
    for folder in (directory, directory.parent, directory.parent.parent):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)

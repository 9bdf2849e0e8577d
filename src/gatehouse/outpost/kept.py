"""Small files that survive kill -9: written beside, synced, and put in place in one step."""

import os
from pathlib import Path

from gatehouse.foundation.journal.files import sync_directory


def write(path: Path, content: bytes) -> None:
    """Raises `OSError`; the file is then the old one or the new one, whole."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync_directory(path.parent)


def stamp(*paths: Path) -> tuple[int, ...]:
    """Another one once any of them was written. Raises `OSError`."""
    found = [path.stat() for path in paths]
    return tuple(number for each in found for number in (each.st_mtime_ns, each.st_ino, each.st_size))


def read(path: Path) -> bytes | None:
    """None where there is none, or none that can be read."""
    try:
        return path.read_bytes()
    except OSError:
        return None

"""Small files that survive kill -9: each content is written to a temporary file, which is flushed and renamed."""

import os
from pathlib import Path

from gatehouse.foundation.journal.files import sync_directory


def write(path: Path, content: bytes) -> None:
    """Writes a file. Raises `OSError`: the file then has either its old content or the complete new content."""
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
    """Returns a value that changes when one of the files is written. Raises `OSError`."""
    stats = [path.stat() for path in paths]
    return tuple(number for stat in stats for number in (stat.st_mtime_ns, stat.st_ino, stat.st_size))


def read(path: Path) -> bytes | None:
    """Returns the content, or None if the file does not exist or cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return None

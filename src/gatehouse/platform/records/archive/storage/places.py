"""The storage of the archive: a folder (`file:///srv/archive`) or an S3-compatible bucket (`s3://bucket/prefix`).

Paths are relative to the storage and use slashes. Files are stored atomically. Methods raise `OSError`.
"""

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from gatehouse.foundation.lazy_import import LazyModule
from gatehouse.foundation.settings import BadSettings, Settings

fs: Any = LazyModule("pyarrow.fs")

_CHUNK_BYTES: Final = 8 * 1024**2


class ArchiveStorage(Protocol):
    """The operations that the archive needs of its storage."""

    def put(self, source: Path, path: str) -> None:
        """Store the file durably. Replaces an existing file."""

    def open(self, path: str) -> Any:
        """Open a file for random access, as a `pyarrow.NativeFile`. Raises `FileNotFoundError`."""

    def copy(self, path: str, target: str) -> None:
        """Copy a file durably within the storage."""

    def remove(self, path: str) -> None:
        """Delete a file if it exists."""

    def absolute(self, path: str) -> str:
        """Return the path within `filesystem`."""

    @property
    def filesystem(self) -> Any:
        """Return the file system, a `pyarrow.fs.FileSystem`."""


class Folder:
    """The archive in a local folder."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self.filesystem = fs.LocalFileSystem()

    def put(self, source: Path, path: str) -> None:
        target = self._root / path
        unfinished = target.with_name(target.name + ".part")
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            with unfinished.open("wb") as file, source.open("rb") as content:
                unfinished.chmod(0o600)
                shutil.copyfileobj(content, file, _CHUNK_BYTES)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
        # Sync the directory entries of the file, and of all folders that were created for it.
        folder = target.parent
        while True:
            _fsync(folder)
            if folder in {self._root, folder.parent}:
                break
            folder = folder.parent

    def open(self, path: str) -> Any:
        return self.filesystem.open_input_file(self.absolute(path))

    def copy(self, path: str, target: str) -> None:
        self.put(self._root / path, target)

    def remove(self, path: str) -> None:
        (self._root / path).unlink(missing_ok=True)
        (self._root / path).with_name(Path(path).name + ".part").unlink(missing_ok=True)

    def absolute(self, path: str) -> str:
        return str(self._root / path)


class Bucket:
    """The archive in an S3-compatible bucket. Credentials come from the same sources as for the tools of AWS:
    environment variables, shared files, and the role of the machine."""

    def __init__(self, url: str) -> None:
        try:
            self.filesystem, self._root = fs.FileSystem.from_uri(url)
        except (ValueError, OSError):
            # The message of the exception may contain the URL with a secret.
            raise BadSettings("ARCHIVE_URL: write it as s3://bucket/prefix?region=eu-central-1") from None

    def put(self, source: Path, path: str) -> None:
        with source.open("rb") as content, self.filesystem.open_output_stream(self.absolute(path)) as file:
            shutil.copyfileobj(content, file, _CHUNK_BYTES)

    def open(self, path: str) -> Any:
        return self.filesystem.open_input_file(self.absolute(path))

    def copy(self, path: str, target: str) -> None:
        self.filesystem.copy_file(self.absolute(path), self.absolute(target))

    def remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.filesystem.delete_file(self.absolute(path))

    def absolute(self, path: str) -> str:
        return f"{self._root}/{path}"


def archive_storage(settings: Settings) -> ArchiveStorage:
    """Return the storage that `ARCHIVE_URL` names. Raises `BadSettings`."""
    if settings.archive_url is None:
        return Folder(settings.gatehouse_home / "archive")
    parts = urlsplit(settings.archive_url)
    if parts.scheme == "s3":
        return Bucket(settings.archive_url)
    return Folder(Path(unquote(parts.path)))


def _fsync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

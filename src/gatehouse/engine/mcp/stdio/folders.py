"""Removes the folders of servers. A server can leave any contents there: very deep folders, folders without
permissions, symbolic links. The functions of the standard library recurse, and fail at paths that are too long."""

import contextlib
import os
import secrets
import time
from itertools import count
from pathlib import Path
from typing import Final

#: A removal ends after this time, because a process that has survived may go on creating files.
_MAX_SECONDS: Final = 30.0
_FOLDER: Final = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_folder(folder: Path) -> bool:
    """Remove a folder with all that servers have left in it, and return whether it is gone. Nested folders are moved up
    before they are emptied, so their depth is not limited, and two descriptors suffice. Links are not followed. What is
    not removed within `_MAX_SECONDS` is left."""
    with contextlib.suppress(OSError):
        top = _opened(str(folder))
        try:
            removal = _Removal(top)
            while removal.make_pass():
                pass
        finally:
            os.close(top)
    for remove in (os.rmdir, os.unlink):
        with contextlib.suppress(OSError):
            remove(folder)
    return not os.path.lexists(folder)


class _Removal:
    """The removal of the contents of one folder. `top` is its descriptor."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._ends_at = time.monotonic() + _MAX_SECONDS
        # Nothing in the folder has such a name.
        self._names = (f"{prefix}-{number}" for prefix in (secrets.token_hex(16),) for number in count())

    def make_pass(self) -> bool:
        """Remove the entries of the folder, and the files of its folders, whose own folders are moved up. Return
        whether anything has changed: what cannot be removed must not be tried without end."""
        is_changed = False
        with os.scandir(self._top) as entries:
            for entry in entries:
                if self._is_late():
                    return False
                if entry.is_dir(follow_symlinks=False):
                    is_changed |= self._remove_folder(entry.name)
                else:
                    is_changed |= _unlinked(entry.name, self._top)
        return is_changed

    def _remove_folder(self, name: str) -> bool:
        if _is_removed(name, self._top):
            return True
        is_changed = False
        with contextlib.suppress(OSError):
            folder = _opened(name, self._top)
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if self._is_late():
                            break
                        if entry.is_dir(follow_symlinks=False):
                            is_changed |= _is_removed(entry.name, folder) or self._moved_up(entry.name, folder)
                        else:
                            is_changed |= _unlinked(entry.name, folder)
            finally:
                os.close(folder)
        return _is_removed(name, self._top) or is_changed

    def _is_late(self) -> bool:
        return time.monotonic() > self._ends_at

    def _moved_up(self, name: str, parent: int) -> bool:
        try:
            # A folder that is moved must be writable, because its entry `..` changes.
            os.close(_opened(name, parent))
            os.rename(name, next(self._names), src_dir_fd=parent, dst_dir_fd=self._top)
        except OSError:
            return False
        return True


def _opened(name: str, parent: int | None = None) -> int:
    """Give this process all permissions for a folder, and open it. Raises `OSError`."""
    # This descriptor needs no permission. It prevents that the permissions of another file are changed meanwhile.
    place = os.open(name, os.O_PATH | _FOLDER, dir_fd=parent)
    try:
        with contextlib.suppress(OSError):
            # The folder of another user may be readable.
            Path(f"/proc/self/fd/{place}").chmod(0o700)
        return os.open(".", os.O_RDONLY | _FOLDER, dir_fd=place)
    finally:
        os.close(place)


def _is_removed(name: str, parent: int) -> bool:
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError:
        return False
    return True


def _unlinked(name: str, parent: int) -> bool:
    try:
        os.unlink(name, dir_fd=parent)
    except OSError:
        return False
    return True

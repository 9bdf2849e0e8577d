"""Collects the texts of a file, up to the limits of `limits`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

import msgspec

from gatehouse.detection.documents.limits import MAX_CHARACTERS, MAX_LEVELS, MAX_MEMBERS, MAX_UNPACKED_BYTES

#: The reasons why a file was not read. `no_text` is used for a picture or recording. `unknown_format` means that only a
#: part of the text may have been extracted. `not_asked` means that no process was available to read the file.
Reason: TypeAlias = Literal[
    "no_text", "unknown_format", "encrypted", "broken", "too_large", "too_many", "timeout", "crashed", "not_asked"
]


class Unread(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A file or a part of a file that was not read. `kind` is `image`, `audio` or `file`."""

    kind: str
    reason: Reason


class Reading(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The result of reading a file. `encoding` is the codec of a text file. It is None if the text was extracted from a
    document."""

    text: str
    unread: tuple[Unread, ...] = ()
    encoding: str | None = None


class LimitReached(Exception):
    """A limit is reached. The result contains only the text that was read before."""


class Output:
    """The texts of one file and of all files in it."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._unread: dict[Unread, None] = {}
        self._characters_left = MAX_CHARACTERS
        self._bytes_left = MAX_UNPACKED_BYTES
        self._members_left = MAX_MEMBERS
        self._levels_left = MAX_LEVELS

    def write(self, text: str) -> None:
        """Add a text. Raises `LimitReached`."""
        self._texts.append(text[: self._characters_left])
        self._characters_left -= len(text)
        if self._characters_left < 0:
            self.limit_reached()

    def add_unread(self, kind: str, reason: Reason) -> None:
        self._unread[Unread(kind, reason)] = None

    def limit_reached(self) -> None:
        """Record that a limit is reached, and raise `LimitReached`."""
        self.add_unread("file", "too_large")
        raise LimitReached

    def unpacked(self, size: int) -> None:
        """Count unpacked bytes. Raises `LimitReached`."""
        self._bytes_left -= size
        if self._bytes_left < 0:
            self.limit_reached()

    def member(self) -> None:
        """Count a file of an archive. Raises `LimitReached`."""
        self._members_left -= 1
        if self._members_left < 0:
            self.limit_reached()

    @contextmanager
    def level(self) -> Iterator[None]:
        """Return a context manager for reading a nested file. Raises `LimitReached`."""
        self._levels_left -= 1
        if self._levels_left < 0:
            self.limit_reached()
        try:
            yield
        finally:
            self._levels_left += 1

    def reading(self) -> Reading:
        return Reading("".join(self._texts), tuple(self._unread))

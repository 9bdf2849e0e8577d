"""Collects the texts of a file, within its limits."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

import msgspec

from gatehouse.detection.documents.limits import MAX_CHARACTERS, MAX_LEVELS, MAX_MEMBERS, MAX_UNPACKED_BYTES

#: `no_text`: a picture or recording. `unknown_format`: only a part of the text may have been extracted. `not_asked`: no
#: reading process was available.
Reason: TypeAlias = Literal[
    "no_text", "unknown_format", "encrypted", "broken", "too_large", "too_many", "timeout", "crashed", "not_asked"
]


class Unread(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A file, or a part of one, that was not read. `kind` is `image`, `audio` or `file`."""

    kind: str
    reason: Reason


class Reading(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The result. `encoding` is the codec of a text file, None if the text was extracted from a document."""

    text: str
    unread: tuple[Unread, ...] = ()
    encoding: str | None = None


class Enough(Exception):
    """A limit is reached. The result is what was read before."""


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
        """Add a text. Raises `Enough`."""
        self._texts.append(text[: self._characters_left])
        self._characters_left -= len(text)
        if self._characters_left < 0:
            self.enough()

    def miss(self, kind: str, reason: Reason) -> None:
        self._unread[Unread(kind, reason)] = None

    def enough(self) -> None:
        """Note that a limit is reached. Raises `Enough`."""
        self.miss("file", "too_large")
        raise Enough

    def unpacked(self, size: int) -> None:
        """Count unpacked bytes. Raises `Enough`."""
        self._bytes_left -= size
        if self._bytes_left < 0:
            self.enough()

    def member(self) -> None:
        """Count a file of an archive. Raises `Enough`."""
        self._members_left -= 1
        if self._members_left < 0:
            self.enough()

    @contextmanager
    def level(self) -> Iterator[None]:
        """A context for a nested file. Raises `Enough`."""
        self._levels_left -= 1
        if self._levels_left < 0:
            self.enough()
        try:
            yield
        finally:
            self._levels_left += 1

    def reading(self) -> Reading:
        return Reading("".join(self._texts), tuple(self._unread))

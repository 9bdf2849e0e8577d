"""The built files of the console, with their compressed versions."""

import hashlib
import mimetypes
from functools import cached_property
from pathlib import Path
from typing import Final

#: The folder that `make console-build` writes. Git ignores it.
BUILT: Final = Path(__file__).parent / "built"
INDEX: Final = "index.html"
#: The page of a shared conversation.
SHARED: Final = "shared.html"

#: Content codings in the order of preference, each with the suffix of the compressed file, which is next to the
#: original.
_SUFFIXES: Final = {"br": ".br", "gzip": ".gz"}
_MEDIA_TYPES: Final = {".js": "text/javascript", ".woff2": "font/woff2", ".svg": "image/svg+xml"}


class BuiltFile:
    """One file. Its content is read at the first use and kept in memory, because the files are few and do not
    change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._contents: dict[str, bytes] = {}

    @cached_property
    def media_type(self) -> str:
        suffix = self._path.suffix
        return _MEDIA_TYPES.get(suffix) or mimetypes.types_map.get(suffix, "application/octet-stream")

    @cached_property
    def etag(self) -> str:
        """The entity tag of the content. It is weak because it is the same for all codings (RFC 9110, 8.8.1)."""
        return f'W/"{hashlib.sha256(self._content("")).hexdigest()[:20]}"'

    def content(self, accept_encoding: str) -> tuple[bytes, str | None]:
        """Return the content in the best coding that the client accepts, and the name of the coding, or None without a
        coding."""
        accepted = _accepted(accept_encoding)
        for coding, suffix in _SUFFIXES.items():
            if coding in accepted and self._compressed(suffix).is_file():
                return self._content(suffix), coding
        return self._content(""), None

    def _content(self, suffix: str) -> bytes:
        if suffix not in self._contents:
            self._contents[suffix] = (self._compressed(suffix) if suffix else self._path).read_bytes()
        return self._contents[suffix]

    def _compressed(self, suffix: str) -> Path:
        return self._path.with_name(self._path.name + suffix)


def is_built() -> bool:
    """Return whether this installation has the files of the console."""
    return (BUILT / INDEX).is_file()


def built_files(folder: Path = BUILT) -> dict[str, BuiltFile]:
    """Return the files of a folder by their path in it. Empty if the console is not built. Only these files are served,
    so a request cannot name any other file."""
    if not (folder / INDEX).is_file():
        return {}
    return {
        path.relative_to(folder).as_posix(): BuiltFile(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix not in _SUFFIXES.values()
    }


def _accepted(accept_encoding: str) -> set[str]:
    """Return the codings that an `Accept-Encoding` header names and does not exclude (RFC 9110, 12.5.3)."""
    accepted = set()
    for part in accept_encoding.lower().split(","):
        coding, _, parameter = (piece.strip() for piece in part.partition(";"))
        if parameter.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}:
            accepted.add(coding)
    return accepted

"""Reads archives, including office documents. All files in an archive are read."""

import zipfile
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import IO, Final

from gatehouse.detection.documents.markup import STRING_END, BadMarkup, Markup
from gatehouse.detection.documents.output import Output
from gatehouse.detection.separator import SEPARATOR

_PIECE_BYTES: Final = 64 * 1024
_ENCRYPTED_FLAG: Final = 0x1
_XML: Final = (".xml", ".rels", ".xhtml", ".opf", ".ncx")
_SHEETS: Final = "xl/worksheets/"
_SHARED: Final = "xl/sharedStrings.xml"
_READ_ERRORS: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError, RuntimeError)


class BadArchive(Exception):
    """The file is not an archive, or is damaged."""


def read_archive(data: bytes, output: Output, read_file: Callable[[bytes, Output], None]) -> None:
    """Read all files in an archive. Files that are not XML are read with `read_file`. Raises `BadArchive` and
    `LimitReached`."""
    try:
        archive = zipfile.ZipFile(BytesIO(data))
    except _READ_ERRORS:
        raise BadArchive from None
    shared = _shared_strings(archive, output)
    for member in archive.infolist():
        name = member.filename
        if member.is_dir() or name == _SHARED:
            continue
        output.member()
        output.write(name + SEPARATOR)
        if member.flag_bits & _ENCRYPTED_FLAG:
            output.add_unread("file", "encrypted")
            continue
        try:
            with archive.open(member) as file:
                if name.endswith(_XML):
                    Markup(output.write, shared if name.startswith(_SHEETS) else None).read(_pieces(file, output))
                else:
                    with output.level():
                        read_file(b"".join(_pieces(file, output)), output)
        except (*_READ_ERRORS, BadMarkup):
            output.add_unread("file", "broken")
        output.write(SEPARATOR)


def _shared_strings(archive: zipfile.ZipFile, output: Output) -> list[str]:
    """Return the shared strings of a spreadsheet, in order."""
    if _SHARED not in archive.NameToInfo:
        return []
    pieces: list[str] = []
    try:
        with archive.open(_SHARED) as file:
            Markup(pieces.append).read(_pieces(file, output))
    except (*_READ_ERRORS, BadMarkup):
        output.add_unread("file", "broken")
    return "".join(pieces).split(STRING_END)


def _pieces(file: IO[bytes], output: Output) -> Iterator[bytes]:
    while piece := file.read(_PIECE_BYTES):
        output.unpacked(len(piece))
        yield piece

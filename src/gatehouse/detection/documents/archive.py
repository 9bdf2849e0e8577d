"""Archives, among them office documents. Every file in an archive is read."""

import zipfile
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import IO, Final

from gatehouse.detection.documents.markup import STRING_END, BadMarkup, Markup
from gatehouse.detection.documents.output import Output
from gatehouse.detection.separator import SEPARATOR

_PIECE: Final = 64 * 1024
_ENCRYPTED: Final = 0x1
_XML: Final = (".xml", ".rels", ".xhtml", ".opf", ".ncx")
_SHEETS: Final = "xl/worksheets/"
_SHARED: Final = "xl/sharedStrings.xml"
_BAD: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError, RuntimeError)


class BadArchive(Exception):
    """The file is no archive, or is damaged."""


def read_archive(data: bytes, output: Output, read_file: Callable[[bytes, Output], None]) -> None:
    """Read all files of an archive, those that are not XML with `read_file`. Raises `BadArchive`, `Enough`."""
    try:
        archive = zipfile.ZipFile(BytesIO(data))
    except _BAD:
        raise BadArchive from None
    shared = _shared_strings(archive, output)
    for member in archive.infolist():
        name = member.filename
        if member.is_dir() or name == _SHARED:
            continue
        output.member()
        output.write(name + SEPARATOR)
        if member.flag_bits & _ENCRYPTED:
            output.miss("file", "encrypted")
            continue
        try:
            with archive.open(member) as file:
                if name.endswith(_XML):
                    Markup(output.write, shared if name.startswith(_SHEETS) else None).read(_pieces(file, output))
                else:
                    with output.level():
                        read_file(b"".join(_pieces(file, output)), output)
        except (*_BAD, BadMarkup):
            output.miss("file", "broken")
        output.write(SEPARATOR)


def _shared_strings(archive: zipfile.ZipFile, output: Output) -> list[str]:
    """Return the shared strings of a spreadsheet, in order."""
    if _SHARED not in archive.NameToInfo:
        return []
    pieces: list[str] = []
    try:
        with archive.open(_SHARED) as file:
            Markup(pieces.append).read(_pieces(file, output))
    except (*_BAD, BadMarkup):
        output.miss("file", "broken")
    return "".join(pieces).split(STRING_END)


def _pieces(file: IO[bytes], output: Output) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        output.unpacked(len(piece))
        yield piece

"""Reads a file of any kind. Returns its text and the parts that could not be read."""

import re
from typing import Final

from gatehouse.detection.documents.archive import BadArchive, read_archive
from gatehouse.detection.documents.encodings import DecodedText, decoded, guessed
from gatehouse.detection.documents.kinds import Kind, kind_of
from gatehouse.detection.documents.output import LimitReached, Output, Reading
from gatehouse.detection.separator import SEPARATOR

#: Runs of eight or more ASCII characters, of one or two bytes each. They do not occur by chance in a file of unknown
#: format.
_RUN: Final = re.compile(rb"[\t -~]{8,}")
_WIDE_RUN: Final = re.compile(rb"(?:[\t -~]\x00){8,}")
#: A name that occurs in encrypted office documents, in UTF-16.
_ENCRYPTED: Final = "EncryptedPackage".encode("utf-16-le")


def read(data: bytes, *, declared_as_text: bool = False) -> Reading:
    """Return the content of a file. `declared_as_text` means that the client has declared the file as text. A document
    is then read both as a document and as text."""
    output = Output()
    kind = kind_of(data)
    try:
        if _read_document(data, kind, output):
            if declared_as_text and (text := _text(data)) is not None:
                output.write(SEPARATOR + text.text)
        elif (text := _text(data)) is not None:
            return Reading(text.text, (), text.encoding)
        else:
            _read_unknown(data, kind, output)
    except LimitReached:
        pass
    return output.reading()


def _read_file(data: bytes, output: Output) -> None:
    """Read a nested file. Raises `LimitReached`."""
    kind = kind_of(data)
    if not _read_document(data, kind, output):
        text = _text(data)
        if text is not None:
            output.write(text.text)
        else:
            _read_unknown(data, kind, output)


def _read_document(data: bytes, kind: Kind | None, output: Output) -> bool:
    """Read a document, and return whether its format is supported. Raises `LimitReached`."""
    try:
        if kind == "archive":
            read_archive(data, output, _read_file)
        elif kind == "pdf":
            # Imported here, because the library is large and rarely needed.
            from gatehouse.detection.documents.pdf import BadPdf, read_pdf  # noqa: PLC0415

            try:
                read_pdf(data, output, _read_file)
            except BadPdf:
                return False
        else:
            return False
    except BadArchive:
        return False
    return True


def _text(data: bytes) -> DecodedText | None:
    steps = decoded(data)
    while True:
        try:
            next(steps)
        except StopIteration as stopped:
            text: DecodedText | None = stopped.value
            return text or guessed(data)


def _read_unknown(data: bytes, kind: Kind | None, output: Output) -> None:
    """Extract runs of text from a file of unknown format. Raises `LimitReached`."""
    if kind in {"image", "audio"}:
        output.add_unread(kind, "no_text")
    elif kind in {"pdf", "archive"}:
        output.add_unread("file", "broken")
    else:
        output.add_unread("file", "encrypted" if _ENCRYPTED in data else "unknown_format")
    for runs, encoding in ((_RUN, "ascii"), (_WIDE_RUN, "utf-16-le")):
        for run in runs.finditer(data):
            output.write(run[0].decode(encoding) + SEPARATOR)

"""Determines the kind of a file by its first bytes."""

import re
from typing import Final, Literal, TypeAlias

#: The kinds of files. `pdf`, `archive` (ZIP files and office documents) and `compound` (older office formats and
#: encrypted documents) may contain texts. `file` is any other known format, which is not read.
Kind: TypeAlias = Literal["image", "audio", "file", "pdf", "archive", "compound"]

#: Number of bytes at the beginning of a file in which the header of a PDF must begin.
_PDF_HEADER_WITHIN_BYTES: Final = 1024
_PDF: Final = b"%PDF-"
_COMPOUND: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ARCHIVE: Final = (b"PK\x03\x04", b"PK\x05\x06")
_OTHERS: Final[tuple[tuple[Kind, re.Pattern[bytes]], ...]] = (
    (
        "image",
        re.compile(
            rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|RIFF....WEBP|BM....\x00\x00\x00\x00|II\*\x00|MM\x00\*"
            rb"|....ftyp(?:heic|heix|mif1|avif|avis)|\x00\x00\x01\x00|\x00\x00\x00\x0cJXL |\xff\x0a|8BPS",
            re.DOTALL,
        ),
    ),
    (
        "audio",
        re.compile(
            rb"ID3|\xff[\xe2-\xe7\xf0-\xf7\xfa-\xfd]|RIFF....WAVE|fLaC|OggS|....ftypM4[AB]|FORM....AIF[FC]|\x1aE\xdf\xa3"
            rb"|caff|#!AMR",
            re.DOTALL,
        ),
    ),
    (
        "file",
        re.compile(
            rb"RIFF....AVI |....ftyp|\x1f\x8b|7z\xbc\xaf\x27\x1c|Rar!|BZh|\xfd7zXZ\x00|\x28\xb5\x2f\xfd", re.DOTALL
        ),
    ),
)  # fmt: skip


def kind_of(data: bytes) -> Kind | None:
    """Return the kind of a file, or None if its first bytes are of no known format. A text file may begin with any
    bytes, so it may have a kind too."""
    if data.startswith(_ARCHIVE):
        return "archive"
    if data.startswith(_COMPOUND):
        return "compound"
    if _PDF in data[:_PDF_HEADER_WITHIN_BYTES]:
        return "pdf"
    return next((kind for kind, begins in _OTHERS if begins.match(data)), None)

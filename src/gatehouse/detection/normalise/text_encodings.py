"""Recognizes text in bytes of unknown encoding. The encodings are UTF-8, with single bytes of Windows-1252, and
UTF-16."""

import re
from typing import Final, NamedTuple


class TextEncoding(NamedTuple):
    """A text encoding. `begins` matches bytes that show that a text has this encoding. `forward` matches as many bytes
    as are text in this encoding. `backward` does the same for bytes in reverse order."""

    encoding: str
    begins: re.Pattern[bytes]
    forward: re.Pattern[bytes]
    backward: re.Pattern[bytes]


_CHARACTER: Final = rb"[\t\r\n -~]"
#: One or two adjacent letters of Windows-1252 that are not ASCII.
_FEW: Final = rb"[\x80-\xff]{1,2}(?![\x80-\xff])"
_UTF_8_BYTES: Final = rb"(?:%b|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|%b)*+" % (
    _CHARACTER,
    _FEW,
)
_UTF_8_REVERSED_BYTES: Final = (
    rb"(?:%b|[\x80-\xbf][\xc2-\xdf]|[\x80-\xbf]{2}[\xe0-\xef]|[\x80-\xbf]{3}[\xf0-\xf4]|%b)*+" % (_CHARACTER, _FEW)
)
#: High bytes of the UTF-16 units of letters and punctuation. U+FE00 to U+FEFF are not included, because they contain
#: the byte order mark.
_HIGH: Final = rb"[\x01-\x06\x09-\x0e\x10\x1e-\x22\x30\x4e-\x9f\xac-\xdf\xff]"
_LOW_FIRST: Final = re.compile(rb"(?s:[\t\r\n -~\xa0-\xfe]\0|.%b)*+" % _HIGH)
_HIGH_FIRST: Final = re.compile(rb"(?s:\0[\t\r\n -~\xa0-\xfe]|%b.)*+" % _HIGH)
UTF_8: Final = TextEncoding(
    "utf-8", re.compile(rb"%b{8}" % _CHARACTER), re.compile(_UTF_8_BYTES), re.compile(_UTF_8_REVERSED_BYTES)
)
UTF_16_LE: Final = TextEncoding("utf-16-le", re.compile(rb"(?:%b\0){3}" % _CHARACTER), _LOW_FIRST, _HIGH_FIRST)
UTF_16_BE: Final = TextEncoding("utf-16-be", re.compile(rb"(?:\0%b){3}" % _CHARACTER), _HIGH_FIRST, _LOW_FIRST)

"""Decodes bytes to text, in any encoding.

`decoded` recognizes Unicode, and text that is ASCII except for a few characters. It is fast enough for the request
path. `guessed` recognizes all other encodings.
"""

import codecs
import re
from collections.abc import Generator
from typing import Final, NamedTuple

from gatehouse.detection.documents.kinds import kind_of

#: Control characters that do not occur in texts. Escapes, form feeds and backspaces are not included, because they
#: occur in terminal logs and old printouts.
_CONTROLS: Final = bytes(sorted({*range(0x20), 0x7F} - {*b"\t\n\v\f\r\b\x1b"}))
_HIGH: Final = bytes(range(0x80, 0x100))
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: Characters that occur in texts but are not visible.
_BLANKS: Final = frozenset("\t\n\v\f\r\b\x1b\x1e\ufeff\xa0\u3000")
#: A line that contains bytes that are not ASCII.
_NOT_ASCII_LINE: Final = re.compile(rb"(?m)^[^\n\x80-\xff]*+[\x80-\xff][^\n]*\n?")
#: Number of bytes that are processed in one step.
_STEP_BYTES: Final = 256 * 1024
#: Maximum bytes or characters that are examined to recognize UTF-16 or visible text.
_SAMPLE_BYTES: Final = 4096
#: Approximate maximum of the bytes that are examined to guess an encoding.
_MAX_SAMPLE_BYTES: Final = 16 * 1024


class DecodedText(NamedTuple):
    """A decoded text. `encoding` is the codec that it was decoded with, and that can encode it again."""

    text: str
    encoding: str


def decoded(data: bytes) -> Generator[None, None, DecodedText | None]:
    """Return `data` as text if it is Unicode, or ASCII with few other bytes. Otherwise return None. The generator
    yields about every millisecond."""
    wide = yield from _marked_or_wide(data)
    if wide is not None:
        return wide
    controls = high = 0
    for start in range(0, len(data), _STEP_BYTES):
        part = data[start : start + _STEP_BYTES]
        controls += len(part) - len(part.translate(None, _CONTROLS))
        high += len(part) - len(part.translate(None, _HIGH))
        yield
    text = yield from _decode(data, "utf-8")
    bad = text.count("\ufffd") if high else 0
    if not bad:
        return DecodedText(text, "utf-8") if controls <= 0.3 * len(data) else None
    if controls > 0.05 * len(data):
        return None
    # If most bytes that are not ASCII form valid characters of UTF-8, the text is UTF-8. This does not occur by chance.
    if bad <= 0.02 * len(data) and bad < 0.2 * high:
        return DecodedText(text, "utf-8")
    if high <= max(0.05 * len(data), 2):
        text = yield from _decode(data, "cp1252")
        return DecodedText(text, "cp1252")
    return None


def _marked_or_wide(data: bytes) -> Generator[None, None, DecodedText | None]:
    """Return the decoded text if the data begins with a byte order mark, or is UTF-16 without one. Otherwise return
    None."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            text = yield from _decode(data, encoding)
            if _is_visible(text):
                return DecodedText(text, encoding)
    wide = _utf16(data)
    if wide is None:
        return None
    text = yield from _decode(data, wide)
    return DecodedText(text, wide)


def begins_like_text(beginning: bytes) -> bool:
    """Return whether a few hundred bytes look like text and not like a binary document."""
    if kind_of(beginning) in {"pdf", "archive", "compound"}:
        return False
    steps = decoded(beginning)
    while True:
        try:
            next(steps)
        except StopIteration as stopped:
            text: DecodedText | None = stopped.value
            break
    if text is not None:
        return True
    controls = len(beginning) - len(beginning.translate(None, _CONTROLS))
    return kind_of(beginning) is None and controls <= 0.02 * len(beginning)


def guessed(data: bytes) -> DecodedText | None:
    """Return `data` as text in the most likely encoding, or None if no encoding gives text. Takes about ten
    milliseconds."""
    # Imported here, because the library is rarely needed and slow to import.
    from charset_normalizer import from_bytes  # noqa: PLC0415

    best = from_bytes(_sample(data)).best()
    if best is None:
        return None
    text = data.decode(best.encoding, "replace")
    return DecodedText(text, best.encoding) if _is_visible(text) else None


def _decode(data: bytes, encoding: str) -> Generator[None, None, str]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    pieces = []
    for start in range(0, len(data), _STEP_BYTES):
        pieces.append(decoder.decode(data[start : start + _STEP_BYTES], start + _STEP_BYTES >= len(data)))
        yield
    return "".join(pieces)


def _utf16(data: bytes) -> str | None:
    """Return the encoding if the data is UTF-16 without a byte order mark. Of each two bytes, one is nearly always zero
    in Latin text, and often zero in other text, because of blanks and digits."""
    middle = len(data) // 2 & ~1
    half = _SAMPLE_BYTES // 2
    sample = data[:_SAMPLE_BYTES] if len(data) <= _SAMPLE_BYTES else data[:half] + data[middle : middle + half]
    sample = sample[: len(sample) & ~1]
    units = len(sample) // 2
    first, second = sample[::2].count(0), sample[1::2].count(0)
    if max(first, second) < max(0.02 * units, 1) or min(first, second) > 0.1 * max(first, second):
        return None
    encoding = "utf-16-le" if second > first else "utf-16-be"
    return encoding if _is_visible(sample.decode(encoding, "replace")) else None


def _is_visible(text: str) -> bool:
    """Return whether nearly all characters of a sample of the text are visible or blank."""
    middle = len(text) // 2
    sample = (
        text if len(text) <= _SAMPLE_BYTES else text[: _SAMPLE_BYTES // 2] + text[middle : middle + _SAMPLE_BYTES // 2]
    )
    invisible = sum(not (character.isprintable() or character in _BLANKS) for character in sample)
    return invisible + sample.count("\ufffd") <= 0.05 * len(sample)


def _sample(data: bytes) -> bytes:
    """Return the lines of long data that are not ASCII, because only they show the encoding. Short data is returned
    unchanged."""
    if len(data) <= _MAX_SAMPLE_BYTES:
        return data
    lines: list[bytes] = []
    size = 0
    for line in _NOT_ASCII_LINE.finditer(data):
        lines.append(line[0])
        size += len(line[0])
        if size > _MAX_SAMPLE_BYTES:
            break
    sample = b"".join(lines)
    if len(sample) <= 2 * _MAX_SAMPLE_BYTES:
        return sample
    # The sample has one long line. It is cut after one of the characters below. In every multi-byte encoding, the
    # second byte of a character is at least `0`, so the cut is not before a second byte.
    cut = sample[:_MAX_SAMPLE_BYTES]
    return cut[: max(map(cut.rfind, (b" ", b",", b";", b".", b"0"))) + 1] or cut

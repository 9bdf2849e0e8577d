"""Files in requests: what they hold as text, and what of them cannot be read.

Text in Unicode, or nearly all ASCII, is read here. Documents and other encodings are read by processes of the detection
service, in bounded time. Pictures and recordings are not looked into.
"""

import re
import time
from binascii import a2b_base64
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from gatehouse.detection.documents.encodings import decoded
from gatehouse.detection.documents.kinds import Kind, kind_of
from gatehouse.detection.documents.output import Reading, Unread
from gatehouse.engine.conversation.slots import Attachment, Slot, Unseen
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.steps import Steps
from gatehouse.engine.dlp.tiers import TierFailed

#: Files of one request that the detection service reads.
MAX_FILES: Final = 64
_UNPADDED: Final = re.compile(rb"[^=]+")
_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")
#: Characters of base64 that are decoded in one step: whole groups.
_STEP: Final = 128 * 1024
_DOCUMENTS: Final = frozenset({"pdf", "archive", "compound"})
_TOO_MANY: Final = Reading("", (Unread("file", "too_many"),))
_TIMEOUT: Final = Reading("", (Unread("file", "timeout"),))
_NOT_ASKED: Final = Reading("", (Unread("file", "not_asked"),))


class RequestTexts(NamedTuple):
    """All texts of a body, those of its files in their places, and what could not be read."""

    texts: list[Slot]
    unread: list[Unread]


class _ToRead(NamedTuple):
    """A file that the detection service has to read."""

    attachment: Attachment
    data: bytes
    kind: Kind | None


_Part: TypeAlias = Slot | Unread | _ToRead


async def read_files(found: Sequence[Slot | Unseen], size: int, examiner: Examiner) -> RequestTexts:
    """`found` are the texts of a body of `size` bytes, and what is none. Raises `DlpUnavailable` where `DLP_FAIL_MODE`
    says so, and where too many long texts wait."""
    parts: Sequence[_Part] = await examiner.run_steps(size, _parts(found), fallback=[])
    readings: list[Reading] = []
    left = examiner.options.document_seconds
    for part in parts:
        if isinstance(part, _ToRead):
            began = time.monotonic()
            readings.append(await _reading(part, len(readings), left, examiner))
            left -= time.monotonic() - began
    return await examiner.run_steps(size, _read(parts, readings), fallback=RequestTexts([], []))


async def _reading(file: _ToRead, before: int, seconds: float, examiner: Examiner) -> Reading:
    if before >= MAX_FILES:
        return _TOO_MANY
    if seconds <= 0:
        return _TIMEOUT
    is_called_text = file.attachment.media_type.startswith("text/")
    try:
        return await examiner.detectors.document(file.data, is_called_text=is_called_text, seconds=seconds)
    except TierFailed as failed:
        examiner.tier_failed(failed)
        return _NOT_ASKED


def _parts(found: Sequence[Slot | Unseen]) -> Steps[list[_Part]]:
    parts: list[_Part] = []
    for each in found:
        yield
        if each.attachment is not None:
            called = each.kind if isinstance(each, Unseen) else "file"
            parts.append((yield from _unpacked(each.attachment, called)))
        elif isinstance(each, Slot):
            parts.append(each)
        else:
            parts.append(Unread(each.kind, "unknown_format" if each.kind == "file" else "no_text"))
    return parts


def _unpacked(attachment: Attachment, called: str) -> Steps[_Part]:
    """`called`: its kind in the client's words."""
    data = yield from _bytes(attachment)
    kind = kind_of(data)
    if kind not in _DOCUMENTS:
        text = yield from decoded(data)
        if text is not None:
            return _text(attachment, text.text, text.encoding)
        if kind is not None:
            return Unread(kind, "unknown_format" if kind == "file" else "no_text")
        if called != "file":
            return Unread(called, "no_text")
    return _ToRead(attachment, data, kind)


def _read(parts: Sequence[_Part], readings: Iterable[Reading]) -> Steps[RequestTexts]:
    read = RequestTexts([], [])
    of_files = iter(readings)
    for part in parts:
        yield
        if isinstance(part, Slot):
            read.texts.append(part)
        elif isinstance(part, Unread):
            read.unread.append(part)
        else:
            reading = next(of_files)
            read.unread.extend(reading.unread)
            read.texts.extend(_texts(part, reading))
    return read


def _texts(file: _ToRead, reading: Reading) -> Iterable[Slot]:
    attachment = file.attachment
    if reading.encoding is not None:
        yield _text(attachment, reading.text, reading.encoding)
        return
    if reading.text:
        yield Slot(attachment.holder, attachment.key, reading.text, is_extract=True)
    if file.kind is None:
        # Perhaps no file, but a secret that is made of base64's characters.
        yield Slot(attachment.holder, attachment.key, attachment.text, is_sealed=True)


def _text(attachment: Attachment, text: str, encoding: str) -> Slot:
    return Slot(attachment.holder, attachment.key, text, attachment=attachment, encoding=encoding)


def _bytes(attachment: Attachment) -> Steps[bytes]:
    digits = attachment.text[attachment.start :].encode().translate(_URL_SAFE, b"\r\n")
    pieces: list[bytes] = []
    # Some readers go on behind the end that padding marks.
    for part in _UNPADDED.finditer(digits):
        for first in range(part.start(), part.end(), _STEP):
            piece = digits[first : min(first + _STEP, part.end())]
            # One digit alone is no byte.
            piece = piece[: -1 if len(piece) % 4 == 1 else None]
            pieces.append(a2b_base64(piece + b"=" * (-len(piece) % 4)))
            yield
    return b"".join(pieces)

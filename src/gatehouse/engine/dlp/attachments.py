"""Extracts the texts of files in requests, and reports content that cannot be read.

This module decodes files in Unicode or nearly pure ASCII. Processes of the detection service read documents and other
encodings in bounded time. Images and recordings are not inspected.
"""

import re
import time
from binascii import a2b_base64
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from gatehouse.detection.documents.encodings import decoded
from gatehouse.detection.documents.kinds import Kind, kind_of
from gatehouse.detection.documents.output import Reading, Unread
from gatehouse.engine.conversation.slots import Attachment, NonText, Slot
from gatehouse.engine.dlp.examine import Examiner
from gatehouse.engine.dlp.steps import Steps
from gatehouse.engine.dlp.tiers import TierFailed

#: Maximum number of files of one request that the detection service reads.
MAX_FILES: Final = 64
_UNPADDED: Final = re.compile(rb"[^=]+")
_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")
#: Characters of base64 that are decoded in one step: a multiple of a group of four.
_STEP_CHARACTERS: Final = 128 * 1024
_DOCUMENTS: Final = frozenset({"pdf", "archive", "compound"})
_TOO_MANY: Final = Reading("", (Unread("file", "too_many"),))
_TIMEOUT: Final = Reading("", (Unread("file", "timeout"),))
_READER_FAILED: Final = Reading("", (Unread("file", "not_asked"),))


class RequestTexts(NamedTuple):
    """The texts of a body, including the texts of its files at the files' positions, and the content that could not be
    read."""

    texts: list[Slot]
    unread: list[Unread]


class _UnreadFile(NamedTuple):
    """A file that the detection service must read."""

    attachment: Attachment
    data: bytes
    kind: Kind | None


_Part: TypeAlias = Slot | Unread | _UnreadFile


async def read_files(slots: Sequence[Slot | NonText], size: int, examiner: Examiner) -> RequestTexts:
    """Read the files of a body. `slots` are the texts and the other content of a body of `size` bytes. Raises
    `DlpUnavailable` if the reader fails and `DLP_FAIL_MODE` is `closed`, and if too many long texts wait for
    inspection."""
    parts: Sequence[_Part] = await examiner.run_steps(size, _unpack_slots(slots), fallback=[])
    readings: list[Reading] = []
    remaining_seconds = examiner.options.document_seconds
    for part in parts:
        if isinstance(part, _UnreadFile):
            started = time.monotonic()
            readings.append(await _read_file(part, len(readings), remaining_seconds, examiner))
            remaining_seconds -= time.monotonic() - started
    return await examiner.run_steps(size, _merge(parts, readings), fallback=RequestTexts([], []))


async def _read_file(file: _UnreadFile, files_before: int, seconds: float, examiner: Examiner) -> Reading:
    if files_before >= MAX_FILES:
        return _TOO_MANY
    if seconds <= 0:
        return _TIMEOUT
    declared_as_text = file.attachment.media_type.startswith("text/")
    try:
        return await examiner.detectors.document(file.data, declared_as_text=declared_as_text, seconds=seconds)
    except TierFailed as failed:
        examiner.tier_failed(failed)
        return _READER_FAILED


def _unpack_slots(slots: Sequence[Slot | NonText]) -> Steps[list[_Part]]:
    parts: list[_Part] = []
    for slot in slots:
        yield
        if slot.attachment is not None:
            declared_kind = slot.kind if isinstance(slot, NonText) else "file"
            parts.append((yield from _unpack(slot.attachment, declared_kind)))
        elif isinstance(slot, Slot):
            parts.append(slot)
        else:
            parts.append(Unread(slot.kind, "unknown_format" if slot.kind == "file" else "no_text"))
    return parts


def _unpack(attachment: Attachment, declared_kind: str) -> Steps[_Part]:
    """Decode a file if it is text. `declared_kind` is the kind that the client declared."""
    data = yield from _decode_base64(attachment)
    kind = kind_of(data)
    if kind not in _DOCUMENTS:
        text = yield from decoded(data)
        if text is not None:
            return _text_slot(attachment, text.text, text.encoding)
        if kind is not None:
            return Unread(kind, "unknown_format" if kind == "file" else "no_text")
        if declared_kind != "file":
            return Unread(declared_kind, "no_text")
    return _UnreadFile(attachment, data, kind)


def _merge(parts: Sequence[_Part], readings: Iterable[Reading]) -> Steps[RequestTexts]:
    result = RequestTexts([], [])
    next_readings = iter(readings)
    for part in parts:
        yield
        if isinstance(part, Slot):
            result.texts.append(part)
        elif isinstance(part, Unread):
            result.unread.append(part)
        else:
            reading = next(next_readings)
            result.unread.extend(reading.unread)
            result.texts.extend(_texts_of_file(part, reading))
    return result


def _texts_of_file(file: _UnreadFile, reading: Reading) -> Iterable[Slot]:
    attachment = file.attachment
    if reading.encoding is not None:
        yield _text_slot(attachment, reading.text, reading.encoding)
        return
    if reading.text:
        yield Slot(attachment.holder, attachment.key, reading.text, is_extract=True)
    if file.kind is None:
        # The content may be a secret that consists of base64 characters, and no file.
        yield Slot(attachment.holder, attachment.key, attachment.text, is_sealed=True)


def _text_slot(attachment: Attachment, text: str, encoding: str) -> Slot:
    return Slot(attachment.holder, attachment.key, text, attachment=attachment, encoding=encoding)


def _decode_base64(attachment: Attachment) -> Steps[bytes]:
    digits = attachment.text[attachment.start :].encode().translate(_URL_SAFE, b"\r\n")
    pieces: list[bytes] = []
    # Some base64 decoders continue after padding, so the content after it is decoded too.
    for run in _UNPADDED.finditer(digits):
        for start in range(run.start(), run.end(), _STEP_CHARACTERS):
            piece = digits[start : min(start + _STEP_CHARACTERS, run.end())]
            # A single base64 digit encodes no whole byte.
            piece = piece[: -1 if len(piece) % 4 == 1 else None]
            pieces.append(a2b_base64(piece + b"=" * (-len(piece) % 4)))
            yield
    return b"".join(pieces)

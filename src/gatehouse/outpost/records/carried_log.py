"""Uploads an exported audit log to the platform. This is needed for an outpost in an air gap, and after a platform has
been restored from a backup."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from gatehouse.outpost.identity import OutpostIdentity
from gatehouse.outpost.platform_link.client import PlatformClient, PlatformRefusal
from gatehouse.outpost.records.log import (
    Cursor,
    NotALine,
    entry,
    place,
)
from gatehouse.outpost.records.positions import MAX_UPLOAD_BYTES, MAX_UPLOAD_RECORDS
from gatehouse.outpost.settings import OutpostSettings


class Missing(Exception):
    """The platform lacks records that precede those in the file."""


class EntryRun(NamedTuple):
    """Consecutive entries of one journal. `begin` is the position of the first one."""

    begin: Cursor
    entries: list[bytes]


class UploadResult(msgspec.Struct):
    """The result of an upload. `lines` is the number of uploaded lines."""

    lines: int = 0
    #: entries that were new to the platform
    stored: int = 0
    #: position and reason of each rejected entry
    rejected: list[tuple[Cursor, str]] = []


async def hand_in(settings: OutpostSettings, lines: Iterable[bytes]) -> UploadResult:
    """Uploads the entries of the lines. The platform skips the entries that it already has, so a file may be uploaded
    again.

    Raises `BadSettings`, `NotALine` (its message contains the number of the line), `Missing`, `PlatformUnavailable` and
    `PlatformRefusal`.
    """
    settings = settings.model_copy(update={"outpost_airgap": False}).checked()
    assert settings.platform_management_url is not None
    platform = PlatformClient(
        settings.platform_management_url, OutpostIdentity.of(settings), issuer=settings.platform_issuer
    )
    result = UploadResult()
    try:
        for begin, entries in _runs(lines):
            try:
                answer = await platform.hand_in(begin.journal_id, begin.sequence, entries)
            except PlatformRefusal as error:
                if error.status == 409 and isinstance(error.body, dict):
                    expected = error.body.get("expected_sequence")
                    message = f"journal {begin.journal_id}, {begin.sequence}: the platform needs {expected} first"
                    raise Missing(message) from None
                raise
            result.lines += len(entries)
            result.stored += answer["stored"]
            result.rejected += [
                (Cursor(begin.journal_id, rejection["sequence"]), rejection["reason"])
                for rejection in answer["rejected"]
            ]
    finally:
        await platform.close()
    return result


def _runs(lines: Iterable[bytes]) -> Iterator[EntryRun]:
    """Yields the lines as runs of consecutive entries. Each run is at most as long as one upload may be."""
    run: EntryRun | None = None
    size = 0
    for number, line in enumerate(lines, 1):
        try:
            cursor, content = place(line), entry(line)
        except NotALine as error:
            raise NotALine(f"line {number} is {error}") from None
        size += len(content)
        if run is not None:
            follows = cursor == Cursor(run.begin.journal_id, run.begin.sequence + len(run.entries))
            if follows and size <= MAX_UPLOAD_BYTES and len(run.entries) < MAX_UPLOAD_RECORDS:
                run.entries.append(content)
                continue
            yield run
        run, size = EntryRun(cursor, [content]), len(content)
    if run is not None:
        yield run

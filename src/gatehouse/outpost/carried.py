"""An exported audit log, brought to the platform by hand: for an outpost in an air gap, and for a platform that was
restored from a backup."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from gatehouse.outpost.audit_log import Cursor, NotALine, entry, place
from gatehouse.outpost.identity import Identity
from gatehouse.outpost.platform import Platform, PlatformRefuses
from gatehouse.outpost.records import MOST_BYTES, MOST_RECORDS
from gatehouse.outpost.settings import OutpostSettings


class Missing(Exception):
    """The platform has not what comes before the file."""


class Stretch(NamedTuple):
    begin: Cursor
    entries: list[bytes]


class Brought(msgspec.Struct):
    lines: int = 0
    #: new at the platform
    stored: int = 0
    #: number, reason
    rejected: list[tuple[Cursor, str]] = []


async def hand_in(settings: OutpostSettings, lines: Iterable[bytes]) -> Brought:
    """Each record once, however often it is called: the platform passes over what it has.

    Raises `BadSettings`, `NotALine` with the line's number, `Missing`, `PlatformAway`, `PlatformRefuses`.
    """
    settings = settings.model_copy(update={"outpost_airgap": False}).checked()
    assert settings.platform_management_url is not None
    platform = Platform(settings.platform_management_url, Identity.of(settings), issuer=settings.platform_issuer)
    brought = Brought()
    try:
        for begin, entries in _stretches(lines):
            try:
                answer = await platform.hand_in(begin.journal_id, begin.sequence, entries)
            except PlatformRefuses as refused:
                if refused.status == 409 and isinstance(refused.body, dict):
                    expected = refused.body.get("expected_sequence")
                    why = f"journal {begin.journal_id}, {begin.sequence}: the platform needs {expected} first"
                    raise Missing(why) from None
                raise
            brought.lines += len(entries)
            brought.stored += answer["stored"]
            brought.rejected += [
                (Cursor(begin.journal_id, each["sequence"]), each["reason"]) for each in answer["rejected"]
            ]
    finally:
        await platform.close()
    return brought


def _stretches(lines: Iterable[bytes]) -> Iterator[Stretch]:
    """Lines that follow each other, as many as the platform takes at once."""
    held: Stretch | None = None
    size = 0
    for number, line in enumerate(lines, 1):
        try:
            at, found = place(line), entry(line)
        except NotALine as error:
            raise NotALine(f"line {number} is {error}") from None
        size += len(found)
        if held is not None:
            follows = at == Cursor(held.begin.journal_id, held.begin.sequence + len(held.entries))
            if follows and size <= MOST_BYTES and len(held.entries) < MOST_RECORDS:
                held.entries.append(found)
                continue
            yield held
        held, size = Stretch(at, [found]), len(found)
    if held is not None:
        yield held

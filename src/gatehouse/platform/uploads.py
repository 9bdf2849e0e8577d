"""What an outpost says and hands in, and what becomes of it, as values: between the routes and what stores it."""

from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from gatehouse.foundation.errors import Conflict


class SequenceGap(Conflict):
    """`expected_sequence` is the one that must come next."""

    code = "sequence_gap"

    def __init__(self, expected: int) -> None:
        super().__init__(f"sequence: the next record must be number {expected}.", expected_sequence=expected)


class Upload(msgspec.Struct, frozen=True):
    """`entries` are journal entries (`engine.outcome`) as JSON has them; the first is number `sequence` of a journal,
    which begins with 1."""

    journal_id: UUID
    sequence: int
    entries: list[Any]


class Rejected(NamedTuple):
    """A record that can never be stored. It counts as handed in, so that those behind it can be."""

    sequence: int
    reason: str


class Stored(msgspec.Struct, frozen=True):
    next_sequence: int
    #: of this upload, now
    stored: int = 0
    rejected: list[Rejected] = []


class Confirmed(msgspec.Struct, frozen=True):
    """What an outpost says that it has in force (`version` 0: nothing yet), and the certificate with which it says so.
    Times are Unix times."""

    tenant_id: UUID
    outpost_id: UUID
    version: int
    at: float
    serial: str
    ends: float

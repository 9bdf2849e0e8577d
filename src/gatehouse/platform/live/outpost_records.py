"""The uploads and confirmations of outposts, and their results. The routes and `platform.publishing.outposts` share
these types."""

from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from gatehouse.foundation.errors import Conflict


class SequenceGap(Conflict):
    """The upload does not continue the journal without a gap: 409. `expected_sequence` is the sequence number that must
    come next."""

    code = "sequence_gap"

    def __init__(self, expected: int) -> None:
        super().__init__(f"sequence: the next record must be number {expected}.", expected_sequence=expected)


class Upload(msgspec.Struct, frozen=True):
    """Records from the journal of an outpost. `entries` are journal entries (`engine.records.outcome`) as decoded JSON.
    The first of them has the number `sequence` in the journal. Numbers begin with 1."""

    journal_id: UUID
    sequence: int
    entries: list[Any]


class Rejected(NamedTuple):
    """A record that can never be stored. It is treated as uploaded, so that later records can be stored."""

    sequence: int
    reason: str


class Stored(msgspec.Struct, frozen=True):
    """The result of storing an upload."""

    next_sequence: int
    #: number of records stored by this upload
    stored: int = 0
    rejected: list[Rejected] = []


class OutpostConfirmation(msgspec.Struct, frozen=True):
    """An outpost's report of the active policy version (0 means none), with the serial number and the end
    of the certificate that it used. Times are Unix times."""

    tenant_id: UUID
    outpost_id: UUID
    version: int
    at: float
    serial: str
    ends: float

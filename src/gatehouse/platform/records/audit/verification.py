"""Verifies a part of the audit chain of the session's tenant (`GET /v1/audit/verification`).

The files of the archive are not read. The chain is checked from the end of the archive, which the sealed checkpoint of
the last file contains. `verify` checks the whole chain."""

from typing import Any, Final, NamedTuple

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.platform.changes.chain.links import GENESIS
from gatehouse.platform.changes.chain.table import AuditEventRow
from gatehouse.platform.records.archive import verifying
from gatehouse.platform.records.archive.storage.manifest import ArchiveFile
from gatehouse.platform.records.archive.verifying import DamagedFile
from gatehouse.platform.records.audit.checking import Break, check_event, gap_of
from gatehouse.platform.records.audit.schemas import AuditVerification, ChainPlace

#: Maximum number of places that are returned for one part of the chain.
MAX_PLACES: Final = 100
#: Number of events that are checked before the worker's other work continues.
_BATCH_EVENTS: Final = 500

_EVENTS: Final = AuditEventRow.__table__
_HEAD: Final = text(
    "SELECT sequence, hash, (SELECT coalesce(max(sequence), 0) FROM audit_events WHERE tenant_id = :tenant) AS newest"
    " FROM audit_heads WHERE tenant_id = :tenant"
)
_LAST_FILE: Final = text(
    f"SELECT {', '.join(ArchiveFile._fields)} FROM archive_files"  # noqa: S608
    " WHERE tenant_id = :tenant AND records = 'audit_events' AND state IN ('kept', 'gone')"
    " ORDER BY last_sequence DESC LIMIT 1"
)


class _Position(NamedTuple):
    """The sequence of an event, and its hash."""

    sequence: int
    hash: bytes


async def verification(session: AsyncSession, sealer: Sealer, after: int, limit: int) -> AuditVerification:
    """Check up to `limit` events after the sequence `after`."""
    tenant_id = session.info["tenant_id"]
    # The head is read before the events. Events up to the newest one do not change while others are appended.
    head, newest = await _head(session, tenant_id)
    archived, breaks = await _end_of_archive(session, sealer, tenant_id)
    last = start = archived if after <= archived.sequence else await _event_at(session, tenant_id, after) or archived
    gaps: list[ChainPlace] = []
    events = 0
    # Ties are included, so that two events with the same sequence are in the same part.
    part = (
        select(_EVENTS)
        .where(_EVENTS.c.tenant_id == tenant_id, _EVENTS.c.sequence > start.sequence, _EVENTS.c.sequence <= newest)
        .order_by(_EVENTS.c.sequence)
        .fetch(limit, with_ties=True)
        .subquery()
    )
    query = select(part).order_by(part.c.sequence, part.c.timestamp)
    async for rows in (await session.stream(query)).partitions(_BATCH_EVENTS):
        for row in rows:
            breaks.extend(check_event(row, last.sequence, last.hash))
            gap = gap_of(row)
            gaps += [] if gap is None else [_place(gap)]
            last = _Position(row.sequence, row.hash)
        events += len(rows)
    is_end = events < limit
    if is_end:
        breaks += _end_breaks(last, head)
    return AuditVerification(
        first_sequence=start.sequence + 1,
        last_sequence=last.sequence,
        events=events,
        archived_until=archived.sequence,
        head_sequence=head.sequence,
        head_hash=head.hash,
        breaks=[_place(place) for place in breaks[:MAX_PLACES]],
        break_count=len(breaks),
        gaps=gaps[:MAX_PLACES],
        next_after=None if is_end else last.sequence,
    )


async def _head(session: AsyncSession, tenant_id: Any) -> tuple[_Position, int]:
    """Return the head of the chain and the sequence of the newest event, both from one snapshot."""
    row = (await session.execute(_HEAD, {"tenant": tenant_id})).one_or_none()
    return (_Position(0, GENESIS), 0) if row is None else (_Position(row.sequence, row.hash), row.newest)


async def _end_of_archive(session: AsyncSession, sealer: Sealer, tenant_id: Any) -> tuple[_Position, list[Break]]:
    """Return the last archived event according to the sealed checkpoint of its file, and a break if the checkpoint is
    damaged."""
    row = (await session.execute(_LAST_FILE, {"tenant": tenant_id})).one_or_none()
    if row is None:
        return _Position(0, GENESIS), []
    file = ArchiveFile(*row)
    try:
        archived = verifying.chain_range(sealer, file)
    except DamagedFile as error:
        sequence = file.last_sequence or 0
        return _Position(sequence, b""), [Break(sequence, f"archived in {file.path}: {error}")]
    return _Position(archived.last, archived.hash), []


async def _event_at(session: AsyncSession, tenant_id: Any, sequence: int) -> _Position | None:
    """Return the event with this sequence, or else the previous event."""
    query = (
        select(_EVENTS.c.sequence, _EVENTS.c.hash)
        .where(_EVENTS.c.tenant_id == tenant_id, _EVENTS.c.sequence <= sequence)
        .order_by(_EVENTS.c.sequence.desc(), _EVENTS.c.timestamp.desc())
        .limit(1)
    )
    row = (await session.execute(query)).one_or_none()
    return None if row is None else _Position(*row)


def _end_breaks(last: _Position, head: _Position) -> list[Break]:
    if last.sequence < head.sequence:
        return [Break(last.sequence + 1, f"missing: the chain continues to {head.sequence}")]
    return (
        []
        if last == head
        else [Break(last.sequence, f"differs from the end that the chain's head names ({head.sequence})")]
    )


def _place(place: tuple[int, str]) -> ChainPlace:
    sequence, reason = place
    return ChainPlace(sequence=sequence, reason=reason)

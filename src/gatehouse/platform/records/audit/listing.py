"""The query for a page of the audit list."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.engine.records.audit_events import TOOL_CALL
from gatehouse.foundation.http.lists import OpenCursor
from gatehouse.platform.changes.chain.table import AuditEventRow
from gatehouse.platform.records.hot import visible_since

# Selects the range of the chain that can contain events of the period, by whole hours.
_SEQUENCE_RANGE: Final = text(
    "SELECT min(first_sequence) AS first, max(last_sequence) AS last FROM audit_hours WHERE tenant_id = :tenant"
    " AND hour >= COALESCE(date_trunc('hour', CAST(:since AS timestamptz), 'UTC'), '-infinity')"
    " AND hour < COALESCE(CAST(:until AS timestamptz), 'infinity')"
)


async def events_after(session: AsyncSession, opened: OpenCursor) -> Sequence[AuditEventRow]:
    """Return the events of the cursor's page, and one more event if there is one. Events older than the hot window are
    excluded."""
    tenant_id = session.info["tenant_id"]
    query = select(AuditEventRow).where(AuditEventRow.tenant_id == tenant_id)
    filters = dict(opened.filters)
    descending = filters.pop("order", "asc") == "desc"
    since, until = (datetime.fromisoformat(filters.pop(end)) if end in filters else None for end in ("from", "to"))
    hot = await visible_since(session)
    if hot is not None:
        since = hot if since is None else max(hot, since)
    if since is not None:
        query = query.where(AuditEventRow.timestamp >= since)
    if until is not None:
        query = query.where(AuditEventRow.timestamp < until)
    if since is not None or until is not None:
        values = {"tenant": tenant_id, "since": since, "until": until}
        sequences = (await session.execute(_SEQUENCE_RANGE, values)).one()
        if sequences.first is None:
            return []
        query = query.where(AuditEventRow.sequence >= sequences.first)
        # A period without an end includes events that arrive in the meantime.
        if until is not None:
            query = query.where(AuditEventRow.sequence <= sequences.last)
    if "sequence" in filters:
        query = query.where(AuditEventRow.sequence == int(filters.pop("sequence")))
    if "tool" in filters:
        # The condition on the action lets PostgreSQL use the index of actions.
        query = query.where(
            AuditEventRow.action == TOOL_CALL, AuditEventRow.details["tool"].astext == filters.pop("tool")
        )
    for name, value in filters.items():
        query = query.where(getattr(AuditEventRow, name) == value)
    return (await session.scalars(opened.apply(query, AuditEventRow.sequence, descending=descending))).all()

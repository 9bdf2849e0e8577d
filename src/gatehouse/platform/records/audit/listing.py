"""A page of the audit list."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.http.lists import OpenCursor
from gatehouse.platform.chain.table import AuditEventRow
from gatehouse.platform.records.hot import shown_since


async def events_after(session: AsyncSession, opened: OpenCursor) -> Sequence[AuditEventRow]:
    """The events that a cursor asks for, and one more if there is one. None past the hot window."""
    query = select(AuditEventRow).where(AuditEventRow.tenant_id == session.info["tenant_id"])
    hot = await shown_since(session)
    if hot is not None:
        query = query.where(AuditEventRow.timestamp >= hot)
    for name, value in opened.filters.items():
        if name == "from":
            query = query.where(AuditEventRow.timestamp >= datetime.fromisoformat(value))
        elif name == "to":
            query = query.where(AuditEventRow.timestamp < datetime.fromisoformat(value))
        else:
            query = query.where(getattr(AuditEventRow, name) == value)
    return (await session.scalars(opened.apply(query, AuditEventRow.sequence))).all()

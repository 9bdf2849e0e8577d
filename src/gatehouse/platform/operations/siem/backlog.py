"""The backlog of forwarding: a metric over all organizations, and a limit for the removal of audit events."""

from typing import Final

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.identity import TenantId
from gatehouse.platform.background.jobs import Tools

_UNSENT: Final = text("SELECT gatehouse_unsent_from(:tenant)")
_MEASURE: Final = text(
    "SELECT coalesce(sum(greatest(coalesce(h.sequence, 0) - c.sequence, 0)), 0)"
    # At most 100,000 events of each organization are counted, because this query runs every few seconds.
    " + coalesce(sum(q.waiting), 0), count(*) FILTER (WHERE c.failures > 0)"
    " FROM siem_cursors c JOIN siem_forwarding f ON f.tenant_id = c.tenant_id"
    " LEFT JOIN audit_heads h ON h.tenant_id = c.tenant_id"
    " CROSS JOIN LATERAL (SELECT count(*) AS waiting FROM (SELECT FROM siem_queue"
    " WHERE tenant_id = c.tenant_id LIMIT 100000) few) q"
)


class ForwardingBacklog(msgspec.Struct):
    """The last measurement of this process: the number of waiting events, and the number of receivers whose last batch
    failed."""

    events: float = 0.0
    failing: float = 0.0

    async def measure(self, tools: Tools) -> None:
        """Take a new measurement."""
        async with tools.database.service() as session:
            waiting, failing = (await session.execute(_MEASURE)).one()
        self.events, self.failing = float(waiting), float(failing)


async def unsent_from(session: AsyncSession, tenant_id: TenantId) -> int | None:
    """Return the sequence of the organization's first audit event that its receiver has not accepted, or None if
    nothing is forwarded. This event and all later events must not be removed."""
    sequence: int | None = (await session.execute(_UNSENT, {"tenant": tenant_id})).scalar_one()
    return sequence

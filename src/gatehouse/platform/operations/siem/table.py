"""The rows of receivers, and the queries of administration."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.locks import ScopedLock, acquire_scoped
from gatehouse.foundation.storage.rows import Row

_STATUS: Final = text(
    "SELECT EXISTS (SELECT FROM siem_forwarding f WHERE f.tenant_id = c.tenant_id) AS active,"
    " CASE WHEN s.enabled THEN greatest(coalesce(h.sequence, 0) - c.sequence, 0) + q.waiting ELSE 0 END AS backlog,"
    " CASE WHEN s.enabled THEN extract(epoch FROM now() - least(o.at, a.timestamp)) END AS lag_seconds,"
    " c.last_sent_at, c.last_error, c.last_failed_at, c.skipped FROM siem_cursors c"
    " JOIN siem_targets s ON s.tenant_id = c.tenant_id"
    " LEFT JOIN audit_heads h ON h.tenant_id = c.tenant_id"
    # The count is bounded, so that it stays fast however many events wait.
    " CROSS JOIN LATERAL (SELECT count(*) AS waiting FROM (SELECT FROM siem_queue"
    " WHERE tenant_id = c.tenant_id LIMIT 100000) few) q"
    " LEFT JOIN LATERAL (SELECT at FROM siem_queue WHERE tenant_id = c.tenant_id ORDER BY position LIMIT 1) o ON true"
    " LEFT JOIN LATERAL (SELECT timestamp FROM audit_events e WHERE e.tenant_id = c.tenant_id"
    " AND e.sequence > c.sequence ORDER BY e.sequence LIMIT 1) a ON true WHERE c.tenant_id = :tenant"
)
# The new claim invalidates the current turn, which then records nothing.
_BEGIN: Final = text(
    "INSERT INTO siem_cursors AS target (tenant_id, sequence) SELECT :tenant,"
    " coalesce((SELECT sequence FROM audit_heads WHERE tenant_id = :tenant), 0)"
    " ON CONFLICT (tenant_id) DO UPDATE SET sequence = excluded.sequence, due_at = now(), claims = target.claims + 1,"
    " failures = 0, skipped = 0, last_error = NULL, last_failed_at = NULL"
)
_TRY_NOW: Final = text("UPDATE siem_cursors SET due_at = now(), failures = 0 WHERE tenant_id = :tenant")
_EMPTY: Final = text("DELETE FROM siem_queue WHERE tenant_id = :tenant")


class SiemTargetRow(Row):
    __tablename__ = "siem_targets"

    tenant_id: Mapped[TenantId] = mapped_column(primary_key=True)
    type: Mapped[str]
    enabled: Mapped[bool]
    url: Mapped[str | None]
    host: Mapped[str | None]
    port: Mapped[int | None]
    ca_certificate: Mapped[str | None]
    index: Mapped[str | None]
    sealed_secret: Mapped[str | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


async def find(session: AsyncSession) -> SiemTargetRow | None:
    return await session.get(SiemTargetRow, session.info["tenant_id"])


async def find_for_change(session: AsyncSession) -> SiemTargetRow | None:
    """Return the row for a change. The lock serializes concurrent changes, including those that create the row."""
    await acquire_scoped(session, ScopedLock.SIEM, str(session.info["tenant_id"]))
    return await session.get(SiemTargetRow, session.info["tenant_id"], populate_existing=True)


async def status(session: AsyncSession) -> Mapping[str, Any]:
    """Return the state of forwarding. It is empty if nothing was ever forwarded."""
    row = (await session.execute(_STATUS, {"tenant": session.info["tenant_id"]})).first()
    return {} if row is None else row._asdict()


async def begin(session: AsyncSession, tenant_id: TenantId) -> None:
    """Start forwarding at the head of the chain. Earlier records are not sent."""
    await session.execute(_EMPTY, {"tenant": tenant_id})
    await session.execute(_BEGIN, {"tenant": tenant_id})


async def try_now(session: AsyncSession, tenant_id: TenantId) -> None:
    """Make the next attempt due now. Called when the receiver was changed."""
    await session.execute(_TRY_NOW, {"tenant": tenant_id})


async def end(session: AsyncSession, tenant_id: TenantId) -> None:
    """Empty the queue. Called when forwarding was disabled."""
    await session.execute(_EMPTY, {"tenant": tenant_id})

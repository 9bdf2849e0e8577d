"""The rows of the audit chain, and the queries that append to it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import LargeBinary, insert, select, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.rows import Big, Row
from gatehouse.platform.changes.chain.links import AuditEvent, link, personal_digest


class AuditHead(Row):
    __tablename__ = "audit_heads"

    tenant_id: Mapped[TenantId] = mapped_column(primary_key=True)
    sequence: Mapped[Big]
    hash: Mapped[bytes] = mapped_column(LargeBinary)


class AuditEventRow(Row):
    __tablename__ = "audit_events"

    tenant_id: Mapped[TenantId] = mapped_column(primary_key=True)
    sequence: Mapped[Big] = mapped_column(primary_key=True)
    timestamp: Mapped[datetime] = mapped_column(primary_key=True)
    id: Mapped[UUID]
    actor_id: Mapped[str | None]
    actor_type: Mapped[str]
    action: Mapped[str]
    resource_type: Mapped[str | None]
    resource_id: Mapped[str | None]
    request_id: Mapped[str | None]
    ip: Mapped[str | None]
    outcome: Mapped[str]
    target_provider: Mapped[str | None]
    target_model: Mapped[str | None]
    reason: Mapped[str | None]
    details: Mapped[dict[str, Any]] = mapped_column(JSONB)
    salt: Mapped[bytes | None] = mapped_column(LargeBinary)
    personal_digest: Mapped[bytes] = mapped_column(LargeBinary)
    prev_hash: Mapped[bytes] = mapped_column(LargeBinary)
    hash: Mapped[bytes] = mapped_column(LargeBinary)


async def lock_head(session: AsyncSession, tenant_id: TenantId) -> AuditHead:
    """Return the head of the tenant's chain, locked until the transaction ends."""
    await session.execute(upsert(AuditHead).values(tenant_id=tenant_id, sequence=0, hash=b"").on_conflict_do_nothing())
    head = await session.scalars(select(AuditHead).where(AuditHead.tenant_id == tenant_id).with_for_update())
    return head.one()


def chained(head: AuditHead, events: Sequence[AuditEvent]) -> list[dict[str, Any]]:
    """Return the events as rows of the chain after `head`. Advances `head` to the last event."""
    rows = []
    for event in events:
        personal = personal_digest(event)
        previous = head.hash
        head.sequence += 1
        head.hash = link(previous, head.tenant_id, head.sequence, event, personal)
        rows.append(
            {
                "tenant_id": head.tenant_id,
                "sequence": head.sequence,
                "prev_hash": previous,
                "hash": head.hash,
                "personal_digest": personal,
                **{name: getattr(event, name) for name in AuditEvent.__struct_fields__},
            }
        )
    return rows


async def append(session: AsyncSession, tenant_id: TenantId, events: Sequence[AuditEvent]) -> None:
    """Append events to the tenant's chain in this transaction. Call this function last, because the chain is locked
    until the commit."""
    head = await lock_head(session, tenant_id)
    rows = chained(head, events)
    await session.execute(insert(AuditEventRow), rows)
    await session.execute(
        update(AuditHead).where(AuditHead.tenant_id == tenant_id).values(sequence=head.sequence, hash=head.hash)
    )

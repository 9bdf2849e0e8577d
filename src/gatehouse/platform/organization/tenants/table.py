"""Rows and queries of tenants."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Text, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.settings import EgressPolicy
from gatehouse.foundation.storage.rows import Big, Row


class TenantRecord(Row):
    __tablename__ = "tenants"

    id: Mapped[TenantId] = mapped_column(primary_key=True)
    slug: Mapped[str]
    name: Mapped[str]
    plan: Mapped[str]
    custom_rate_limit_rpm: Mapped[int | None]
    scan_rate_limit_rpm: Mapped[int | None]
    monthly_request_limit: Mapped[Big | None]
    timezone: Mapped[str]
    feature_flags: Mapped[dict[str, bool]] = mapped_column(JSONB)
    contact_email: Mapped[str | None]
    session_policy: Mapped[dict[str, Any]] = mapped_column(JSONB)
    mfa_policy: Mapped[dict[str, Any]] = mapped_column(JSONB)
    mfa_policy_changed_at: Mapped[datetime | None]
    ip_allowlist: Mapped[dict[str, Any]] = mapped_column(JSONB)
    retention_policy: Mapped[dict[str, Any]] = mapped_column(JSONB)
    request_fields: Mapped[dict[str, Any]] = mapped_column(JSONB)
    dlp_sampling: Mapped[dict[str, Any]] = mapped_column(JSONB)
    egress_policy: Mapped[EgressPolicy | None] = mapped_column(Text)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    deleted_at: Mapped[datetime | None]


async def egress_policy_of(session: AsyncSession, tenant_id: UUID) -> EgressPolicy | None:
    """Return the egress policy for the organization's own providers. None means that the platform's setting
    `EGRESS_POLICY` applies."""
    query = select(TenantRecord.egress_policy).where(TenantRecord.id == tenant_id)
    return (await session.execute(query)).scalar_one()


async def ids_by_slug(session: AsyncSession) -> dict[str, TenantId]:
    """Return the ids of all tenants by their slugs, for the command line. Needs the service role."""
    query = select(TenantRecord.slug, TenantRecord.id).where(TenantRecord.deleted_at.is_(None))
    return {row.slug: row.id for row in await session.execute(query.order_by(TenantRecord.slug))}


async def lock_tenant(session: AsyncSession, tenant_id: UUID) -> TenantRecord | None:
    """Return the tenant and lock it for a change, or return None if it was deleted. Row-level security hides
    all other tenants, except from the transaction of an operator."""
    query = select(TenantRecord).where(TenantRecord.id == tenant_id, TenantRecord.deleted_at.is_(None))
    # With this lock, other transactions can still add rows that refer to the tenant.
    return (await session.scalars(query.with_for_update(key_share=True))).one_or_none()

"""The rows of organizations."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.portal.identity import OrgId
from gatehouse.portal.rows import PortalRow


class OrganizationRow(PortalRow):
    __tablename__ = "organizations"

    id: Mapped[OrgId] = mapped_column(primary_key=True)
    name: Mapped[str]
    slug: Mapped[str]
    plan_tier: Mapped[str]
    status: Mapped[str]
    provisioning_status: Mapped[str]
    contact_email: Mapped[str | None]
    billing_email: Mapped[str | None]
    tenant_id: Mapped[UUID | None]
    key_prefix: Mapped[str]
    key_digest: Mapped[bytes] = mapped_column(LargeBinary)
    tokens_revoked_before: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    cancelled_at: Mapped[datetime | None]

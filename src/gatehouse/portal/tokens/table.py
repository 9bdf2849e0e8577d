"""Rows of tokens that are refused by name."""

from datetime import datetime

from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.identity import TenantId
from gatehouse.portal.rows import OrgRow


class RevokedTokenRow(OrgRow):
    __tablename__ = "revoked_tokens"

    org_id: Mapped[TenantId] = mapped_column(primary_key=True)
    jti: Mapped[str] = mapped_column(primary_key=True)
    reason: Mapped[str]
    revoked_at: Mapped[datetime]
    expires_at: Mapped[datetime]

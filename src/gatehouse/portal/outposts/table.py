"""The rows of outposts and certificates, and named queries."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Select, func, select, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.clock import utc_now
from gatehouse.portal.outposts.status import Status, status
from gatehouse.portal.rows import OrgRow


class OutpostRow(OrgRow):
    __tablename__ = "outposts"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    outpost_name: Mapped[str]
    region: Mapped[str]
    deployment_env: Mapped[str]
    cert_serial: Mapped[str]
    cert_issued_at: Mapped[datetime]
    cert_expires_at: Mapped[datetime]
    last_seen_at: Mapped[datetime | None]
    reported: Mapped[dict[str, Any]] = mapped_column(JSONB)
    created_at: Mapped[datetime]
    #: time of the last change; a heartbeat does not change it
    updated_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]

    @property
    def status(self) -> Status:
        return status(self.last_seen_at or self.created_at, self.revoked_at)


class CertificateRow(OrgRow):
    __tablename__ = "outpost_certificates"

    serial: Mapped[str] = mapped_column(primary_key=True)
    outpost_id: Mapped[UUID]
    authority_id: Mapped[UUID]
    issued_at: Mapped[datetime]
    good_until: Mapped[datetime]


def all_outposts() -> Select[OutpostRow]:
    """Returns the query of the organization's outposts, oldest first."""
    return select(OutpostRow).order_by(OutpostRow.created_at, OutpostRow.id)


async def count_outposts(session: AsyncSession) -> int:
    """Returns the number of the organization's outposts that are not revoked."""
    query = select(func.count()).select_from(OutpostRow).where(OutpostRow.revoked_at.is_(None))
    return (await session.execute(query)).scalar_one()


async def limit_certificates(session: AsyncSession, outpost_id: UUID, good_until: datetime) -> None:
    """Limits the validity of the outpost's certificates to `good_until`."""
    await session.execute(
        update(CertificateRow)
        .where(CertificateRow.outpost_id == outpost_id, CertificateRow.good_until > good_until)
        .values(good_until=good_until)
    )


async def record_heartbeat(session: AsyncSession, outpost_id: UUID, reported: dict[str, Any]) -> OutpostRow:
    """Stores the outpost's report and the time of its heartbeat."""
    query = update(OutpostRow).where(OutpostRow.id == outpost_id).values(last_seen_at=utc_now(), reported=reported)
    return (await session.scalars(query.returning(OutpostRow))).one()

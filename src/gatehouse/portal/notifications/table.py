"""The rows of notifications, and named queries."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import OffsetWindow
from gatehouse.foundation.ids import new_id
from gatehouse.portal.identity import OrgId
from gatehouse.portal.notifications.kinds import SEVERITIES, Kind
from gatehouse.portal.rows import OrgRow

_RAISE: Final = text(
    "INSERT INTO notifications (id, org_id, type, severity, message, subject_id)"
    " VALUES (:id, :org, :kind, :severity, :message, :subject)"
    " ON CONFLICT (org_id, type, subject_id) WHERE resolved_at IS NULL DO UPDATE SET message = excluded.message"
)
_RESOLVE: Final = text(
    "UPDATE notifications SET resolved_at = now()"
    " WHERE org_id = :org AND type = :kind AND subject_id = :subject AND resolved_at IS NULL"
)


class NotificationRow(OrgRow):
    __tablename__ = "notifications"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    type: Mapped[str]
    severity: Mapped[str]
    message: Mapped[str]
    subject_id: Mapped[UUID]
    created_at: Mapped[datetime]
    resolved_at: Mapped[datetime | None]


async def notify(session: AsyncSession, org_id: OrgId, kind: Kind, subject_id: UUID, message: str) -> None:
    """Opens a notification, or replaces the message of the open one about the same subject."""
    values = {"org": org_id, "kind": kind, "subject": subject_id, "message": message}
    await session.execute(_RAISE, {**values, "id": new_id(), "severity": SEVERITIES[kind]})


async def resolve(session: AsyncSession, org_id: OrgId, kind: Kind, subject_id: UUID) -> None:
    await session.execute(_RESOLVE, {"org": org_id, "kind": kind, "subject": subject_id})


async def listed(
    session: AsyncSession, window: OffsetWindow, *, resolved: bool | None
) -> tuple[Sequence[NotificationRow], int]:
    """Returns the organization's notifications, newest first, and their total number."""
    query = select(NotificationRow)
    if resolved is not None:
        resolved_at = NotificationRow.resolved_at
        query = query.where(resolved_at.is_not(None) if resolved else resolved_at.is_(None))
    total = await session.scalar(select(func.count()).select_from(query.subquery()))
    ordered = query.order_by(NotificationRow.created_at.desc(), NotificationRow.id.desc())
    return (await session.scalars(window.apply(ordered))).all(), total or 0

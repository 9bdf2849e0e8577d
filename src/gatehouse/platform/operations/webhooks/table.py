"""Rows and queries of webhooks."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ARRAY, BigInteger, Identity, Text, func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.storage.rows import TenantRow

#: Number of deliveries that are shown with a webhook.
MAX_SHOWN_DELIVERIES: Final = 20


class WebhookRow(TenantRow):
    __tablename__ = "webhooks"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    url: Mapped[str]
    events: Mapped[list[str]] = mapped_column(ARRAY(Text))
    sealed_secret: Mapped[str]
    enabled: Mapped[bool]
    include_logged: Mapped[bool]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class DeliveryRow(TenantRow):
    __tablename__ = "webhook_deliveries"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(BigInteger, Identity(always=True))
    webhook_id: Mapped[UUID]
    event_type: Mapped[str]
    payload: Mapped[dict[str, Any]]
    status: Mapped[str]
    attempts: Mapped[int]
    next_attempt_at: Mapped[datetime | None]
    dead_at: Mapped[datetime | None]
    response_status: Mapped[int | None]
    response_body: Mapped[str | None]
    last_error: Mapped[str | None]
    last_attempt_at: Mapped[datetime | None]
    delivered_at: Mapped[datetime | None]
    created_at: Mapped[datetime]


async def all_webhooks(session: AsyncSession) -> Sequence[WebhookRow]:
    """Return all webhooks, newest first."""
    query = select(WebhookRow).order_by(WebhookRow.created_at.desc(), WebhookRow.id.desc())
    return (await session.scalars(query)).all()


async def count_webhooks(session: AsyncSession) -> int:
    return (await session.execute(select(func.count()).select_from(WebhookRow))).scalar_one()


async def find_webhook(session: AsyncSession, webhook_id: UUID) -> WebhookRow | None:
    return (await session.scalars(select(WebhookRow).where(WebhookRow.id == webhook_id))).one_or_none()


async def last_deliveries(session: AsyncSession, webhook_id: UUID) -> Sequence[DeliveryRow]:
    """Return the last `MAX_SHOWN_DELIVERIES` deliveries, newest first."""
    query = (
        select(DeliveryRow)
        .where(DeliveryRow.webhook_id == webhook_id)
        .order_by(DeliveryRow.position.desc())
        .limit(MAX_SHOWN_DELIVERIES)
    )
    return (await session.scalars(query)).all()

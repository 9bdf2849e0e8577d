"""Rows and queries of webhooks."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ARRAY, BigInteger, Identity, Select, Text, any_, func, literal, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import containing, sorted_by
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


def list_query(*, search: str | None, enabled: bool | None, event: str | None, sort: str) -> Select[WebhookRow]:
    """Return the query of webhooks by part of name or URL, state and event."""
    query = containing(select(WebhookRow), search, WebhookRow.name, WebhookRow.url)
    if enabled is not None:
        query = query.where(WebhookRow.enabled.is_(enabled))
    if event is not None:
        query = query.where(literal(event) == any_(WebhookRow.events))
    columns = {"name": WebhookRow.name, "created_at": WebhookRow.created_at}
    return sorted_by(query, sort, columns, unique=WebhookRow.id)


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


async def find_delivery(session: AsyncSession, webhook_id: UUID, delivery_id: UUID | None) -> DeliveryRow | None:
    """Return a delivery of the webhook, locked."""
    query = (
        select(DeliveryRow).where(DeliveryRow.webhook_id == webhook_id, DeliveryRow.id == delivery_id).with_for_update()
    )
    return (await session.scalars(query)).one_or_none()


async def requeue(session: AsyncSession, delivery_id: UUID) -> DeliveryRow:
    """Reset a delivery to its first attempt, after the deliveries that wait now. Its id and payload stay the same."""
    changed = (
        update(DeliveryRow)
        .where(DeliveryRow.id == delivery_id)
        .values(
            status="pending",
            position=text("DEFAULT"),
            attempts=0,
            next_attempt_at=func.now(),
            dead_at=None,
            response_status=None,
            response_body=None,
            last_error=None,
            last_attempt_at=None,
            delivered_at=None,
        )
        .returning(DeliveryRow)
        .execution_options(synchronize_session=False, populate_existing=True)
    )
    return (await session.scalars(changed)).one()

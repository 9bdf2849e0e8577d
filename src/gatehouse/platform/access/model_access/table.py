"""The table of model access rules, and named queries."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.storage.rows import TenantRow


class ModelAccessRow(TenantRow):
    """A rule. `model_id` is `provider/model-id`."""

    __tablename__ = "group_model_access"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    group_id: Mapped[UUID]
    model_id: Mapped[str]
    access_type: Mapped[str]
    created_at: Mapped[datetime]


_IN_CATALOG = text("SELECT 1 FROM model_configs WHERE provider = :provider AND model_id = :model")


async def rules(session: AsyncSession, group_id: UUID | None = None) -> Sequence[ModelAccessRow]:
    """Return the rules of one group, sorted by model, or of all groups."""
    query = select(ModelAccessRow).order_by(ModelAccessRow.group_id, ModelAccessRow.model_id)
    if group_id is not None:
        query = query.where(ModelAccessRow.group_id == group_id)
    return (await session.scalars(query)).all()


async def find_rule(session: AsyncSession, group_id: UUID, model: str) -> ModelAccessRow | None:
    query = select(ModelAccessRow).where(ModelAccessRow.group_id == group_id, ModelAccessRow.model_id == model)
    return (await session.scalars(query)).one_or_none()


async def count_rules(session: AsyncSession) -> int:
    return (await session.execute(select(func.count()).select_from(ModelAccessRow))).scalar_one()


async def in_catalog(session: AsyncSession, provider: str, model_id: str) -> bool:
    """Return whether the catalog contains the model, active or not."""
    result = await session.execute(_IN_CATALOG, {"provider": provider, "model": model_id})
    return result.first() is not None

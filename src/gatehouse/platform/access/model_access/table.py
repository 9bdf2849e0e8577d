"""The table of model access rules, and named queries."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Select, Text, Uuid, any_, column, func, literal, select, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import OffsetWindow
from gatehouse.foundation.storage.rows import TenantRow


class ModelAccessRow(TenantRow):
    """A rule. `model_id` is `provider/model-id`."""

    __tablename__ = "group_model_access"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    group_id: Mapped[UUID]
    model_id: Mapped[str]
    access_type: Mapped[str]
    created_at: Mapped[datetime]

    @property
    def updated_at(self) -> datetime:
        """The version of the rule for `If-Match`. A rule is never changed, only replaced by a new one."""
        return self.created_at


_IN_CATALOG = text("SELECT 1 FROM model_configs WHERE provider = :provider AND model_id = :model")


#: The models of the catalog, with `provider/model-id` as `model_id`. With `:ruled`, only models that are restricted or
#: that a rule names, including models that are missing in the catalog.
_MODELS = (
    text("""
SELECT model_id, display_name, access FROM (
  SELECT provider || '/' || model_id AS model_id, display_name, access FROM model_configs
  UNION ALL
  SELECT name, NULL, NULL FROM (
    SELECT model_id AS name FROM group_model_access EXCEPT SELECT provider || '/' || model_id FROM model_configs
  ) AS missing WHERE :ruled
) AS models
WHERE (NOT :ruled OR access = 'restricted' OR model_id IN (SELECT model_id FROM group_model_access))
  AND (position(lower(:search) IN lower(model_id)) > 0 OR position(lower(:search) IN lower(display_name)) > 0)
""")
    .columns(column("model_id", Text), column("display_name", Text), column("access", Text))
    .subquery("listed")
)


async def page_of_models(
    session: AsyncSession, window: OffsetWindow, *, search: str, ruled: bool
) -> tuple[list[dict[str, Any]], int]:
    """Return a page of models, sorted by name, and the number of all matching models. `search` is a part of the name or
    of the display name."""
    filters = {"search": search, "ruled": ruled}
    total = (await session.execute(select(func.count()).select_from(_MODELS), filters)).scalar_one()
    page = await session.execute(window.apply(select(_MODELS).order_by(_MODELS.c.model_id)), filters)
    return [dict(row) for row in page.mappings()], total


async def rules_of_models(
    session: AsyncSession, models: Sequence[str], group_ids: Sequence[UUID]
) -> Sequence[ModelAccessRow]:
    query = select(ModelAccessRow).where(
        ModelAccessRow.group_id == any_(literal(list(group_ids), ARRAY(Uuid))),
        ModelAccessRow.model_id == any_(literal(list(models), ARRAY(Text))),
    )
    return (await session.scalars(query.order_by(ModelAccessRow.group_id, ModelAccessRow.model_id))).all()


def rules(group_id: UUID | None = None) -> Select[ModelAccessRow]:
    """Return the query of the rules of one group, or of all groups, sorted by group and model."""
    query = select(ModelAccessRow).order_by(ModelAccessRow.group_id, ModelAccessRow.model_id)
    return query if group_id is None else query.where(ModelAccessRow.group_id == group_id)


async def find_rule(session: AsyncSession, group_id: UUID, model: str) -> ModelAccessRow | None:
    query = select(ModelAccessRow).where(ModelAccessRow.group_id == group_id, ModelAccessRow.model_id == model)
    return (await session.scalars(query)).one_or_none()


async def count_rules(session: AsyncSession) -> int:
    return (await session.execute(select(func.count()).select_from(ModelAccessRow))).scalar_one()


async def in_catalog(session: AsyncSession, provider: str, model_id: str) -> bool:
    """Return whether the catalog contains the model, active or not."""
    result = await session.execute(_IN_CATALOG, {"provider": provider, "model": model_id})
    return result.first() is not None

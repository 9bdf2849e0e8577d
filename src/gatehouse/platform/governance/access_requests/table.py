"""Rows and queries of access requests."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlalchemy import BigInteger, ColumnElement, Select, delete, func, literal, or_, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import Window, count_query, sorted_by
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.access.groups.table import GroupRow, MemberRow
from gatehouse.platform.access.model_access.table import ModelAccessRow
from gatehouse.platform.routing.budgets.table import BudgetRow
from gatehouse.platform.routing.model_catalog.table import ModelConfigRow


class AccessRequestRow(TenantRow):
    """A request. `granted` has the fields of `schemas.Granted`."""

    __tablename__ = "access_requests"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    user_id: Mapped[UUID]
    kind: Mapped[str]
    model: Mapped[str | None]
    period: Mapped[str | None]
    limit_usd: Mapped[Decimal | None]
    limit_requests: Mapped[int | None] = mapped_column(BigInteger)
    limit_tokens: Mapped[int | None] = mapped_column(BigInteger)
    reason: Mapped[str]
    status: Mapped[str]
    granted: Mapped[dict[str, Any] | None]
    created_at: Mapped[datetime]
    decided_at: Mapped[datetime | None]
    decided_by: Mapped[str | None]
    decision_reason: Mapped[str | None]


_SORT_COLUMNS: Final = {"created_at": AccessRequestRow.created_at, "limit_usd": AccessRequestRow.limit_usd}
_full_name: Final = ModelConfigRow.provider + "/" + ModelConfigRow.model_id


async def page_of_requests(
    session: AsyncSession, window: Window, *, status: str | None, sort: str, user_id: UUID | None = None
) -> tuple[Sequence[AccessRequestRow], int]:
    """Return a page of requests and the total count. With `user_id`, only requests of this user. `sort` is a name of
    `_SORT_COLUMNS`, with a leading minus for descending order; requests without this limit come last."""
    query = select(AccessRequestRow)
    if status is not None:
        query = query.where(AccessRequestRow.status == status)
    if user_id is not None:
        query = query.where(AccessRequestRow.user_id == user_id)
    total = (await session.execute(count_query(query))).scalar_one()
    ordered = sorted_by(query, sort, _SORT_COLUMNS, unique=AccessRequestRow.id)
    return (await session.scalars(window.apply(ordered))).all(), total


async def count_pending(session: AsyncSession, user_id: UUID | None = None) -> int:
    """Return the number of pending requests of the organization, or of one user."""
    query = select(func.count()).where(AccessRequestRow.status == "pending")
    if user_id is not None:
        query = query.where(AccessRequestRow.user_id == user_id)
    return (await session.execute(query)).scalar_one()


async def has_pending(session: AsyncSession, user_id: UUID, *, model: str | None, period: str | None) -> bool:
    """Return whether the user has a pending request for the model, or for the period."""
    subject = AccessRequestRow.period == period if model is None else AccessRequestRow.model == model
    query = select(AccessRequestRow.id).where(*_pending_of(user_id), subject)
    return (await session.execute(query)).first() is not None


async def delete_oldest_final(session: AsyncSession, user_id: UUID, *, keep: int) -> None:
    """Delete the user's final requests, except the newest `keep`."""
    final = select(AccessRequestRow.id).where(AccessRequestRow.user_id == user_id, AccessRequestRow.status != "pending")
    oldest = final.order_by(AccessRequestRow.created_at.desc(), AccessRequestRow.id.desc()).offset(keep)
    await session.execute(delete(AccessRequestRow).where(AccessRequestRow.id.in_(oldest)))


def requestable_models(user_id: UUID, search: str | None = None) -> Select[ModelConfigRow]:
    """Return the query for the models that the user can request, by name. They are active and restricted, no group of
    the user has a rule for them, and the user has no pending request for them. `search` is a part of `display_name` or
    `provider/model-id`."""
    query = select(ModelConfigRow).where(
        ModelConfigRow.is_active,
        ModelConfigRow.access == "restricted",
        ~_rules(user_id).where(ModelAccessRow.model_id == _full_name).exists(),
        ~select(literal(1)).where(*_pending_of(user_id), AccessRequestRow.model == _full_name).exists(),
    )
    if search:
        query = query.where(
            or_(
                ModelConfigRow.display_name.icontains(search, autoescape=True),
                _full_name.icontains(search, autoescape=True),
            )
        )
    return query.order_by(ModelConfigRow.provider, ModelConfigRow.model_id)


async def find_catalog_entry(session: AsyncSession, model: str) -> ModelConfigRow | None:
    """Return the active entry of the catalog with the name `provider/model-id`."""
    provider, _, model_id = model.partition("/")
    query = select(ModelConfigRow).where(
        ModelConfigRow.provider == provider, ModelConfigRow.model_id == model_id, ModelConfigRow.is_active
    )
    return (await session.scalars(query)).one_or_none()


async def is_requestable(session: AsyncSession, user_id: UUID, model: str) -> bool:
    return (await session.execute(requestable_models(user_id).where(_full_name == model))).first() is not None


async def find_denying_group(session: AsyncSession, user_id: UUID, model: str) -> str | None:
    """Return the name of a group of the user that denies the model."""
    query = (
        _rules(user_id)
        .with_only_columns(GroupRow.name)
        .join(GroupRow, GroupRow.id == ModelAccessRow.group_id)
        .where(ModelAccessRow.model_id == model, ModelAccessRow.access_type == "DENY")
        .order_by(GroupRow.name)
    )
    return (await session.scalars(query)).first()


async def lock_group(session: AsyncSession, condition: ColumnElement[bool]) -> GroupRow | None:
    """Return the only group that meets the condition, locked."""
    return (await session.scalars(select(GroupRow).where(condition).with_for_update())).one_or_none()


async def find_budget(session: AsyncSession, user_id: UUID, period: str, *, lock: bool = False) -> BudgetRow | None:
    """Return the user's own budget of the period. `lock` locks the row."""
    query = select(BudgetRow).where(
        BudgetRow.scope_type == "user", BudgetRow.scope_id == user_id, BudgetRow.period == period
    )
    return (await session.scalars(query.with_for_update() if lock else query)).one_or_none()


def _pending_of(user_id: UUID) -> tuple[ColumnElement[bool], ...]:
    return (AccessRequestRow.user_id == user_id, AccessRequestRow.status == "pending")


def _rules(user_id: UUID) -> Select[Any]:
    """Return the query for the rules of the user's groups."""
    return (
        select(literal(1))
        .select_from(ModelAccessRow)
        .join(MemberRow, MemberRow.group_id == ModelAccessRow.group_id)
        .where(MemberRow.user_id == user_id)
    )

"""Rows and queries of the catalog."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Select, or_, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import Window, containing, count_query, sorted_by
from gatehouse.foundation.storage.locks import ScopedLock, acquire_scoped
from gatehouse.foundation.storage.rows import TenantRow

#: The columns of prices.
PRICES: Final = (
    "cost_per_input_token", "cost_per_output_token", "cost_per_cached_input_token", "cost_per_cache_write_token",
)  # fmt: skip


class ModelConfigRow(TenantRow):
    __tablename__ = "model_configs"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    provider: Mapped[str]
    model_id: Mapped[str]
    display_name: Mapped[str | None]
    is_active: Mapped[bool]
    is_default: Mapped[bool]
    access: Mapped[str]
    context_window: Mapped[int | None]
    max_output_tokens: Mapped[int | None]
    capabilities: Mapped[dict[str, Any]]
    cost_per_input_token: Mapped[Decimal | None]
    cost_per_output_token: Mapped[Decimal | None]
    cost_per_cached_input_token: Mapped[Decimal | None]
    cost_per_cache_write_token: Mapped[Decimal | None]
    #: the source of the prices and the day of its data; None: an administrator set the prices, or there are none
    price_source: Mapped[str | None]
    price_recorded_on: Mapped[date | None]
    kill_switch_disabled_at: Mapped[datetime | None]
    disabled_reason: Mapped[str | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    @property
    def has_own_prices(self) -> bool:
        """Whether an administrator set the prices."""
        return self.price_source is None and any(getattr(self, name) is not None for name in PRICES)


@dataclass(frozen=True, slots=True)
class CatalogFilters:
    """Filters of the list. None matches every value. `search` is a part of `display_name` or `model_id`, ignoring
    case."""

    provider: str | None = None
    is_active: bool | None = None
    search: str | None = None


async def page_of_models(
    session: AsyncSession, window: Window, filters: CatalogFilters, sort: str
) -> tuple[Sequence[ModelConfigRow], int]:
    """Return a page of entries, and the total number."""
    query = _filtered(filters)
    total = (await session.execute(count_query(query))).scalar_one()
    columns = {
        "model_id": ModelConfigRow.model_id,
        "provider": (ModelConfigRow.provider, ModelConfigRow.model_id),
        "context_window": ModelConfigRow.context_window,
        "cost_per_input_token": ModelConfigRow.cost_per_input_token,
        "cost_per_output_token": ModelConfigRow.cost_per_output_token,
        "created_at": ModelConfigRow.created_at,
    }
    ordered = sorted_by(query, sort, columns, unique=ModelConfigRow.id)
    return (await session.scalars(window.apply(ordered))).all(), total


def _filtered(filters: CatalogFilters) -> Select[ModelConfigRow]:
    query = select(ModelConfigRow)
    if filters.provider is not None:
        query = query.where(ModelConfigRow.provider == filters.provider)
    if filters.is_active is not None:
        query = query.where(ModelConfigRow.is_active == filters.is_active)
    return containing(query, filters.search, ModelConfigRow.display_name, ModelConfigRow.model_id)


async def models_by_id(session: AsyncSession, ids: Sequence[UUID]) -> Sequence[ModelConfigRow]:
    """Return the entries that exist, locked in the order of ids so that changes cannot deadlock."""
    query = select(ModelConfigRow).where(ModelConfigRow.id.in_(ids)).order_by(ModelConfigRow.id).with_for_update()
    return (await session.scalars(query)).all()


async def models_of(session: AsyncSession, provider: str) -> Sequence[ModelConfigRow]:
    """Return a provider's entries, locked for a change."""
    query = select(ModelConfigRow).where(ModelConfigRow.provider == provider)
    return (await session.scalars(query.order_by(ModelConfigRow.id).with_for_update())).all()


async def all_models(session: AsyncSession) -> Sequence[ModelConfigRow]:
    """Return all entries, locked for a change in the order of ids so that changes cannot deadlock."""
    return (await session.scalars(select(ModelConfigRow).order_by(ModelConfigRow.id).with_for_update())).all()


async def catalog_keys(session: AsyncSession, pairs: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return those of the pairs of provider and model id that are in the catalog."""
    existing: set[tuple[str, str]] = set()
    for start in range(0, len(pairs), 1_000):
        batch = pairs[start : start + 1_000]
        query = select(ModelConfigRow.provider, ModelConfigRow.model_id).where(
            tuple_(ModelConfigRow.provider, ModelConfigRow.model_id).in_(batch)
        )
        existing.update((row.provider, row.model_id) for row in await session.execute(query))
    return existing


async def find_model(session: AsyncSession, model_config_id: UUID) -> ModelConfigRow | None:
    """Return an entry, or None. The entry is not locked. Use `lock_model` to lock it without a deadlock."""
    return await session.get(ModelConfigRow, model_config_id)


async def lock_model(session: AsyncSession, row: ModelConfigRow, *, as_default: bool) -> bool:
    """Lock an entry and read it again. With `as_default`, lock the current default too, in the order of ids so that
    changes cannot deadlock. Returns False if the entry no longer exists."""
    condition = ModelConfigRow.id == row.id
    if as_default:
        condition = or_(condition, ModelConfigRow.is_default)
    query = select(ModelConfigRow).where(condition).order_by(ModelConfigRow.id).with_for_update()
    rows = (await session.scalars(query.execution_options(populate_existing=True))).all()
    return row in rows


async def lock_default(session: AsyncSession) -> None:
    """Serialize changes of the default. Call it before any row is locked, so that changes cannot deadlock."""
    await acquire_scoped(session, ScopedLock.DEFAULT_MODEL, str(session.info["tenant_id"]))


async def clear_default(session: AsyncSession, *, keep: UUID) -> None:
    """Clear `is_default` of every entry of the tenant except `keep`. Call `lock_default` first."""
    await session.execute(
        update(ModelConfigRow)
        .where(ModelConfigRow.is_default, ModelConfigRow.id != keep)
        .values(is_default=False)
        .execution_options(synchronize_session="fetch")
    )

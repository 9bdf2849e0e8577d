"""The catalog's rows and named queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import Select, or_, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import Window, counted
from gatehouse.foundation.storage.locks import ScopedLock, acquire_scoped
from gatehouse.foundation.storage.rows import TenantRow


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
    kill_switch_disabled_at: Mapped[datetime | None]
    disabled_reason: Mapped[str | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


@dataclass(frozen=True, slots=True)
class Filters:
    """None: whatever it is. `search` is a part of `display_name` or `model_id`, whatever the case."""

    provider: str | None = None
    is_active: bool | None = None
    search: str | None = None


async def page_of_models(
    session: AsyncSession, window: Window, filters: Filters
) -> tuple[Sequence[ModelConfigRow], int]:
    """The newest first, and how many there are in all."""
    query = _filtered(filters)
    total = (await session.execute(counted(query))).scalar_one()
    ordered = query.order_by(ModelConfigRow.created_at.desc(), ModelConfigRow.id.desc())
    return (await session.scalars(window.apply(ordered))).all(), total


def _filtered(filters: Filters) -> Select[ModelConfigRow]:
    query = select(ModelConfigRow)
    if filters.provider is not None:
        query = query.where(ModelConfigRow.provider == filters.provider)
    if filters.is_active is not None:
        query = query.where(ModelConfigRow.is_active == filters.is_active)
    if filters.search:
        query = query.where(
            or_(
                ModelConfigRow.display_name.icontains(filters.search, autoescape=True),
                ModelConfigRow.model_id.icontains(filters.search, autoescape=True),
            )
        )
    return query


async def models_by_id(session: AsyncSession, ids: Sequence[UUID]) -> Sequence[ModelConfigRow]:
    """Those that there are, in one order whoever asks, locked for a change."""
    query = select(ModelConfigRow).where(ModelConfigRow.id.in_(ids)).order_by(ModelConfigRow.id).with_for_update()
    return (await session.scalars(query)).all()


async def models_of(session: AsyncSession, provider: str) -> Sequence[ModelConfigRow]:
    """A provider's, locked for a change."""
    query = select(ModelConfigRow).where(ModelConfigRow.provider == provider)
    return (await session.scalars(query.order_by(ModelConfigRow.id).with_for_update())).all()


async def known_pairs(session: AsyncSession, pairs: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Which pairs of provider and model id the catalog has."""
    found: set[tuple[str, str]] = set()
    for start in range(0, len(pairs), 1_000):
        part = pairs[start : start + 1_000]
        query = select(ModelConfigRow.provider, ModelConfigRow.model_id).where(
            tuple_(ModelConfigRow.provider, ModelConfigRow.model_id).in_(part)
        )
        found.update((row.provider, row.model_id) for row in await session.execute(query))
    return found


async def find_model(session: AsyncSession, model_config_id: UUID) -> ModelConfigRow | None:
    """Not locked: `lock_model` does that, in the order that keeps changes from waiting for each other in a ring."""
    return await session.get(ModelConfigRow, model_config_id)


async def lock_model(session: AsyncSession, row: ModelConfigRow, *, as_default: bool) -> bool:
    """Locks an entry and reads it again; where it becomes the default, the present default with it, in the order of
    ids as everyone locks entries. False where it is gone."""
    wanted = ModelConfigRow.id == row.id
    if as_default:
        wanted = or_(wanted, ModelConfigRow.is_default)
    query = select(ModelConfigRow).where(wanted).order_by(ModelConfigRow.id).with_for_update()
    rows = (await session.scalars(query.execution_options(populate_existing=True))).all()
    return row in rows


async def lock_default(session: AsyncSession) -> None:
    """Before any row is locked: who waits here must hold nothing that the one who is through could want."""
    await acquire_scoped(session, ScopedLock.DEFAULT_MODEL, str(session.info["tenant_id"]))


async def clear_default(session: AsyncSession, *, but: UUID) -> None:
    """Takes the mark from every other entry of the tenant. After `lock_default`."""
    await session.execute(
        update(ModelConfigRow)
        .where(ModelConfigRow.is_default, ModelConfigRow.id != but)
        .values(is_default=False)
        .execution_options(synchronize_session="fetch")
    )

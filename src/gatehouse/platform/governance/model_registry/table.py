"""Rows and queries of the model registry."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import JSON, Select, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import Window, containing, count_query, sorted_by
from gatehouse.foundation.storage.locks import ScopedLock, acquire_scoped
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.governance.model_registry.usage import ModelName


class RegisteredModelRow(TenantRow):
    """An entry of the registry. If `display_name` is null, the model's id is shown. `tags` keep their order."""

    __tablename__ = "registered_models"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    model_id: Mapped[str]
    provider: Mapped[str]
    display_name: Mapped[str | None]
    risk_tier: Mapped[str]
    validation_status: Mapped[str]
    owner: Mapped[str | None]
    description: Mapped[str | None]
    tags: Mapped[dict[str, str]] = mapped_column(JSON)
    # Only the previous release reads these two columns. The values of the API come from `model_days`.
    first_seen_at: Mapped[datetime | None]
    last_seen_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


#: Maximum number of rows of one batch.
_BATCH_ROWS: Final = 1_000


@dataclass(frozen=True, slots=True)
class RegistryFilters:
    """Filters of the list. None matches every value. `provider_part` matches a substring of the provider, `search` a
    substring of `model_id`, `display_name` or `description`; both ignore case."""

    risk_tier: str | None = None
    validation_status: str | None = None
    provider: str | None = None
    provider_part: str | None = None
    search: str | None = None


async def page_of_models(
    session: AsyncSession, window: Window, filters: RegistryFilters, sort: str
) -> tuple[Sequence[RegisteredModelRow], int]:
    """Return a page of entries, and the total count."""
    query = _filtered(filters)
    total = (await session.execute(count_query(query))).scalar_one()
    columns = {
        "model_id": RegisteredModelRow.model_id,
        "provider": (RegisteredModelRow.provider, RegisteredModelRow.model_id),
        "risk_tier": RegisteredModelRow.risk_tier,
        "validation_status": RegisteredModelRow.validation_status,
        "owner": RegisteredModelRow.owner,
        "created_at": RegisteredModelRow.created_at,
        "updated_at": RegisteredModelRow.updated_at,
    }
    ordered = sorted_by(query, sort, columns, unique=RegisteredModelRow.id)
    return (await session.scalars(window.apply(ordered))).all(), total


def _filtered(filters: RegistryFilters) -> Select[RegisteredModelRow]:
    row, query = RegisteredModelRow, select(RegisteredModelRow)
    for column, value in (
        (row.risk_tier, filters.risk_tier),
        (row.validation_status, filters.validation_status),
        (row.provider, filters.provider),
    ):
        if value is not None:
            query = query.where(column == value)
    if filters.provider_part:
        query = query.where(row.provider.icontains(filters.provider_part, autoescape=True))
    return containing(query, filters.search, row.model_id, row.display_name, row.description)


async def count_models(session: AsyncSession) -> int:
    return (await session.execute(select(func.count()).select_from(RegisteredModelRow))).scalar_one()


async def lock_model_id(session: AsyncSession, model_id: str) -> bool:
    """Return whether an entry of any provider has the id. Lock the id against other callers of this function until the
    transaction ends."""
    await acquire_scoped(session, ScopedLock.REGISTERED_MODEL, f"{session.info['tenant_id']} {model_id}")
    query = select(RegisteredModelRow.id).where(RegisteredModelRow.model_id == model_id).limit(1)
    return await session.scalar(query) is not None


async def all_models(session: AsyncSession, filters: RegistryFilters) -> AsyncIterator[Sequence[RegisteredModelRow]]:
    """Yield all filtered entries in batches, newest first."""
    ordered = _filtered(filters).order_by(RegisteredModelRow.created_at.desc(), RegisteredModelRow.id.desc())
    result = await session.stream_scalars(ordered.execution_options(yield_per=_BATCH_ROWS))
    async for batch in result.partitions():
        yield batch


async def rows_by_name(session: AsyncSession) -> dict[ModelName, RegisteredModelRow]:
    """Return all entries of the registry by provider and model id."""
    return {(row.provider, row.model_id): row for row in (await session.scalars(select(RegisteredModelRow))).all()}


async def add_missing(session: AsyncSession, rows: Sequence[Mapping[str, Any]]) -> set[ModelName]:
    """Add the rows whose names do not exist, and return the names of the added rows."""
    if not rows:
        return set()
    columns = RegisteredModelRow.provider, RegisteredModelRow.model_id
    added = await session.execute(
        insert(RegisteredModelRow).on_conflict_do_nothing().returning(*columns), [dict(row) for row in rows]
    )
    return {(provider, model_id) for provider, model_id in added}

"""Rows and queries of compliance bundles."""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Select, func, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.http.lists import containing, sorted_by
from gatehouse.foundation.storage.rows import TenantRow


class BundleRow(TenantRow):
    __tablename__ = "compliance_bundles"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str]
    description: Mapped[str | None]
    regulatory_framework: Mapped[str]
    version: Mapped[str]
    enabled: Mapped[bool]
    state: Mapped[str]
    seed_rule_mappings: Mapped[list[str]]
    acknowledged_by: Mapped[str | None]
    acknowledged_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


async def all_bundles(session: AsyncSession) -> Sequence[BundleRow]:
    """Return the tenant's bundles by name."""
    return (await session.scalars(select(BundleRow).order_by(BundleRow.name, BundleRow.id))).all()


def list_query(
    *, search: str | None, framework: str | None, state: str | None, enabled: bool | None, sort: str
) -> Select[BundleRow]:
    """Return the query of bundles by part of name or description, framework, state, and whether they are enabled."""
    query = containing(select(BundleRow), search, BundleRow.name, BundleRow.description)
    if framework is not None:
        query = query.where(BundleRow.regulatory_framework == framework)
    if state is not None:
        query = query.where(BundleRow.state == state)
    if enabled is not None:
        query = query.where(BundleRow.enabled.is_(enabled))
    columns = {
        "name": BundleRow.name,
        "regulatory_framework": BundleRow.regulatory_framework,
        "updated_at": BundleRow.updated_at,
    }
    return sorted_by(query, sort, columns, unique=BundleRow.id)


async def active_bundles(session: AsyncSession) -> Sequence[BundleRow]:
    """Return the active bundles by name, including disabled ones."""
    query = select(BundleRow).where(BundleRow.state == "active").order_by(BundleRow.name, BundleRow.id)
    return (await session.scalars(query)).all()


async def count_bundles(session: AsyncSession) -> int:
    return (await session.execute(select(func.count()).select_from(BundleRow))).scalar_one()


async def lock_by_name(session: AsyncSession, names: Collection[str]) -> dict[str, BundleRow]:
    """Return the existing bundles of these names, locked. The rows are locked in the order of their ids, to avoid
    deadlocks."""
    query = select(BundleRow).where(BundleRow.name.in_(names)).order_by(BundleRow.id).with_for_update()
    return {row.name: row for row in await session.scalars(query)}

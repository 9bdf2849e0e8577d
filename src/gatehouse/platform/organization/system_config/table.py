"""Rows and queries of the configuration. A row exists only for values that an organization has set."""

from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.organization.system_config.keys import KEYS, environment_value
from gatehouse.platform.organization.tenants.sources import Source


class ConfigRow(TenantRow):
    __tablename__ = "system_config"

    tenant_id: Mapped[TenantId] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str]
    updated_at: Mapped[datetime]


async def own_values(session: AsyncSession) -> dict[str, str]:
    """Return the own values of the session's tenant, by key."""
    return {row.key: row.value for row in (await session.scalars(select(ConfigRow))).all()}


async def values(session: AsyncSession) -> dict[str, str]:
    """Return the effective values for the session's tenant, for all editable keys."""
    stored = await own_values(session)
    return {name: effective_value(name, stored.get(name)) for name, key in KEYS.items() if key.editable}


async def value(session: AsyncSession, name: str) -> str:
    """Return the effective value of an editable key."""
    return effective_value(name, await own_value(session, name))


async def own_value(session: AsyncSession, name: str) -> str | None:
    """Return the organization's own value of a key, or None."""
    row = (await session.scalars(select(ConfigRow).where(ConfigRow.key == name))).one_or_none()
    return row.value if row else None


async def store(session: AsyncSession, tenant_id: TenantId, name: str, new: str) -> None:
    row = insert(ConfigRow).values(tenant_id=tenant_id, key=name, value=new, updated_at=func.now())
    await session.execute(
        row.on_conflict_do_update(
            index_elements=["tenant_id", "key"],
            set_={"value": row.excluded.value, "updated_at": row.excluded.updated_at},
        )
    )


def effective_value(name: str, stored: str | None) -> str:
    """Return the effective value of a key. `stored` is the organization's own value, or None."""
    if stored is not None:
        return stored
    value = environment_value(KEYS[name])
    return KEYS[name].default if value is None else value


def source(name: str, stored: str | None) -> Source:
    """Return the source of the effective value of an editable key. `stored` is the organization's own value, or
    None."""
    if stored is not None:
        return "organization"
    return "default" if environment_value(KEYS[name]) is None else "environment"

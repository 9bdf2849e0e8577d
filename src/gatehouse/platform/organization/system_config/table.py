"""Configuration's rows: only what an organization has set has one."""

from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.organization.system_config.keys import KEYS, environments


class ConfigRow(TenantRow):
    __tablename__ = "system_config"

    tenant_id: Mapped[TenantId] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str]
    updated_at: Mapped[datetime]


async def values(session: AsyncSession) -> dict[str, str]:
    """What is in force for the session's tenant, every key that an organization can set."""
    stored = {row.key: row.value for row in (await session.scalars(select(ConfigRow))).all()}
    return {name: resolved(name, stored.get(name)) for name, key in KEYS.items() if key.editable}


async def value(session: AsyncSession, name: str) -> str:
    """What is in force for one key, which must be one that an organization can set."""
    return resolved(name, await own_value(session, name))


async def own_value(session: AsyncSession, name: str) -> str | None:
    """The organization's own value of a key."""
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


def resolved(name: str, stored: str | None) -> str:
    """What is in force for a key whose own value, if any, is `stored`."""
    if stored is not None:
        return stored
    told = environments(KEYS[name])
    return KEYS[name].default if told is None else told

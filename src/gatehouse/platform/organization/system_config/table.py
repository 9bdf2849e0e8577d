"""Configuration's rows: only what an organization has set has one."""

import os
from datetime import datetime
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.identity import TenantId
from gatehouse.foundation.storage.rows import TenantRow
from gatehouse.platform.organization.system_config.keys import KEYS, boolean

#: how people write them into an environment
_BOOLEANS: Final = {
    **dict.fromkeys(("1", "true", "yes", "on"), "true"),
    **dict.fromkeys(("0", "false", "no", "off"), "false"),
}


class ConfigRow(TenantRow):
    __tablename__ = "system_config"

    tenant_id: Mapped[TenantId] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str]
    updated_at: Mapped[datetime]


async def values(session: AsyncSession) -> dict[str, str]:
    """What is in force for the session's tenant, every key."""
    stored = {row.key: row.value for row in (await session.scalars(select(ConfigRow))).all()}
    return {name: resolved(name, stored.get(name)) for name in KEYS}


async def value(session: AsyncSession, name: str) -> str:
    """What is in force for one key, which must be one of `KEYS`."""
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
    key = KEYS[name]
    if key.editable and stored is not None:
        return stored
    told = os.environ.get(key.environment, "").strip()
    if key.judge is boolean:
        told = _BOOLEANS.get(told.lower(), told)
    # A variable that is no value of the key is as good as none.
    return told if told and key.judge(told) is None else key.default

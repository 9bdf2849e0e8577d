"""Maintenance's state: one entry of the platform's live state, which every worker reads."""

from datetime import datetime
from typing import Any

from sqlalchemy import func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.storage.rows import Row

_KEY = "maintenance"
# Those that are not heard of for a while are gone: a killed worker's calls have ended with it.
_ACTIVE = text(
    "SELECT COALESCE(sum((status ->> 'active')::int), 0) FROM nodes WHERE kind = 'gateway'"
    " AND seen_at > now() - interval '15 seconds'"
)


class PlatformState(Row):
    __tablename__ = "platform_state"

    key: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[dict[str, Any]]
    updated_at: Mapped[datetime]


async def state(session: AsyncSession) -> dict[str, Any]:
    """What is stored now, locked until the transaction ends; empty where it was never on."""
    # So that there is a row to lock: of two operators at once, the second sees what the first did.
    empty = insert(PlatformState).values(key=_KEY, value={}, updated_at=func.now()).on_conflict_do_nothing()
    await session.execute(empty)
    row = await session.scalars(select(PlatformState).where(PlatformState.key == _KEY).with_for_update())
    return row.one().value


async def store(session: AsyncSession, value: dict[str, Any]) -> None:
    row = insert(PlatformState).values(key=_KEY, value=value, updated_at=func.now())
    await session.execute(
        row.on_conflict_do_update(
            index_elements=["key"], set_={"value": row.excluded.value, "updated_at": row.excluded.updated_at}
        )
    )


async def active_calls(session: AsyncSession) -> int:
    """Model calls in progress on all workers, as each said with its last beat."""
    return int((await session.execute(_ACTIVE)).scalar_one())

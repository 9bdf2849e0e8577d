"""The state of maintenance: a row of `platform_state`, which every worker reads."""

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.storage.rows import Row

_KEY = "maintenance"
# Only workers with a heartbeat in the last 15 seconds are waited for. Other workers are dead, or their state is
# unknown.
_BUSY = text(
    "SELECT COALESCE(sum(active), 0) AS calls,"
    " count(*) FILTER (WHERE is_alive AND (active > 0 OR revision < :revision)) AS workers"
    " FROM (SELECT revision, COALESCE((status ->> 'active')::int, 0) AS active,"
    " seen_at > now() - interval '15 seconds' AS is_alive FROM nodes WHERE kind = 'gateway') AS worker"
)


class BusyWorkers(NamedTuple):
    """The work in progress. `calls` is the number of model calls in progress that all workers last reported. `workers`
    is the number of workers to wait for: they have calls in progress, or have not confirmed the revision and may still
    admit calls."""

    calls: int
    workers: int


class PlatformState(Row):
    __tablename__ = "platform_state"

    key: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[dict[str, Any]]
    updated_at: Mapped[datetime]


async def state(session: AsyncSession) -> dict[str, Any]:
    """Return the stored state. It is empty if maintenance was never on."""
    return await session.scalar(select(PlatformState.value).where(PlatformState.key == _KEY)) or {}


async def state_for_change(session: AsyncSession) -> dict[str, Any]:
    """Return the stored state, and lock it until the transaction ends. It is empty if maintenance was never on."""
    # A missing row is inserted, so that it can be locked and concurrent changes run one after the other.
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


async def busy(session: AsyncSession, revision: int) -> BusyWorkers:
    return BusyWorkers(*(await session.execute(_BUSY, {"revision": revision})).one())

"""The state of maintenance: a row of `platform_state`, which every worker reads."""

from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from gatehouse.foundation.storage.rows import Row

_KEY: Final = "maintenance"
#: The version of the state until maintenance is on for the first time.
_NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
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


async def find(session: AsyncSession) -> PlatformState:
    """Return the stored state. If maintenance was never on, return an empty one that is not stored."""
    return await session.get(PlatformState, _KEY) or PlatformState(key=_KEY, value={}, updated_at=_NEVER)


async def find_for_change(session: AsyncSession) -> PlatformState:
    """Return the stored state, and lock it until the transaction ends. It is empty if maintenance was never on."""
    # A missing row is inserted, so that it can be locked and concurrent changes run one after the other.
    await session.execute(insert(PlatformState).values(key=_KEY, value={}, updated_at=_NEVER).on_conflict_do_nothing())
    row = await session.scalars(select(PlatformState).where(PlatformState.key == _KEY).with_for_update())
    return row.one()


async def busy(session: AsyncSession, revision: int) -> BusyWorkers:
    return BusyWorkers(*(await session.execute(_BUSY, {"revision": revision})).one())

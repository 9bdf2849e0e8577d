"""How long an organization's records are kept, and which of them its lists still show (decisions 5, Retention).

What is past the hot window is shown no more from one day to the next, whenever the archiver takes it; the window counts
whole days (UTC), so that the counts by day agree with it. Under a legal hold nothing leaves the database, and all that
is there is shown.
"""

from datetime import UTC, datetime, time, timedelta
from typing import Any, Final

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now


class RetentionPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Windows that follow each other: `hot` in the database, then `warm` in the archive, then `cold` (decisions 5)."""

    hot_retention_days: int = 90
    warm_retention_days: int = 365
    cold_retention_years: int = 7
    archiver_schedule: str = "0 2 * * *"


def read_retention_policy(stored: dict[str, Any]) -> RetentionPolicy:
    """Of the tenant's column `retention_policy`, which holds what was set."""
    return msgspec.convert(stored, RetentionPolicy)


_POLICY: Final = text(
    "SELECT retention_policy, EXISTS (SELECT FROM legal_holds h WHERE h.tenant_id = t.id) AS held"
    " FROM tenants t WHERE id = :tenant"
)


def hot_since(policy: RetentionPolicy, now: datetime) -> datetime:
    """The first moment of the hot window."""
    day = now.astimezone(UTC).date() - timedelta(days=policy.hot_retention_days)
    return datetime.combine(day, time(), UTC)


async def shown_since(session: AsyncSession) -> datetime | None:
    """From when on the session's tenant sees its records; None for all that there are."""
    row = (await session.execute(_POLICY, {"tenant": session.info["tenant_id"]})).one()
    return None if row.held else hot_since(read_retention_policy(row.retention_policy), utc_now())

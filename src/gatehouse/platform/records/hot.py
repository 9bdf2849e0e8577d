"""The retention policy, and the hot window within which lists show records (docs/retention.md).

Lists stop showing a record on the day on which it leaves the hot window, even if the archiver runs later. The window
consists of whole days (UTC), so that it matches the counts by day. Under a legal hold, nothing is deleted from the
database, and all its records are shown.
"""

from datetime import UTC, datetime, time, timedelta
from typing import Any, Final

import msgspec
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now


class HotRetention(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive retention windows: `hot` in the database, then `warm` in the archive, then `cold` in the archive."""

    hot_retention_days: int = 90
    warm_retention_days: int = 365
    cold_retention_years: int = 7
    archiver_schedule: str = "0 2 * * *"


def read_retention_policy(stored: dict[str, Any]) -> HotRetention:
    """Parse the column `retention_policy` of a tenant. It contains only the fields that were set."""
    return msgspec.convert(stored, HotRetention)


_POLICY: Final = text(
    "SELECT retention_policy, EXISTS (SELECT FROM legal_holds h WHERE h.tenant_id = t.id) AS held"
    " FROM tenants t WHERE id = :tenant"
)


def hot_since(policy: HotRetention, now: datetime) -> datetime:
    """Return the first moment of the hot window."""
    day = now.astimezone(UTC).date() - timedelta(days=policy.hot_retention_days)
    return datetime.combine(day, time(), UTC)


async def visible_since(session: AsyncSession) -> datetime | None:
    """Return the time from which the session's tenant can see its records, or None if it can see all of them."""
    row = (await session.execute(_POLICY, {"tenant": session.info["tenant_id"]})).one()
    return None if row.held else hot_since(read_retention_policy(row.retention_policy), utc_now())

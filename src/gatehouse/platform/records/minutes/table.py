"""Totals of the session's tenant in a window, and of each hour or day since a moment. A window begins at `since` and
ends before `until`, both whole minutes (UTC)."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, Literal, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

_HOUR: Final = timedelta(hours=1)
_MINUTE: Final = timedelta(minutes=1)


class Totals(NamedTuple):
    """Totals of the requests in a window. `records.minutes` defines them."""

    requests: int
    errors: int
    blocked: int
    dlp_triggers: int
    cost_usd: Decimal


_TOTALS: Final = text(
    "SELECT COALESCE(sum(requests), 0)::bigint, COALESCE(sum(errors), 0)::bigint, COALESCE(sum(blocked), 0)::bigint,"
    " COALESCE(sum(dlp_triggers), 0)::bigint, COALESCE(sum(cost_usd), 0) FROM usage_minutes"
    " WHERE tenant_id = :tenant AND minute >= :since AND minute < :until"
)
_SERIES: Final = text(
    "SELECT date_trunc(:step, hour, 'UTC') AS start, sum(requests)::bigint, sum(errors)::bigint, sum(blocked)::bigint,"
    " sum(dlp_triggers)::bigint, sum(cost_usd) FROM usage_hours"
    " WHERE tenant_id = :tenant AND hour >= :since GROUP BY 1"
)
# Whole hours are read from `usage_hours`, and the remaining minutes at both ends from `usage_minutes`. `latency` is an
# array of integers, which have the bucket in the upper and its number of requests in the lower 32 bits.
_LATENCIES: Final = text("""
SELECT packed >> 32 AS bucket, sum(packed & 4294967295)::bigint AS requests FROM (
    SELECT latency FROM usage_hours WHERE tenant_id = :tenant AND hour >= :first AND hour < :last
    UNION ALL
    SELECT latency FROM usage_minutes WHERE tenant_id = :tenant AND minute >= :since AND minute < :first
    UNION ALL
    SELECT latency FROM usage_minutes WHERE tenant_id = :tenant AND minute >= :last AND minute < :until
) AS parts, unnest(latency) AS packed GROUP BY 1
""")


async def totals(session: AsyncSession, since: datetime, until: datetime) -> Totals:
    values = {"tenant": session.info["tenant_id"], "since": since, "until": until}
    return Totals(*(await session.execute(_TOTALS, values)).one())


async def series(session: AsyncSession, since: datetime, step: Literal["hour", "day"]) -> dict[datetime, Totals]:
    """Return the totals of each hour or day (UTC) that has requests, by the beginning of the hour or day."""
    values = {"tenant": session.info["tenant_id"], "since": since, "step": step}
    return {start: Totals(*totals) for start, *totals in await session.execute(_SERIES, values)}


async def latencies(session: AsyncSession, since: datetime, until: datetime) -> dict[int, int]:
    """Return the number of requests in each latency bucket."""
    first, last = _hour(since + _HOUR - _MINUTE), _hour(until)
    if first >= last:
        first = last = until
    values = {"tenant": session.info["tenant_id"], "since": since, "until": until, "first": first, "last": last}
    return {row.bucket: row.requests for row in await session.execute(_LATENCIES, values)}


def _hour(moment: datetime) -> datetime:
    """Return the beginning of the hour that contains the moment."""
    return moment.replace(minute=0)

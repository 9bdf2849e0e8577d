"""The organization's requests and cost as a series of hours or days."""

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Final

from sqlalchemy.ext.asyncio import AsyncSession

from gatehouse.foundation.clock import utc_now
from gatehouse.platform.records.minutes import table
from gatehouse.platform.records.minutes.table import Totals
from gatehouse.platform.records.usage.schemas import SeriesPeriod, SeriesStep, UsagePoint, UsageSeries

_DAYS: Final[Mapping[SeriesPeriod, int]] = {"day": 1, "week": 7, "month": 30}
_NOTHING: Final = Totals(requests=0, errors=0, blocked=0, dlp_triggers=0, cost_usd=Decimal(0))


async def usage_series(session: AsyncSession, period: SeriesPeriod) -> UsageSeries:
    """Return the series of today, or of the last 7 or 30 days including today (UTC)."""
    step: SeriesStep = "hour" if period == "day" else "day"
    length = timedelta(hours=1) if step == "hour" else timedelta(days=1)
    now = utc_now()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    since = midnight - timedelta(days=_DAYS[period] - 1)
    totals = await table.series(session, since, step)
    starts = [since + length * place for place in range((now - since) // length + 1)]
    points = [UsagePoint(start=start, **totals.get(start, _NOTHING)._asdict()) for start in starts]
    return UsageSeries(period=period, step=step, points=points)

"""Beginning and end of a budget's period: days and months are those of the organization's time zone."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from gatehouse.policy.budgets import Period


class PeriodSpan(NamedTuple):
    """Unix seconds; the end is excluded."""

    start: int
    end: int


def span(period: Period, moment: float, zone: ZoneInfo) -> PeriodSpan:
    """Return the period that contains `moment` (Unix time). A day is from midnight to midnight of the zone's clocks:
    23, 24 or 25 hours."""
    if period == "minute":
        start = int(moment) // 60 * 60
        return PeriodSpan(start, start + 60)
    local = datetime.fromtimestamp(moment, UTC).astimezone(zone)
    if period == "day":
        first = local.date()
        following = first + timedelta(days=1)
    else:
        first = local.date().replace(day=1)
        following = (first + timedelta(days=32)).replace(day=1)
    return PeriodSpan(_midnight(first.year, first.month, first.day, zone), _midnight(*following.timetuple()[:3], zone))


def _midnight(year: int, month: int, day: int, zone: ZoneInfo) -> int:
    # If clocks go forward at midnight, the day begins at the moment they jump.
    return int(datetime(year, month, day, tzinfo=zone).timestamp())

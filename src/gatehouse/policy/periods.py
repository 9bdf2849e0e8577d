"""Computes the beginning and end of a budget's period. Days and months are in the time zone of the organization."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from gatehouse.policy.budgets import Period


class PeriodSpan(NamedTuple):
    """The start and end of a period, in Unix seconds. The end is not part of the period."""

    start: int
    end: int


def span(period: Period, moment: float, zone: ZoneInfo) -> PeriodSpan:
    """Return the period that contains `moment`, a Unix time. A day lasts from midnight to midnight in the time zone,
    which may be 23, 24 or 25 hours."""
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
    # If clocks are moved forward at midnight, the day begins at this moment.
    return int(datetime(year, month, day, tzinfo=zone).timestamp())

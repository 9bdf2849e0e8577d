"""When a budget's period begins and ends: days and months are those of the organization's time zone."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from gatehouse.policy.budgets import Period


class Span(NamedTuple):
    """Unix seconds, the end not included."""

    start: int
    end: int


def span(period: Period, at: float, zone: ZoneInfo) -> Span:
    """The period that holds the moment `at` (Unix time). A day is from midnight to midnight of the zone's clocks: 23,
    24 or 25 hours."""
    if period == "minute":
        start = int(at) // 60 * 60
        return Span(start, start + 60)
    local = datetime.fromtimestamp(at, UTC).astimezone(zone)
    if period == "day":
        first = local.date()
        following = first + timedelta(days=1)
    else:
        first = local.date().replace(day=1)
        following = (first + timedelta(days=32)).replace(day=1)
    return Span(_midnight(first.year, first.month, first.day, zone), _midnight(*following.timetuple()[:3], zone))


def _midnight(year: int, month: int, day: int, zone: ZoneInfo) -> int:
    # Where clocks go forward at midnight there is none: the moment they jump is the day's beginning.
    return int(datetime(year, month, day, tzinfo=zone).timestamp())

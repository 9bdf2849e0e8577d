"""Tests that `span` returns the right start and end in time zones with daylight saving time."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from gatehouse.policy.budgets import Period
from gatehouse.policy.periods import span


def unix_time(text: str) -> int:
    return int(datetime.fromisoformat(text).astimezone(UTC).timestamp())


@pytest.mark.parametrize(
    ("period", "zone", "moment", "start", "end"),
    [
        ("minute", "UTC", "2026-01-01T00:00:59.9Z", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"),
        ("day", "UTC", "2026-02-28T23:59:59Z", "2026-02-28T00:00:00Z", "2026-03-01T00:00:00Z"),
        # a day of 23 hours, and a day of 25 hours
        ("day", "Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"),
        ("day", "Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"),
        # midnight does not exist, so the day begins when the clocks are set forward
        ("day", "America/Asuncion", "2024-10-06T12:00:00Z", "2024-10-06T04:00:00Z", "2024-10-07T03:00:00Z"),
        ("day", "Asia/Kathmandu", "2026-01-01T18:14:59Z", "2025-12-31T18:15:00Z", "2026-01-01T18:15:00Z"),
        ("month", "UTC", "2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"),
        ("month", "America/New_York", "2026-03-31T12:00:00Z", "2026-03-01T05:00:00Z", "2026-04-01T04:00:00Z"),
        ("month", "Pacific/Kiritimati", "2026-12-31T10:00:00Z", "2026-12-31T10:00:00Z", "2027-01-31T10:00:00Z"),
    ],
)
def test_span_contains_the_given_time(period: Period, zone: str, moment: str, start: str, end: str) -> None:
    assert span(period, datetime.fromisoformat(moment).timestamp(), ZoneInfo(zone)) == (
        unix_time(start),
        unix_time(end),
    )


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Asuncion", "Australia/Lord_Howe", "Pacific/Apia"])
def test_days_follow_each_other_without_a_gap_over_years(zone: str) -> None:
    moment = unix_time("2009-12-25T00:00:00Z")
    for _ in range(1_100):
        day = span("day", moment, ZoneInfo(zone))
        assert day.start <= moment < day.end
        next_day = span("day", day.end, ZoneInfo(zone))
        assert next_day.start == day.end
        moment = day.end

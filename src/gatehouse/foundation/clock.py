"""Clocks. A clock is a parameter, so that tests need not wait."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Returns the Unix time in seconds."""

    def monotonic(self) -> float:
        """Returns monotonic seconds, for durations."""


class SystemClock:
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)


SYSTEM_CLOCK = SystemClock()


def utc_now() -> datetime:
    return datetime.now(UTC)


def iso(moment: datetime | float) -> str:
    """Returns a time (datetime or Unix seconds) as ISO 8601 in UTC with a `Z`."""
    if not isinstance(moment, datetime):
        moment = datetime.fromtimestamp(moment, UTC)
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")

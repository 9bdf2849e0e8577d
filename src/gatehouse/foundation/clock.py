"""Time as a value that can be handed in, so that a test need not wait."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Unix time in seconds."""

    def monotonic(self) -> float:
        """Seconds that never go back, for durations."""


class SystemClock:
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)


SYSTEM_CLOCK = SystemClock()


def utc_now() -> datetime:
    return datetime.now(UTC)


def iso(moment: datetime | float) -> str:
    """ISO 8601 in UTC with a `Z`, as the contract writes timestamps (reference 1, Conventions)."""
    if not isinstance(moment, datetime):
        moment = datetime.fromtimestamp(moment, UTC)
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")

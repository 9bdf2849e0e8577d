"""Bodies of the retention policy's endpoints (reference 2, Organization settings)."""

import re
from datetime import datetime
from typing import Annotated, Final

from croniter import croniter
from pydantic import AfterValidator, Field

from gatehouse.foundation.http.bodies import Body, Shown, unsent

#: Numbers, names of months and days: no seconds, no words for whole schedules, nothing at random.
_CRON: Final = re.compile(r"(?:(?:[0-9*/,-]|[A-Za-z]{3})+ ){4}(?:[0-9*/,-]|[A-Za-z]{3})+")


def _schedule(text: str) -> str:
    """With one blank between its five fields."""
    written = " ".join(text.split())
    if _CRON.fullmatch(written) is None or not _ever_comes(written):
        raise ValueError("is no cron schedule: minute, hour, day of month, month, day of week, such as 0 2 * * *")
    return written


def _ever_comes(schedule: str) -> bool:
    """A day that never does, such as 30 February, is found by looking for it."""
    try:
        croniter(schedule, max_years_between_matches=8).get_next()
    except ValueError:
        return False
    return True


Schedule = Annotated[str, Field(max_length=100, examples=["0 2 * * *"]), AfterValidator(_schedule)]


class RetentionPolicyUpdate(Body):
    """Only what is sent changes."""

    hot_retention_days: Annotated[int, Field(ge=1, le=3650, examples=[90])] = Field(default_factory=unsent)
    warm_retention_days: Annotated[int, Field(ge=0, le=3650, examples=[365])] = Field(default_factory=unsent)
    cold_retention_years: Annotated[int, Field(ge=0, le=100, examples=[7])] = Field(default_factory=unsent)
    archiver_schedule: Schedule = Field(default_factory=unsent, description="Cron, in the organization's time zone.")


class RetentionPolicy(Shown):
    hot_retention_days: Annotated[int, Field(description="Days that records stay in the database.")]
    warm_retention_days: Annotated[int, Field(description="Days in the archive after that.")]
    cold_retention_years: Annotated[int, Field(description="Years under the archive's cold prefix after that.")]
    archiver_schedule: str
    last_archival_run: datetime | None = None
    last_archival_status: str | None = None
    rows_archived_last_run: int | None = None

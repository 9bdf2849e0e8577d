"""Query parameters shared by the lists of records."""

from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import Query
from pydantic import AfterValidator

#: Years within which dates can be calculated without overflow, at any offset.
_FIRST_YEAR: Final = 1900
_LAST_YEAR: Final = 2999


def _utc(moment: datetime) -> datetime:
    """Convert a moment to UTC; one without an offset is in UTC. Raises `ValueError` for a year out of range."""
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        raise ValueError(f"must be a moment from {_FIRST_YEAR} to {_LAST_YEAR}")
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


Moment = Annotated[datetime, AfterValidator(_utc)]

From = Annotated[Moment | None, Query(alias="from", description="This moment and later.")]
To = Annotated[Moment | None, Query(alias="to", description="Before this moment.")]
#: PostgreSQL's text cannot contain NUL.
ExactFilter = Annotated[str | None, Query(max_length=500, pattern=r"^[^\x00]*$")]

"""Query parameters that the lists of records share."""

from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import Query
from pydantic import AfterValidator

#: Range of years in which dates can be calculated without overflow, at any offset.
_FIRST_YEAR: Final = 1900
_LAST_YEAR: Final = 2999


def _utc(moment: datetime) -> datetime:
    """Convert a moment to UTC. A moment without an offset is taken as UTC. Raises `ValueError` if the year is out of
    range."""
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        raise ValueError(f"must be a moment from {_FIRST_YEAR} to {_LAST_YEAR}")
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


Moment = Annotated[datetime, AfterValidator(_utc)]

From = Annotated[Moment | None, Query(alias="from", description="Start of the period, inclusive.")]
To = Annotated[Moment | None, Query(alias="to", description="End of the period, exclusive.")]
#: A filter for an exact value. NUL is excluded, because PostgreSQL's text cannot contain it.
ExactFilter = Annotated[str | None, Query(max_length=500, pattern=r"^[^\x00]*$")]

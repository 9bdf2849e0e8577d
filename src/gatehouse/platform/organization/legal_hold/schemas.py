"""Bodies of the endpoints of the legal hold."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody


class NewLegalHold(Body):
    reason: Annotated[str, Field(min_length=1, max_length=2000, examples=["Case 24-1815, counsel's letter of 3 May"])]


class LegalHold(ResponseBody):
    active: Annotated[bool, Field(description="While true, no record is removed from the database or the archive.")]
    reason: str | None = None
    set_by: Annotated[str | None, Field(description="Id of the user or client that set the hold.")] = None
    set_at: datetime | None = None

"""Bodies of the legal hold's endpoints."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, ResponseBody


class NewLegalHold(Body):
    reason: Annotated[str, Field(min_length=1, max_length=2000, examples=["Case 24-1815, counsel's letter of 3 May"])]


class LegalHold(ResponseBody):
    active: Annotated[bool, Field(description="True: no record is removed from the database or the archive.")]
    reason: str | None = None
    set_by: Annotated[str | None, Field(description="Id of the user or client who set it.")] = None
    set_at: datetime | None = None

"""Bodies of the legal hold's endpoints."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from gatehouse.foundation.http.bodies import Body, Shown


class NewLegalHold(Body):
    reason: Annotated[str, Field(min_length=1, max_length=2000, examples=["Case 24-1815, counsel's letter of 3 May"])]


class LegalHold(Shown):
    active: Annotated[bool, Field(description="While true, no record is removed, from database or archive.")]
    reason: str | None = None
    set_by: Annotated[str | None, Field(description="Who set it: a user's or a client's id.")] = None
    set_at: datetime | None = None

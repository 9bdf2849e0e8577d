"""What every body of the administration API has in common."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field


class Body(BaseModel):
    """A request's body: strict, so that `"false"` is no boolean and a misspelt field is an error that names it."""

    model_config = ConfigDict(extra="forbid", strict=True, str_strip_whitespace=True)


class Shown(BaseModel):
    """A response's body, read from a row or made by hand."""

    model_config = ConfigDict(from_attributes=True)


# JSON has no type of its own for these, so a strict body still reads them from a string or a number.
Id = Annotated[UUID, Field(strict=False)]
Moment = Annotated[datetime, Field(strict=False)]
Money = Annotated[Decimal, Field(strict=False, ge=0, max_digits=30)]

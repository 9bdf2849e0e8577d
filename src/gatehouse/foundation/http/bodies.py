"""What every body of the administration API has in common."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator


class Body(BaseModel):
    """A request's body: strict, so that `"false"` is no boolean and a misspelt field is an error that names it."""

    model_config = ConfigDict(extra="forbid", strict=True, str_strip_whitespace=True)

    @field_validator("*", mode="before")
    @classmethod
    def _without_nul(cls, value: object) -> object:
        """PostgreSQL's text holds no NUL: better refused here, by the field's name, than there."""
        if has_nul(value):
            raise ValueError("may not contain NUL characters")
        return value

    def sent(self) -> dict[str, Any]:
        """The fields that the caller sent, null or not: what a partial update changes."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class Shown(BaseModel):
    """A response's body, read from a row or made by hand."""

    model_config = ConfigDict(from_attributes=True)


def unsent() -> Any:
    """Default of a field that an update may leave out but not set to null: `Field(default_factory=unsent)`."""
    return None


def has_nul(value: object) -> bool:
    """Without recursion: what a free-form object holds may lie deeper than Python's stack is high."""
    waiting = [value]
    while waiting:
        held = waiting.pop()
        if isinstance(held, str):
            if "\0" in held:
                return True
        elif isinstance(held, dict):
            waiting += held.keys()
            waiting += held.values()
        elif isinstance(held, list):
            waiting += held
    return False


# JSON has no type of its own for these, so a strict body still reads them from a string or a number.
Id = Annotated[UUID, Field(strict=False)]
Moment = Annotated[datetime, Field(strict=False)]


def _id_or_none(value: object) -> object:
    try:
        return value if isinstance(value, UUID) else UUID(str(value))
    except ValueError:
        return None


# An id in a path: what is no UUID is None, and so is no row's id.
PathId = Annotated[UUID | None, BeforeValidator(_id_or_none), WithJsonSchema({"type": "string", "format": "uuid"})]

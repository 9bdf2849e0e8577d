"""Base classes of the administration API's request and response bodies."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, TypeVar, get_type_hints
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

B = TypeVar("B", bound="Body")


class Body(BaseModel):
    """A request's body. Validation is strict: the text `"false"` is not a boolean, and an unknown field is an error
    that identifies the field."""

    model_config = ConfigDict(extra="forbid", strict=True, str_strip_whitespace=True)

    @field_validator("*", mode="before")
    @classmethod
    def _without_nul(cls, value: object) -> object:
        """Refuses a NUL character in any field, because PostgreSQL cannot store NUL in text."""
        if has_nul(value):
            raise ValueError("may not contain NUL characters")
        return value

    def sent(self) -> dict[str, Any]:
        """Returns the fields that the caller sent, including those with null. A partial update changes only these."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class ResponseBody(BaseModel):
    """A response's body, made from a row or from values."""

    model_config = ConfigDict(from_attributes=True)


def omitted() -> Any:
    """Returns the default of a field that an update may omit but not set to null: `Field(default_factory=omitted)`."""
    return None


def partial(update: type[B]) -> type[B]:
    """Makes all fields of an update's body optional. An update does not change the fields that the caller omits. The
    body of the update inherits from the body of the creation:

        @partial
        class AlertRuleUpdate(NewAlertRule): ...

    Types and validators are those of the creation. An update may set a field to null only if the creation may.
    """
    for field in update.model_fields.values():
        if field.is_required() or field.get_default(call_default_factory=True, validated_data={}) is not None:
            field.default, field.default_factory = PydanticUndefined, omitted
    update.model_rebuild(force=True)
    return update


def nullable(update: type[B]) -> type[B]:
    """Makes all fields of an update's body optional, where null means the same as an absent field. The body of the
    update inherits from the body of the creation, as for `partial`."""
    annotations = get_type_hints(update, include_extras=True)
    for name, field in update.model_fields.items():
        if field.is_required() or field.get_default(call_default_factory=True, validated_data={}) is not None:
            update.model_fields[name] = FieldInfo.from_annotated_attribute(annotations[name] | None, None)
    update.model_rebuild(force=True)
    return update


def without(*fields: str) -> Callable[[type[B]], type[B]]:
    """Removes inherited fields from an update's body, because they cannot change after the creation:

    @partial
    @without("slug")
    class OrganizationUpdate(NewOrganization): ...
    """

    def decorate(update: type[B]) -> type[B]:
        for name in fields:
            del update.model_fields[name]
        update.model_rebuild(force=True)
        return update

    return decorate


def has_nul(value: object) -> bool:
    """Returns whether any text in a JSON value contains NUL. The function is not recursive, because a free-form object
    may be nested more deeply than Python's stack allows."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if "\0" in item:
                return True
        elif isinstance(item, dict):
            pending += item.keys()
            pending += item.values()
        elif isinstance(item, list):
            pending += item
    return False


# JSON has no type for UUIDs and times, so even a strict body reads them from a string or a number.
Id = Annotated[UUID, Field(strict=False)]
Moment = Annotated[datetime, Field(strict=False)]


def _id_or_none(value: object) -> object:
    try:
        return value if isinstance(value, UUID) else UUID(str(value))
    except ValueError:
        return None


# An id in a path. Text that is not a UUID becomes None, which matches no row.
PathId = Annotated[UUID | None, BeforeValidator(_id_or_none), WithJsonSchema({"type": "string", "format": "uuid"})]

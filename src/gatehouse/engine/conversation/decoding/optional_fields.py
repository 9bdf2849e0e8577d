"""Reads optional fields of a decoded body: absent and null are None, a wrong type is a 400."""

from collections.abc import Mapping
from typing import Any

from gatehouse.engine.conversation.errors import InvalidField


def word(value: Any) -> str | None:
    """Return the value if it is a string, else None. The result can be looked up in sets and dicts, where an object or
    a list raises an error."""
    return value if isinstance(value, str) else None


def text(body: Mapping[str, Any], field: str) -> str | None:
    value = body.get(field)
    if value is None or isinstance(value, str):
        return value
    raise InvalidField(field, f"`{field}` must be a string.")


def boolean(body: Mapping[str, Any], field: str) -> bool | None:
    value = body.get(field)
    if value is None or isinstance(value, bool):
        return value
    raise InvalidField(field, f"`{field}` must be true or false.")


def integer(body: Mapping[str, Any], field: str) -> int | None:
    value = body.get(field)
    if value is None or type(value) is int:
        return value
    raise InvalidField(field, f"`{field}` must be an integer.")


def number(body: Mapping[str, Any], field: str) -> float | None:
    value = body.get(field)
    if value is None or type(value) is float or type(value) is int:
        return value
    raise InvalidField(field, f"`{field}` must be a number.")


def texts(body: Mapping[str, Any], field: str) -> tuple[str, ...]:
    """Return the strings of a field with a string or a list of strings."""
    value = body.get(field)
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise InvalidField(field, f"`{field}` must be a string or a list of strings.")

"""Converts a tool call's arguments from text to an object, for dialects that need one."""

from typing import Any

import msgspec


def arguments_object(arguments: str) -> dict[str, Any]:
    """Return the object in the text. Other text becomes the value of one field, `arguments`."""
    if not arguments.strip():
        return {}
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {"arguments": arguments}
    return value if isinstance(value, dict) else {"arguments": arguments}

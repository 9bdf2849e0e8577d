"""A tool call's arguments, which a model writes as text, where a dialect wants an object."""

from typing import Any

import msgspec


def as_object(arguments: str) -> dict[str, Any]:
    """Text that is no object is kept under one name."""
    if not arguments.strip():
        return {}
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {"arguments": arguments}
    return value if isinstance(value, dict) else {"arguments": arguments}

"""Rows as lines of PostgreSQL's COPY in text form: the drain's way in, a microsecond a row instead of a statement."""

from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import msgspec

NULL: Final = r"\N"

_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t"})


def text(value: str | None) -> str:
    """Any text. It holds no NUL: PostgreSQL has no place for one."""
    if value is None:
        return NULL
    return value if value.isalnum() else value.translate(_ESCAPES)


#: For texts of few values, such as models and error codes.
known_text = lru_cache(maxsize=2048)(text)


def known(value: str | None) -> str:
    """What needs no escaping: an id, a word of ours."""
    return NULL if value is None else value


def number(value: int | float | None) -> str:
    return NULL if value is None else repr(value)


def boolean(value: bool) -> str:
    return "t" if value else "f"


def json(value: Any) -> str:
    """JSON holds no raw control characters, so only its own escapes need escaping."""
    return msgspec.json.encode(value).decode().replace("\\", r"\\")


def binary(value: bytes | None) -> str:
    return NULL if value is None else r"\\x" + value.hex()


def month(moment: datetime) -> str:
    """The suffix of the partition that holds this moment (UTC)."""
    return f"{moment.year:04d}{moment.month:02d}"

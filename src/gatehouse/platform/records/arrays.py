"""Converts rows into text arrays, one for each column, which the keeper inserts with `unnest`.

All rows of a batch for one table are one statement, which has arrived completely before it takes a lock. COPY would
cost slightly less. But a session that is cut off in the middle of a COPY keeps its locks until the connection ends,
because PostgreSQL's timeouts do not apply to COPY.
"""

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import msgspec
from psycopg import sql

NULL: Final = "NULL"

#: The array elements of one row, in the order of its columns.
Row = tuple[str, ...]


class Columns:
    """The columns of the rows of one table, declared as `name type, name type`."""

    def __init__(self, declared: str) -> None:
        names, types = zip(*(column.split(" ", 1) for column in declared.split(", ")), strict=True)
        self._names = sql.SQL(", ").join(map(sql.Identifier, names))
        self._arrays = sql.SQL(", ").join(sql.SQL("%s::{}[]").format(sql.SQL(kind)) for kind in types)

    def insert_into(self, table: str) -> sql.Composed:
        """Return the INSERT statement. Its parameters are the results of `columns` for the rows."""
        statement = sql.SQL("INSERT INTO {} ({}) SELECT * FROM unnest({})")
        return statement.format(sql.Identifier(table), self._names, self._arrays)


def columns(rows: Iterable[Row]) -> list[str]:
    """Return one array for each column, or no arrays if there are no rows."""
    return ["{" + ",".join(column) + "}" for column in zip(*rows, strict=True)]


def text(value: str | None) -> str:
    """Return the text, quoted as an array element. The text must not contain NUL, which PostgreSQL cannot store."""
    if value is None:
        return NULL
    return '"' + value.replace("\\", r"\\").replace('"', r"\"") + '"'


#: `text` with a cache, for columns with few distinct values, such as models and error codes.
cached_text = lru_cache(maxsize=2048)(text)


def number(value: int | float | None) -> str:
    return NULL if value is None else repr(value)


def boolean(value: bool) -> str:
    return "t" if value else "f"


def json(value: Any) -> str:
    return text(msgspec.json.encode(value).decode())


def binary(value: bytes | None) -> str:
    return NULL if value is None else rf'"\\x{value.hex()}"'


def month(moment: datetime) -> str:
    """Return the suffix of the partition that contains this moment (in UTC)."""
    return f"{moment.year:04d}{moment.month:02d}"

"""Converts rows into text arrays, one per column, which the drain inserts with `unnest`.

A batch's rows of one table are one statement, which has arrived completely before it takes a lock. COPY would cost a
little less, but a session that is cut off in the middle of a COPY keeps its locks until the connection ends, because
PostgreSQL's timeouts do not apply there.
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
    """The columns of a table's rows, declared as `name type, name type`."""

    def __init__(self, declared: str) -> None:
        names, types = zip(*(column.split(" ", 1) for column in declared.split(", ")), strict=True)
        self._names = sql.SQL(", ").join(map(sql.Identifier, names))
        self._arrays = sql.SQL(", ").join(sql.SQL("%s::{}[]").format(sql.SQL(kind)) for kind in types)

    def insert_into(self, table: str) -> sql.Composed:
        """Return the INSERT statement. Its parameters are the `columns` of the rows."""
        statement = sql.SQL("INSERT INTO {} ({}) SELECT * FROM unnest({})")
        return statement.format(sql.Identifier(table), self._names, self._arrays)


def columns(rows: Iterable[Row]) -> list[str]:
    """Return one array per column; none if there are no rows."""
    return ["{" + ",".join(column) + "}" for column in zip(*rows, strict=True)]


def text(value: str | None) -> str:
    """Quote a text. It must not contain NUL, which PostgreSQL cannot store."""
    if value is None:
        return NULL
    return '"' + value.replace("\\", r"\\").replace('"', r"\"") + '"'


#: `text` with a cache, for texts with few distinct values, such as models and error codes.
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
    """Return the suffix of the partition of this moment (UTC)."""
    return f"{moment.year:04d}{moment.month:02d}"

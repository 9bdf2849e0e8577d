"""Rows as PostgreSQL takes them from arrays, one a column, in text form: the drain's way in.

A batch's rows of one table are one statement, which has come whole before it takes a lock. COPY costs a little less,
but a session that is cut off in the midst of it keeps its locks until the connection ends: no time-out of PostgreSQL's
reaches it there.
"""

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import msgspec
from psycopg import sql

NULL: Final = "NULL"

#: The elements of one row, in the order of its table's columns.
Row = tuple[str, ...]


class Columns:
    """The columns that rows are made of, as `name type, name type`."""

    def __init__(self, declared: str) -> None:
        names, types = zip(*(column.split(" ", 1) for column in declared.split(", ")), strict=True)
        self._names = sql.SQL(", ").join(map(sql.Identifier, names))
        self._arrays = sql.SQL(", ").join(sql.SQL("%s::{}[]").format(sql.SQL(kind)) for kind in types)

    def insert_into(self, table: str) -> sql.Composed:
        """The statement; its parameters are `columns` of the rows."""
        statement = sql.SQL("INSERT INTO {} ({}) SELECT * FROM unnest({})")
        return statement.format(sql.Identifier(table), self._names, self._arrays)


def columns(rows: Iterable[Row]) -> list[str]:
    """One array a column; none where there is no row."""
    return ["{" + ",".join(column) + "}" for column in zip(*rows, strict=True)]


def text(value: str | None) -> str:
    """Any text. It holds no NUL: PostgreSQL has no place for one."""
    if value is None:
        return NULL
    return '"' + value.replace("\\", r"\\").replace('"', r"\"") + '"'


#: For texts of few values, such as models and error codes.
known_text = lru_cache(maxsize=2048)(text)


def number(value: int | float | None) -> str:
    return NULL if value is None else repr(value)


def boolean(value: bool) -> str:
    return "t" if value else "f"


def json(value: Any) -> str:
    return text(msgspec.json.encode(value).decode())


def binary(value: bytes | None) -> str:
    return NULL if value is None else rf'"\\x{value.hex()}"'


def month(moment: datetime) -> str:
    """The suffix of the partition that holds this moment (UTC)."""
    return f"{moment.year:04d}{moment.month:02d}"

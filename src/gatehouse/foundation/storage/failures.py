"""Describes database errors for the command line, which shows no tracebacks: one line with the error and advice."""

from collections.abc import Iterator
from typing import Final

import psycopg
from psycopg import errors
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from gatehouse.foundation.log import redacted
from gatehouse.foundation.storage.roles import WrongRole

#: exceptions that the command line catches
DATABASE_ERRORS: Final = (psycopg.Error, SQLAlchemyError)

#: advice by the text of the error; PostgreSQL has no error codes for refused connections
_CONNECTION_ADVICE: Final = (
    ("authentication failed", "check user and password in DATABASE_URL and DATABASE_OWNER_URL"),
    ("no password supplied", "put user and password into DATABASE_URL and DATABASE_OWNER_URL"),
    ("pg_hba.conf", "PostgreSQL's pg_hba.conf has no entry for this machine: add one"),
    ("does not exist", "create the database and its login (docs/security.md), or correct DATABASE_URL"),
    ("too many", "all connections are in use: raise max_connections, or lower DATABASE_POOL_SIZE"),
    ("starting up", "wait until PostgreSQL has started"),
    ("unsupported startup parameter", "a pooler refuses the options in DATABASE_URL: remove them"),
)
_ADVICE: Final[tuple[tuple[type[psycopg.Error], str], ...]] = (
    (errors.InsufficientPrivilege, "migrate as the login that owns the tables (DATABASE_OWNER_URL), and grant"
     " gatehouse_app and gatehouse_service to the login of DATABASE_URL"),
    (errors.UndefinedTable, "run gatehouse migrate"),
    (errors.UndefinedColumn, "run gatehouse migrate"),
    (errors.DiskFull, "free space on PostgreSQL's disk"),
    (errors.LockNotAvailable, "another session has locked the tables: try again"),
    (errors.ReadOnlySqlTransaction, "this is a read-only replica: set DATABASE_URL to the primary"),
)  # fmt: skip


def describe(error: BaseException) -> str:
    """Returns one line with the error and advice, without values or passwords."""
    cause: BaseException = error
    if isinstance(error, DBAPIError) and error.orig is not None:
        cause = error.orig
    if type(cause) is psycopg.ProgrammingError and cause.sqlstate is None:
        # libpq's message quotes the URL with its password.
        return "the URL cannot be read; write it as postgresql://user:password@host/database, special characters as %XX"
    # The message of a failed connection has a line for each address, and other lines with hints. The first line of any
    # other message is complete.
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()] or [type(cause).__name__]
    line = next((line for line in reversed(lines) if "failed: " in line), lines[0])
    return redacted(f"{line}; {_advice(cause, line)}")


def _advice(cause: BaseException, line: str) -> str:
    if isinstance(cause, WrongRole):
        return "run as a superuser or the owner: GRANT gatehouse_app, gatehouse_service TO that login"
    return next(_matching_advice(cause, line), "run gatehouse doctor for details")


def _matching_advice(cause: BaseException, line: str) -> Iterator[str]:
    for kind, advice in _ADVICE:
        if isinstance(cause, kind):
            yield advice
    if isinstance(cause, psycopg.OperationalError):
        for text, advice in _CONNECTION_ADVICE:
            if text in line:
                yield advice
        yield "check that PostgreSQL is running and that DATABASE_URL names its address"

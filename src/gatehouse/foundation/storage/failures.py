"""A database's error in one line that says what to do: for the command line, which shows no tracebacks."""

from collections.abc import Iterator
from typing import Final

import psycopg
from psycopg import errors
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from gatehouse.foundation.log import redacted
from gatehouse.foundation.storage.roles import WrongRole

#: What the command line catches.
FAILURES: Final = (psycopg.Error, SQLAlchemyError)

#: PostgreSQL gives no code for what it refuses while connecting: its words have to do.
_WHILE_CONNECTING: Final = (
    ("authentication failed", "check user and password in DATABASE_URL and DATABASE_OWNER_URL"),
    ("no password supplied", "put user and password into DATABASE_URL and DATABASE_OWNER_URL"),
    ("pg_hba.conf", "PostgreSQL's pg_hba.conf does not let this machine in: add a line for it"),
    ("does not exist", "create the database and its login (docs/security.md), or mend DATABASE_URL"),
    ("too many", "all connections are in use: raise max_connections, or lower DATABASE_POOL_SIZE"),
    ("starting up", "wait until PostgreSQL is up"),
    ("unsupported startup parameter", "a pooler refuses DATABASE_URL's options: take them away"),
)
_MENDS: Final[tuple[tuple[type[psycopg.Error], str], ...]] = (
    (errors.InsufficientPrivilege, "migrate as the login that owns the tables (DATABASE_OWNER_URL), and grant"
     " gatehouse_app and gatehouse_service to the login of DATABASE_URL"),
    (errors.UndefinedTable, "run gatehouse migrate"),
    (errors.UndefinedColumn, "run gatehouse migrate"),
    (errors.DiskFull, "make room on PostgreSQL's disk"),
    (errors.LockNotAvailable, "somebody else holds the tables: try again"),
    (errors.ReadOnlySqlTransaction, "this is a read-only replica: point DATABASE_URL at the primary"),
)  # fmt: skip


def told(error: BaseException) -> str:
    """What happened, and the mend. One line without values or passwords."""
    cause: BaseException = error
    if isinstance(error, DBAPIError) and error.orig is not None:
        cause = error.orig
    if type(cause) is psycopg.ProgrammingError and cause.sqlstate is None:
        # libpq quotes what it cannot read, with the password in it.
        return "the URL cannot be read; write it as postgresql://user:password@host/database, special characters as %XX"
    # A failed connection is told for each address, with hints in between. Else the first line has it all.
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()] or [type(cause).__name__]
    line = next((line for line in reversed(lines) if "failed: " in line), lines[0])
    return redacted(f"{line}; {_mend(cause, line)}")


def _mend(cause: BaseException, line: str) -> str:
    if isinstance(cause, WrongRole):
        return "as a superuser or the owner: GRANT gatehouse_app, gatehouse_service TO that login"
    return next(_mends(cause, line), "gatehouse doctor says more")


def _mends(cause: BaseException, line: str) -> Iterator[str]:
    for kind, mend in _MENDS:
        if isinstance(cause, kind):
            yield mend
    if isinstance(cause, psycopg.OperationalError):
        for words, mend in _WHILE_CONNECTING:
            if words in line:
                yield mend
        yield "see that PostgreSQL runs and that DATABASE_URL names it"

"""The drivers' exceptions for a database that is unavailable or overloaded, or a transaction that can be retried. They
are not faults of the program."""

from typing import Final

import psycopg
from sqlalchemy import exc as sql

DATABASE_UNAVAILABLE_ERRORS: Final = (
    sql.OperationalError,
    sql.InterfaceError,
    sql.TimeoutError,
    psycopg.OperationalError,
)

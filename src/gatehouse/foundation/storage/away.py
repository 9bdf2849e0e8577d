"""The exceptions that the drivers raise if the database is unavailable or overloaded, or if a transaction can be
retried. They are not faults of the program."""

from typing import Final

import psycopg
from sqlalchemy import exc as sql

DATABASE_UNAVAILABLE_ERRORS: Final = (
    sql.OperationalError,
    sql.InterfaceError,
    sql.TimeoutError,
    psycopg.OperationalError,
)

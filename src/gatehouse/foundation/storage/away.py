"""What the drivers raise while the database is away, is overloaded, or gave a transaction up that can be tried again:
no fault of ours."""

from typing import Final

import psycopg
from sqlalchemy import exc as sql

DATABASE_AWAY: Final = (sql.OperationalError, sql.InterfaceError, sql.TimeoutError, psycopg.OperationalError)

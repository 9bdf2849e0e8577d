"""The command line's description of database errors: one line with advice and without the password."""

import psycopg
import pytest
from psycopg import errors
from sqlalchemy.exc import OperationalError, ProgrammingError

from gatehouse.foundation.storage.failures import describe
from gatehouse.foundation.storage.roles import wrong_role


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errors.InsufficientPrivilege("permission denied for table alembic_version"), "DATABASE_OWNER_URL"),
        (psycopg.OperationalError('failed: FATAL:  password authentication failed for user "x"'), "check user"),
        (psycopg.OperationalError('failed: FATAL:  database "x" does not exist'), "create the database"),
        (psycopg.OperationalError("connection failed: Connection refused\n\tIs the server running?"), "refused; check"),
        (psycopg.OperationalError("failed: FATAL:  sorry, too many clients already"), "max_connections"),
        (
            ProgrammingError("SELECT 1", {}, errors.UndefinedTable('relation "users" does not exist')),
            "gatehouse migrate",
        ),
        (OperationalError("SELECT 1", {}, psycopg.OperationalError("gone\nDETAIL: a value")), "gone; check that"),
        (wrong_role("gatehouse_app", "permission denied"), "GRANT gatehouse_app, gatehouse_service"),
        (
            psycopg.ProgrammingError('missing "=" after "postgres//me:hunter2@db/x" in connection info string'),
            "cannot be read",
        ),
    ],
)
def test_an_error_is_one_line_with_advice(error: Exception, words: str) -> None:
    line = describe(error)
    assert words in line
    assert "\n" not in line
    assert "a value" not in line
    assert "hunter2" not in line

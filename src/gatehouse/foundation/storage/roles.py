"""The database roles of connections, for SQLAlchemy's pools and psycopg.

The role is set after the connection has been opened, and not by the startup option `role`. A pooler may refuse this
option. It may also drop the option without an error, so that all queries would run with the login's rights. A
connection that does not have its role is closed.
"""

from pathlib import Path
from typing import Any, Final

import psycopg
import structlog
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine

APP_ROLE: Final = "gatehouse_app"
SERVICE_ROLE: Final = "gatehouse_service"

#: SQL that creates both roles, for migrations
CREATE_ROLES_SQL: Final = Path(__file__).parent / "roles.sql"

# The time zone is UTC, because in other zones PostgreSQL's computations with times depend on daylight saving. With
# these keepalive settings PostgreSQL detects a lost client within half a minute, and not within the default of two
# hours: the lost client's session may have locks. The settings have no effect on connections without TCP.
_SET_ROLE: Final = (
    "SELECT set_config('role', %s, false), set_config('timezone', 'UTC', false),"
    " set_config('tcp_keepalives_idle', '15', false), set_config('tcp_keepalives_interval', '5', false),"
    " set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '30000', false)"
)
#: keepalive settings of the client; settings in the URL take precedence
_KEEPALIVE: Final = {
    "keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000
}  # fmt: skip
#: The platform's tables are in the default schema (`public`). The portal's tables may be in another schema of the same
#: database.
_SET_SEARCH_PATH: Final = "SELECT set_config('search_path', %s, false)"
#: Makes PostgreSQL end idle transactions of pools. A transaction never waits for other services, and waits at most
#: seconds for threads. So a transaction that is idle for longer belongs to a disconnected or frozen process, and its
#: locks block others.
_SET_IDLE_TIMEOUT: Final = "SELECT set_config('idle_in_transaction_session_timeout', '15s', false)"
_CURRENT_ROLE: Final = "SELECT current_user"

log = structlog.get_logger(__name__)
_logged_roles: Final[set[str]] = set()


class WrongRole(psycopg.OperationalError):
    """The connection does not have its role. This is an `OperationalError`, because the database cannot be used."""


def parameters(url: str, **extra: Any) -> dict[str, Any]:
    """Returns the psycopg parameters that are not in the URL: the keepalive settings, and `extra`."""
    in_url = conninfo_to_dict(url)
    return {**{name: value for name, value in _KEEPALIVE.items() if name not in in_url}, **extra}


def connect(url: str, role: str, **extra: Any) -> psycopg.Connection[tuple[Any, ...]]:
    """Returns a connection with `role`. `extra` are psycopg's parameters. Raises `WrongRole`, `psycopg.Error`."""
    connection = psycopg.connect(url, **parameters(url, **extra))
    try:
        set_role(connection, role)
    except BaseException:
        connection.close()
        raise
    return connection


async def connect_async(
    url: str, role: str, *, schema: str | None = None, **extra: Any
) -> psycopg.AsyncConnection[tuple[Any, ...]]:
    """Returns an asyncio connection with `role`. `schema` is the search path. Raises `WrongRole`, `psycopg.Error`."""
    connection = await psycopg.AsyncConnection.connect(url, **parameters(url, **extra))
    try:
        await become_async(connection, role, schema)
    except BaseException:
        await connection.close()
        raise
    return connection


def set_role(connection: psycopg.Connection[Any], role: str) -> None:
    """Sets the connection's role. A rollback does not undo it. Raises `WrongRole`, `psycopg.Error`."""
    try:
        connection.execute(_SET_ROLE, [role])
        row = connection.execute(_CURRENT_ROLE).fetchone()
        connection.commit()
    except psycopg.Error as error:
        raise _role_error(role, error) from None
    check(role, row)


async def become_async(connection: psycopg.AsyncConnection[Any], role: str, schema: str | None = None) -> None:
    """Sets the role of an asyncio connection as `set_role` does, and its search path if `schema` is not None."""
    try:
        if schema is not None:
            await connection.execute(_SET_SEARCH_PATH, [schema])
        await connection.execute(_SET_ROLE, [role])
        row = await (await connection.execute(_CURRENT_ROLE)).fetchone()
        await connection.commit()
    except psycopg.Error as error:
        raise _role_error(role, error) from None
    check(role, row)


def act_as(engine: AsyncEngine, role: str, schema: str | None = None) -> None:
    """Sets role, search path and idle timeout for each connection of an engine."""

    def connected(connection: Any, _record: object) -> None:
        cursor = connection.cursor()
        try:
            if schema is not None:
                cursor.execute(_SET_SEARCH_PATH, [schema])
            cursor.execute(_SET_IDLE_TIMEOUT)
            cursor.execute(_SET_ROLE, [role])
            cursor.execute(_CURRENT_ROLE)
            check(role, cursor.fetchone())
            connection.commit()
        except BaseException as error:
            connection.close()
            if isinstance(error, psycopg.Error) and not isinstance(error, WrongRole):
                raise _role_error(role, error) from None
            raise
        finally:
            cursor.close()

    event.listen(engine.sync_engine, "connect", connected)


def check(role: str, row: Any) -> None:
    """Checks that the last value of `row`, which is `current_user`, is `role`. Raises `WrongRole` and logs it once in
    each process."""
    if row is None or row[-1] != role:
        raise wrong_role(role, f"it acts as {row[-1] if row else 'nobody'}, so tenants' rows would not be separated")


def wrong_role(role: str, reason: str) -> WrongRole:
    """Returns the error. Logs the first error for each role in this process."""
    if role not in _logged_roles:
        _logged_roles.add(role)
        log.error("database.wrong_role", role=role, reason=reason)
    return WrongRole(f"the login of DATABASE_URL cannot act as {role}: {reason}")


def _role_error(role: str, error: psycopg.Error) -> psycopg.Error:
    """Returns the error for a failure to set the role. The error of a lost connection is returned unchanged."""
    if isinstance(error, psycopg.OperationalError):
        return error
    return wrong_role(role, str(error).split("\n", 1)[0])

"""The roles that connections act as, in one place for SQLAlchemy's pools, for psycopg and for procrastinate.

`SET ROLE` right after connecting, and not the startup option `role`: a pooler refuses that, or drops it without a
word, and everything would then run with the login's rights. A connection that does not act as its role is closed.
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

#: makes both, for migrations
MAKE: Final = Path(__file__).parent / "roles.sql"

# In UTC, whatever the server's zone is: times that come in a zone with summer time are reckoned with by its wall clock.
# And a peer that is gone is noticed within half a minute, not after the two hours that systems wait: its session may
# hold locks. (A no-op where the connection is no TCP.)
_BECOME: Final = (
    "SELECT set_config('role', %s, false), set_config('timezone', 'UTC', false),"
    " set_config('tcp_keepalives_idle', '15', false), set_config('tcp_keepalives_interval', '5', false),"
    " set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '30000', false)"
)
#: The same on this side; a URL that has one of these comes before it.
_KEEPALIVE: Final = {
    "keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000
}  # fmt: skip
#: The platform's tables are in the login's own schema (`public`); the portal's may be in the same database.
_IN_SCHEMA: Final = "SELECT set_config('search_path', %s, false)"
#: In pools no transaction waits for the outside, and for a thread of its own for seconds at most: whoever is silent for
#: so long in the midst of one was cut off or is frozen, and others wait for its locks.
_NOT_SILENT: Final = "SELECT set_config('idle_in_transaction_session_timeout', '15s', false)"
_WHO: Final = "SELECT current_user"

log = structlog.get_logger(__name__)
_told: Final[set[str]] = set()


class WrongRole(psycopg.OperationalError):
    """The login cannot act as a role, or does not. To its callers it is a database that cannot be used."""


def parameters(url: str, **own: Any) -> dict[str, Any]:
    """psycopg's parameters beside the URL, of connections that serve: what all have in common, and `own`."""
    named = conninfo_to_dict(url)
    return {**{name: value for name, value in _KEEPALIVE.items() if name not in named}, **own}


def connect(url: str, role: str, **own: Any) -> psycopg.Connection[tuple[Any, ...]]:
    """A connection that acts as `role`; `own` are psycopg's parameters. Raises `WrongRole`, `psycopg.Error`."""
    connection = psycopg.connect(url, **parameters(url, **own))
    try:
        become(connection, role)
    except BaseException:
        connection.close()
        raise
    return connection


async def connect_async(
    url: str, role: str, *, schema: str | None = None, **own: Any
) -> psycopg.AsyncConnection[tuple[Any, ...]]:
    """The same for asyncio. `schema` is where names without one are looked up."""
    connection = await psycopg.AsyncConnection.connect(url, **parameters(url, **own))
    try:
        await become_async(connection, role, schema)
    except BaseException:
        await connection.close()
        raise
    return connection


def become(connection: psycopg.Connection[Any], role: str) -> None:
    """Acts as `role` from now on, also after a rollback."""
    try:
        connection.execute(_BECOME, [role])
        row = connection.execute(_WHO).fetchone()
        connection.commit()
    except psycopg.Error as error:
        raise _cannot(role, error) from None
    check(role, row)


async def become_async(connection: psycopg.AsyncConnection[Any], role: str, schema: str | None = None) -> None:
    """The same for asyncio."""
    try:
        if schema is not None:
            await connection.execute(_IN_SCHEMA, [schema])
        await connection.execute(_BECOME, [role])
        row = await (await connection.execute(_WHO)).fetchone()
        await connection.commit()
    except psycopg.Error as error:
        raise _cannot(role, error) from None
    check(role, row)


def act_as(engine: AsyncEngine, role: str, schema: str | None = None) -> None:
    """Makes each connection of an engine act as `role`, in `schema`, and give up a transaction that it left alone."""

    def connected(connection: Any, _record: object) -> None:
        cursor = connection.cursor()
        try:
            if schema is not None:
                cursor.execute(_IN_SCHEMA, [schema])
            cursor.execute(_NOT_SILENT)
            cursor.execute(_BECOME, [role])
            cursor.execute(_WHO)
            check(role, cursor.fetchone())
            connection.commit()
        except BaseException as error:
            connection.close()
            if isinstance(error, psycopg.Error) and not isinstance(error, WrongRole):
                raise _cannot(role, error) from None
            raise
        finally:
            cursor.close()

    event.listen(engine.sync_engine, "connect", connected)


def check(role: str, row: Any) -> None:
    """`row` ends with what `current_user` is. Raises `WrongRole`, and logs that once a process."""
    if row is None or row[-1] != role:
        raise wrong(role, f"it acts as {row[-1] if row else 'nobody'}, so that rows would not be kept apart")


def wrong(role: str, reason: str) -> WrongRole:
    """The error, logged if it is the first of this process."""
    if role not in _told:
        _told.add(role)
        log.error("database.wrong_role", role=role, reason=reason)
    return WrongRole(f"the login of DATABASE_URL cannot act as {role}: {reason}")


def _cannot(role: str, error: psycopg.Error) -> psycopg.Error:
    """What setting the role failed with, said for whoever runs this; a lost connection stays one."""
    if isinstance(error, psycopg.OperationalError):
        return error
    return wrong(role, str(error).split("\n", 1)[0])

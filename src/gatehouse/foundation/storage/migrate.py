"""Migrations: applied as the owner before serving; serving is refused while the schema differs from the code's."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from psycopg.errors import InsufficientPrivilege
from sqlalchemy import Connection, NullPool, create_engine
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.schema import CreateSchema

from gatehouse.foundation.storage.database import sqlalchemy_url
from gatehouse.foundation.storage.locks import GlobalLock


class SchemaDrift(Exception):
    """The database's schema is not the one that this version serves on."""


def upgrade(url: str, scripts: Path, schema: str | None = None) -> None:
    """Brings the schema to this version's, and makes `schema` where it is named. Two starts at once are one after the
    other.

    A newer schema that this version serves on is left as it is; another one that it does not know is `SchemaDrift`.
    """
    config = _config(url, scripts)
    engine = create_engine(sqlalchemy_url(url))
    try:
        with engine.begin() as connection:
            # Held until commit: whoever comes second finds everything done.
            connection.exec_driver_sql(GlobalLock.SCHEMA_UPGRADE.sql)
            if schema is not None:
                connection.execute(CreateSchema(schema, if_not_exists=True))
                _look_up_in(connection, schema)
            at = MigrationContext.configure(connection).get_current_revision()
            if at is not None and at not in _known(config):
                _check_newer(connection, at, head(scripts))
                return
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    finally:
        engine.dispose()


def current(url: str) -> str | None:
    """The revision that the database is at, or None for an empty one."""
    with _connected(url) as connection:
        return MigrationContext.configure(connection).get_current_revision()


def head(scripts: Path) -> str | None:
    return ScriptDirectory.from_config(_config("postgresql://", scripts)).get_current_head()


def check(url: str, scripts: Path, schema: str | None = None, *, mend: str = "gatehouse migrate") -> None:
    """Raises `SchemaDrift` where the schema is behind this version, or is one that it has never heard of. `mend` is the
    command that brings it up to date.

    A newer schema that says so is served: migrations expand before they contract, so an upgrade needs no stop.
    """
    wanted = head(scripts)
    with _connected(url) as connection:
        if schema is not None:
            _look_up_in(connection, schema)
        try:
            at = MigrationContext.configure(connection).get_current_revision()
        except ProgrammingError as error:
            if not isinstance(error.orig, InsufficientPrivilege):
                raise
            raise SchemaDrift(
                "The login of DATABASE_URL may not read the schema's version:"
                " GRANT gatehouse_app, gatehouse_service TO it, as the owner."
            ) from None
        if at == wanted:
            return
        if at is None or at in _known(_config(url, scripts)):
            raise SchemaDrift(f"The database is at {at or 'no revision'}, this version needs {wanted}: run {mend}.")
        _check_newer(connection, at, wanted)


def _look_up_in(connection: Connection, schema: str) -> None:
    connection.exec_driver_sql("SELECT set_config('search_path', %s, true)", (schema,))


def _known(config: Config) -> set[str]:
    return {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}


def _check_newer(connection: Connection, at: str, wanted: str | None) -> None:
    """Raises `SchemaDrift` unless the newer schema says that this version still works on it."""
    # No table, or no right to read it, says nothing.
    readable = connection.exec_driver_sql(
        "SELECT has_table_privilege(to_regclass('schema_compatibility'), 'SELECT')"
    ).scalar()
    if readable:
        served = connection.exec_driver_sql("SELECT serves FROM schema_compatibility").scalars()
        if any(wanted in versions for versions in served):
            return
    raise SchemaDrift(f"The database is at {at}, which this version ({wanted}) does not know: install a newer one.")


@contextmanager
def _connected(url: str) -> Iterator[Connection]:
    engine = create_engine(sqlalchemy_url(url), poolclass=NullPool, connect_args={"connect_timeout": 10})
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def _config(url: str, scripts: Path) -> Config:
    config = Config()
    config.set_main_option("script_location", str(scripts))
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    return config

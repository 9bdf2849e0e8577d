"""Applies migrations, as the owner and before a process serves, and checks the schema: a process does not serve with an
incompatible schema."""

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
    """This version cannot serve with the schema of the database."""


def upgrade(url: str, scripts: Path, schema: str | None = None) -> None:
    """Upgrades the database to the revision of this version. Creates `schema` if it is not None. Concurrent calls run
    one after the other.

    Does not change a newer revision that declares this version compatible. Raises `SchemaDrift` for any other unknown
    revision.
    """
    config = _config(url, scripts)
    engine = create_engine(sqlalchemy_url(url))
    try:
        with engine.begin() as connection:
            # The lock lasts until the commit. A second process then has nothing to upgrade.
            connection.exec_driver_sql(GlobalLock.SCHEMA_UPGRADE.sql)
            if schema is not None:
                connection.execute(CreateSchema(schema, if_not_exists=True))
                _set_search_path(connection, schema)
            revision = MigrationContext.configure(connection).get_current_revision()
            if revision is not None and revision not in _known_revisions(config):
                _check_newer(connection, revision, head(scripts))
                return
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    finally:
        engine.dispose()


def current(url: str) -> str | None:
    """Returns the database's revision, or None for an empty database."""
    with _connection(url) as connection:
        return MigrationContext.configure(connection).get_current_revision()


def head(scripts: Path) -> str | None:
    return ScriptDirectory.from_config(_config("postgresql://", scripts)).get_current_head()


def check(url: str, scripts: Path, schema: str | None = None, *, mend: str = "gatehouse migrate") -> None:
    """Raises `SchemaDrift` if the database's revision is older than this version, or unknown to it. `mend` is the
    command that upgrades it.

    A newer revision may declare that this version is compatible with it. Migrations add new parts in one version and
    remove old parts in a later one, so that an upgrade needs no downtime.
    """
    required = head(scripts)
    with _connection(url) as connection:
        if schema is not None:
            _set_search_path(connection, schema)
        try:
            revision = MigrationContext.configure(connection).get_current_revision()
        except ProgrammingError as error:
            if not isinstance(error.orig, InsufficientPrivilege):
                raise
            raise SchemaDrift(
                "The login of DATABASE_URL has no right to read the version of the schema."
                " Run as the owner: GRANT gatehouse_app, gatehouse_service TO that login."
            ) from None
        if revision == required:
            return
        if revision is None or revision in _known_revisions(_config(url, scripts)):
            raise SchemaDrift(
                f"The database is at {revision or 'no revision'}, this version needs {required}: run {mend}."
            )
        _check_newer(connection, revision, required)


def _set_search_path(connection: Connection, schema: str) -> None:
    connection.exec_driver_sql("SELECT set_config('search_path', %s, true)", (schema,))


def _known_revisions(config: Config) -> set[str]:
    return {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}


def _check_newer(connection: Connection, revision: str, required: str | None) -> None:
    """Raises `SchemaDrift` unless the newer revision declares that this version is compatible with it."""
    # The table with the declarations may be missing or unreadable.
    readable = connection.exec_driver_sql(
        "SELECT has_table_privilege(to_regclass('schema_compatibility'), 'SELECT')"
    ).scalar()
    if readable:
        served = connection.exec_driver_sql("SELECT serves FROM schema_compatibility").scalars()
        if any(required in versions for versions in served):
            return
    raise SchemaDrift(
        f"The database is at {revision}, which is unknown to this version ({required}): install a newer one."
    )


@contextmanager
def _connection(url: str) -> Iterator[Connection]:
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

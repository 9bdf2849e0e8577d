"""Migrations: applied as the owner before serving; serving is refused while the schema differs from the code's."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from gatehouse.foundation.storage.database import sqlalchemy_url


class SchemaDrift(Exception):
    """The database's schema is not the one that this version serves on."""


def upgrade(url: str, scripts: Path) -> None:
    """Brings the schema to this version's. Two starts at once are one after the other."""
    config = _config(url, scripts)
    engine = create_engine(sqlalchemy_url(url))
    try:
        with engine.begin() as connection:
            # Held until commit: whoever comes second finds everything done.
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7411990)")
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    finally:
        engine.dispose()


def current(url: str) -> str | None:
    """The revision that the database is at, or None for an empty one."""
    engine = create_engine(sqlalchemy_url(url))
    try:
        with engine.connect() as connection:
            return MigrationContext.configure(connection).get_current_revision()
    finally:
        engine.dispose()


def head(scripts: Path) -> str | None:
    return ScriptDirectory.from_config(_config("postgresql://", scripts)).get_current_head()


def check(url: str, scripts: Path) -> None:
    """Raises `SchemaDrift` where the schema is behind this version, or is one that it has never heard of.

    A schema one version ahead is served: migrations expand before they contract, so an upgrade needs no stop.
    """
    at, wanted = current(url), head(scripts)
    if at == wanted:
        return
    known = {script.revision for script in ScriptDirectory.from_config(_config(url, scripts)).walk_revisions()}
    if at is None or at in known:
        raise SchemaDrift(
            f"The database is at {at or 'no revision'}, this version needs {wanted}: run gatehouse migrate."
        )
    if not _declares_compatible(url, wanted):
        raise SchemaDrift(f"The database is at {at}, which this version ({wanted}) does not know: install a newer one.")


def _declares_compatible(url: str, wanted: str | None) -> bool:
    """Whether the newer schema says that this version still works on it."""
    engine = create_engine(sqlalchemy_url(url))
    try:
        with engine.connect() as connection:
            row = connection.exec_driver_sql("SELECT serves FROM schema_compatibility").first()
            return row is not None and wanted in row[0]
    finally:
        engine.dispose()


def _config(url: str, scripts: Path) -> Config:
    config = Config()
    config.set_main_option("script_location", str(scripts))
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    return config

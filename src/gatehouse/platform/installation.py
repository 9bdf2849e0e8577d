"""One installation: which database it has, its schema, its master keys. Shared by `serve` and the command line."""

import subprocess
from pathlib import Path

import msgspec
import psycopg

from gatehouse.foundation.sealing import MasterKeys, load_master_keys
from gatehouse.foundation.settings import BadSettings, Settings
from gatehouse.foundation.storage import embedded, migrate, roles
from gatehouse.foundation.storage.failures import told
from gatehouse.platform import bootstrap
from gatehouse.platform.bootstrap import FirstAdmin
from gatehouse.platform.migrations import SCRIPTS


class Installation(msgspec.Struct, frozen=True):
    """`url` is what the application connects to, `owner_url` what migrates."""

    settings: Settings
    url: str
    owner_url: str
    master_keys: MasterKeys

    @property
    def home(self) -> Path:
        return self.settings.gatehouse_home


def connect(settings: Settings | None = None) -> Installation:
    """Starts the embedded database where there is no other. Raises `BadSettings`, also when nothing answers."""
    settings = settings or Settings.from_environment()
    if settings.database_url is None:
        settings.gatehouse_home.mkdir(parents=True, exist_ok=True)
        try:
            url = embedded.start(settings.gatehouse_home)
        except (subprocess.SubprocessError, OSError, AssertionError, RuntimeError) as error:
            said = f"{type(error).__name__}: {error}".split("\n", 1)[0]
            raise BadSettings(
                f"GATEHOUSE_HOME: the embedded PostgreSQL does not start ({said});"
                f" {settings.gatehouse_home / 'postgres' / 'log'} says why"
            ) from None
        return Installation(settings, url, url, load_master_keys(settings))
    url = settings.database_url
    keys = load_master_keys(settings)
    try:
        psycopg.connect(url, connect_timeout=10).close()
    except psycopg.Error as error:
        raise BadSettings(f"DATABASE_URL: {told(error)}") from None
    return Installation(settings, url, settings.database_owner_url or url, keys)


def prepare(installation: Installation) -> FirstAdmin | None:
    """Migrates, and makes what a first start needs. The first admin where it was just made."""
    migrate.upgrade(installation.owner_url, SCRIPTS)
    return bootstrap.prepare(installation.owner_url, installation.settings, installation.master_keys)


def check_all(installation: Installation) -> None:
    """What every process asks that works on the database for long: schema, roles, pooler. Raises as these do."""
    check(installation)
    check_roles(installation)
    check_pooler(installation)


def check(installation: Installation) -> None:
    """Raises `SchemaDrift`."""
    migrate.check(installation.url, SCRIPTS)


def check_roles(installation: Installation) -> None:
    """Raises `WrongRole` where the login of `DATABASE_URL` cannot act as the roles that serve."""
    for role in (roles.APP_ROLE, roles.SERVICE_ROLE):
        roles.connect(installation.url, role, connect_timeout=10).close()


def check_pooler(installation: Installation) -> None:
    """Raises `BadSettings` where a pooler lends connections by the transaction, and roles with them."""
    who = "SELECT pg_backend_pid()"
    with (
        psycopg.connect(installation.url, autocommit=True, connect_timeout=10) as first,
        psycopg.connect(installation.url, autocommit=True, connect_timeout=10) as second,
    ):
        # Two open connections that are one to the server.
        if first.execute(who).fetchone() == second.execute(who).fetchone():
            raise BadSettings(
                "DATABASE_URL: a pooler lends connections by the transaction; set pool_mode = session in PgBouncer"
            )

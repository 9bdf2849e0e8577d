"""One installation: which database it has, its schema, its master keys. Shared by `serve` and the command line."""

import subprocess
from pathlib import Path

import msgspec
import psycopg

from gatehouse.foundation.sealing import MasterKeys, Sealer, check_opens, load_master_keys
from gatehouse.foundation.serving import make_home
from gatehouse.foundation.settings import BadSettings, Settings
from gatehouse.foundation.storage import embedded, migrate, roles
from gatehouse.foundation.storage.failures import told
from gatehouse.platform import bootstrap, first_admin
from gatehouse.platform.access.signing import NEWEST_SIGNING_KEY
from gatehouse.platform.first_admin import FirstAdmin
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
        home = make_home(settings.gatehouse_home)
        # Before the database: a key that cannot be read starts nothing.
        keys = load_master_keys(settings)
        url = embedded_url(home)
        return Installation(settings, url, url, keys)
    url = settings.database_url
    keys = load_master_keys(settings)
    try:
        psycopg.connect(url, connect_timeout=10).close()
    except psycopg.Error as error:
        raise BadSettings(f"DATABASE_URL: {told(error)}") from None
    return Installation(settings, url, settings.database_owner_url or url, keys)


def embedded_url(home: Path) -> str:
    """Starts the embedded database for this process. Raises `BadSettings`."""
    try:
        return embedded.use(home)
    except (subprocess.SubprocessError, OSError, AssertionError, RuntimeError) as error:
        reason = f"{type(error).__name__}: {error}".split("\n", 1)[0]
        raise BadSettings(
            f"GATEHOUSE_HOME: the embedded PostgreSQL does not start ({reason}); see {home / 'postgres' / 'log'}"
        ) from None


def prepare(installation: Installation) -> None:
    """Migrates, and makes what a first start needs."""
    migrate.upgrade(installation.owner_url, SCRIPTS)
    bootstrap.prepare(installation.owner_url, installation.settings, installation.master_keys)


def unused_first_admin(installation: Installation) -> FirstAdmin | None:
    """The first admin whose made-up password lies in this home and has not been used."""
    with roles.connect(installation.url, roles.SERVICE_ROLE, connect_timeout=10) as connection:
        return first_admin.unused(connection, installation.home)


def check_all(installation: Installation) -> None:
    """What every process asks that works on the database for long. Raises as the checks do."""
    check(installation)
    check_roles(installation)
    check_pooler(installation)
    check_master_key(installation)


def check(installation: Installation) -> None:
    """Raises `SchemaDrift`."""
    migrate.check(installation.url, SCRIPTS)


def check_roles(installation: Installation) -> None:
    """Raises `WrongRole` where the login of `DATABASE_URL` cannot act as the roles that serve."""
    for role in (roles.APP_ROLE, roles.SERVICE_ROLE):
        roles.connect(installation.url, role, connect_timeout=10).close()


def check_master_key(installation: Installation) -> None:
    """Raises `BadSettings` where the master key does not open the key that signs tokens: then it opens no secret."""
    with roles.connect(installation.url, roles.SERVICE_ROLE, connect_timeout=10) as connection:
        newest = connection.execute(NEWEST_SIGNING_KEY).fetchone()
    if newest is None:
        return
    kid, sealed = newest
    sealer = Sealer(installation.master_keys.keys, installation.master_keys.current)
    check_opens(sealer, str(sealed), f"signing_key:{kid}".encode())


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

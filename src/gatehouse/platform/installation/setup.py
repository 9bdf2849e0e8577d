"""An installation: its database, schema and master keys. `serve` and the command line use this module."""

from pathlib import Path
from typing import Final

import msgspec
import psycopg

from gatehouse.foundation.processes.serving import make_home
from gatehouse.foundation.secrets.sealing import (
    MasterKeys,
    Sealer,
    check_opens,
    load_master_keys,
)
from gatehouse.foundation.settings import BadSettings, Settings
from gatehouse.foundation.storage import migrate, roles
from gatehouse.foundation.storage.connecting import embedded_url, require_connection
from gatehouse.platform.access.signing import NEWEST_SIGNING_KEY
from gatehouse.platform.installation import bootstrap, first_admin
from gatehouse.platform.installation.first_admin import FirstAdmin
from gatehouse.platform.live.nodes import NODE_EXPIRY_SECONDS, machine_name
from gatehouse.platform.migrations import SCRIPTS

_OTHER_MACHINES: Final = (
    "SELECT DISTINCT split_part(host, '/', 1) FROM nodes"
    " WHERE kind = 'gateway' AND host <> %s AND seen_at > now() - make_interval(secs => %s)"
)


class Installation(msgspec.Struct, frozen=True):
    """The connections and keys of an installation. The application connects to `url`; migrations connect to
    `owner_url`."""

    settings: Settings
    url: str
    owner_url: str
    master_keys: MasterKeys

    @property
    def home(self) -> Path:
        return self.settings.gatehouse_home


def connect(settings: Settings | None = None) -> Installation:
    """Connect to the configured database, or start the embedded one. Raises `BadSettings`, also if the database does
    not answer."""
    settings = settings or Settings.from_environment()
    if settings.database_url is None:
        home = make_home(settings.gatehouse_home)
        # The keys are loaded before the database starts, so that an unreadable key does not leave a process running.
        keys = load_master_keys(settings)
        url = embedded_url(home)
        return Installation(settings, url, url, keys)
    url = settings.database_url
    keys = load_master_keys(settings)
    require_connection(url, "DATABASE_URL")
    return Installation(settings, url, settings.database_owner_url or url, keys)


def prepare(installation: Installation) -> None:
    """Migrate the schema and create the rows that a first start needs."""
    migrate.upgrade(installation.owner_url, SCRIPTS)
    bootstrap.prepare(installation.owner_url, installation.settings, installation.master_keys)


def unused_first_admin(installation: Installation) -> FirstAdmin | None:
    """Return the first admin if its generated password is stored in this home and was never used."""
    with roles.connect(installation.url, roles.SERVICE_ROLE, connect_timeout=10) as connection:
        return first_admin.unused(connection, installation.home)


def check_all(installation: Installation) -> None:
    """Run all of the checks below. `gatehouse serve platform` and `gatehouse worker` call this at their start. Raises
    the same errors as the checks."""
    check(installation)
    check_roles(installation)
    check_pooler(installation)
    check_master_key(installation)
    check_single_machine(installation)


def check(installation: Installation) -> None:
    """Check that the schema matches this version. Raises `SchemaDrift`."""
    migrate.check(installation.url, SCRIPTS)


def check_roles(installation: Installation) -> None:
    """Check that the login of `DATABASE_URL` can assume the roles of the application. Raises `WrongRole`."""
    for role in (roles.APP_ROLE, roles.SERVICE_ROLE):
        roles.connect(installation.url, role, connect_timeout=10).close()


def check_single_machine(installation: Installation) -> None:
    """Check that no other machine serves, if this one may run MCP servers. Raises `BadSettings`."""
    settings = installation.settings
    if settings.mcp_stdio_commands is None or settings.embedded:
        return
    with roles.connect(installation.url, roles.SERVICE_ROLE, connect_timeout=10) as connection:
        rows = connection.execute(_OTHER_MACHINES, [machine_name(), NODE_EXPIRY_SECONDS]).fetchall()
    if rows:
        raise BadSettings(
            f"MCP_STDIO_COMMANDS: another machine, {rows[0][0]}, serves with this database; stdio MCP servers need an"
            f" installation on one machine. If that machine has ended, wait {NODE_EXPIRY_SECONDS:.0f} s"
        )


def check_master_key(installation: Installation) -> None:
    """Check that the master key opens the newest signing key. A wrong master key would not open the other secrets
    either. Raises `BadSettings`."""
    with roles.connect(installation.url, roles.SERVICE_ROLE, connect_timeout=10) as connection:
        newest = connection.execute(NEWEST_SIGNING_KEY).fetchone()
    if newest is None:
        return
    kid, sealed = newest
    sealer = Sealer(installation.master_keys.keys, installation.master_keys.current)
    check_opens(sealer, str(sealed), f"signing_key:{kid}".encode())


def check_pooler(installation: Installation) -> None:
    """Check that `DATABASE_URL` is not a connection pooler in transaction mode, because such a pooler mixes up the
    roles of connections. Raises `BadSettings`."""
    backend_pid = "SELECT pg_backend_pid()"
    with (
        psycopg.connect(installation.url, autocommit=True, connect_timeout=10) as first,
        psycopg.connect(installation.url, autocommit=True, connect_timeout=10) as second,
    ):
        # Both connections are open at the same time, so they must have different server processes.
        if first.execute(backend_pid).fetchone() == second.execute(backend_pid).fetchone():
            raise BadSettings(
                "DATABASE_URL: a connection pooler works in transaction mode; set pool_mode = session in PgBouncer"
            )

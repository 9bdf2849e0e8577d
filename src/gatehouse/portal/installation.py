"""Prepares and checks an installation of the portal: its database, its schema and its keys."""

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
from gatehouse.foundation.secrets.tokens import mint_token
from gatehouse.foundation.storage import migrate, roles
from gatehouse.foundation.storage.connecting import embedded_url, require_connection
from gatehouse.foundation.storage.locks import GlobalLock
from gatehouse.portal.keys import authorities, signing
from gatehouse.portal.migrations import SCHEMA, SCRIPTS
from gatehouse.portal.settings import PortalSettings

_KEY_FILE: Final = "admin.key.sha256"
_NEWEST_SIGNING_KEY: Final = (
    "SELECT kid, sealed_private FROM portal.signing_keys WHERE retired_at IS NULL ORDER BY created_at DESC, kid LIMIT 1"
)


class PortalInstallation(msgspec.Struct, frozen=True):
    """An installation. `url` is the database's URL with the login of the application, and `owner_url` is the URL with
    the login of migrations."""

    settings: PortalSettings
    url: str
    owner_url: str
    master_keys: MasterKeys

    @property
    def sealer(self) -> Sealer:
        return Sealer(self.master_keys.keys, self.master_keys.current)


def connect(settings: PortalSettings | None = None) -> PortalInstallation:
    """Returns the installation of the settings. Starts the embedded database if no other database is configured. Raises
    `BadSettings`, also if the database does not respond."""
    settings = settings or PortalSettings.from_environment()
    if settings.portal_database_url is None:
        home = make_home(settings.home)
        # Load the keys before the database is started, so that an unreadable key is reported first.
        keys = load_master_keys(settings)
        url = embedded_url(home)
        return PortalInstallation(settings, url, url, keys)
    url = settings.portal_database_url
    keys = load_master_keys(settings)
    require_connection(url, "PORTAL_DATABASE_URL")
    return PortalInstallation(settings, url, settings.portal_database_owner_url or url, keys)


def prepare(installation: PortalInstallation) -> str | None:
    """Applies migrations, and creates the keys that a first start needs. Returns the admin key if it was created, else
    None. It must be shown now, because only its digest is stored."""
    migrate.upgrade(installation.owner_url, SCRIPTS, SCHEMA)
    with psycopg.connect(installation.owner_url) as connection:
        # The lock serializes concurrent first starts.
        connection.execute(GlobalLock.PORTAL_FIRST_START.sql)
        signing.ensure_key(connection, installation.sealer)
        authorities.ensure(connection, installation.sealer)
    return _ensure_admin_key(installation.settings)


def check(installation: PortalInstallation) -> None:
    """Checks an installation before it serves. Raises `SchemaDrift`, `WrongRole` if the login cannot act as the roles
    of the application, and `BadSettings`."""
    migrate.check(installation.url, SCRIPTS, SCHEMA, mend="gatehouse migrate portal")
    for role in (roles.APP_ROLE, roles.SERVICE_ROLE):
        roles.connect(installation.url, role, connect_timeout=10).close()
    check_master_key(installation)


def check_master_key(installation: PortalInstallation) -> None:
    """Checks that the master key opens the newest signing key. Raises `BadSettings` if it does not, because such a key
    opens no secret of the database."""
    with roles.connect(installation.url, roles.SERVICE_ROLE, connect_timeout=10) as connection:
        newest = connection.execute(_NEWEST_SIGNING_KEY).fetchone()
    if newest is not None:
        check_opens(installation.sealer, str(newest[1]), signing.context(str(newest[0])))


def admin_keys(settings: PortalSettings) -> tuple[bytes, ...]:
    """Returns the digests of the admin keys in the environment, else of the key that the first start has created."""
    path = settings.home / _KEY_FILE
    if settings.portal_admin_api_key or not path.exists():
        return settings.portal_admin_api_key
    return (bytes.fromhex(path.read_text("ascii")),)


def _ensure_admin_key(settings: PortalSettings) -> str | None:
    if admin_keys(settings):
        return None
    key, path = mint_token("adm_"), settings.home / _KEY_FILE
    path.touch(mode=0o600)
    path.write_text(key.digest.hex(), "ascii")
    return key.plaintext

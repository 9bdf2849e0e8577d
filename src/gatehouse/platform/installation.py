"""One installation: which database it has, its schema, its master keys. Shared by `serve` and the command line."""

from pathlib import Path

import msgspec
import psycopg

from gatehouse.foundation.sealing import MasterKeys, load_master_keys
from gatehouse.foundation.settings import BadSettings, Settings
from gatehouse.foundation.storage import embedded, migrate
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
        url = embedded.start(settings.gatehouse_home)
        return Installation(settings, url, url, load_master_keys(settings))
    url = settings.database_url
    keys = load_master_keys(settings)
    try:
        psycopg.connect(url, connect_timeout=10).close()
    except psycopg.Error as error:
        first = str(error).strip().splitlines()[-1]
        raise BadSettings(f"DATABASE_URL: the database does not answer ({first})") from None
    return Installation(settings, url, settings.database_owner_url or url, keys)


def prepare(installation: Installation) -> FirstAdmin | None:
    """Migrates, and makes what a first start needs. The first admin where it was just made."""
    migrate.upgrade(installation.owner_url, SCRIPTS)
    return bootstrap.prepare(installation.owner_url, installation.settings, installation.master_keys)


def check(installation: Installation) -> None:
    """Raises `SchemaDrift`."""
    migrate.check(installation.url, SCRIPTS)

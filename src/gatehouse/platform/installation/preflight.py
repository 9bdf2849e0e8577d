"""Checks the settings of the platform before anything is started."""

import psycopg
from psycopg.conninfo import conninfo_to_dict

from gatehouse.engine.mcp.stdio.commands import read_commands
from gatehouse.engine.rate_limits.selection import PathLimits
from gatehouse.foundation.processes import preflight
from gatehouse.foundation.settings import BadSettings, Settings
from gatehouse.foundation.storage import embedded
from gatehouse.platform.installation.bootstrap import check_admin_password
from gatehouse.platform.organization.system_config.keys import check_environment
from gatehouse.platform.tracing.exporter import headers_of


def settings(*, listens: bool = True) -> Settings:
    """Return the settings. Raises one `BadSettings` that lists every fault. With `listens`, this process opens a port,
    so the TLS settings are checked too."""
    tls = (preflight.listener_tls,) if listens else ()
    return preflight.checked_settings(
        Settings,
        (_database_urls, _admin_password, PathLimits, lambda _: check_environment(), headers_of, _stdio, *tls),
    )


def _stdio(settings: Settings) -> None:
    read_commands(settings.mcp_stdio_commands)


def _admin_password(settings: Settings) -> None:
    """Check the password that the first start uses. Later starts ignore this setting."""
    if not settings.embedded or embedded.exists(settings.gatehouse_home):
        return
    if settings.gatehouse_admin_password is not None:
        check_admin_password(settings)


def _database_urls(settings: Settings) -> None:
    faults = []
    for name, url in (("DATABASE_URL", settings.database_url), ("DATABASE_OWNER_URL", settings.database_owner_url)):
        try:
            conninfo_to_dict(url or "")
        except psycopg.ProgrammingError:
            # The message of the exception may contain the URL with its password.
            faults.append(f"{name}: cannot be read as postgresql://user:password@host:port/database")
    if faults:
        raise BadSettings("\n".join(faults))

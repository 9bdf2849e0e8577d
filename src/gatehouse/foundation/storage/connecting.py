"""Finds the database at the start of a process, and describes why it cannot be used."""

import subprocess
from pathlib import Path

import psycopg

from gatehouse.foundation.settings import BadSettings
from gatehouse.foundation.storage import embedded
from gatehouse.foundation.storage.failures import describe


def embedded_url(home: Path) -> str:
    """Starts the embedded database for this process and returns its URL. Raises `BadSettings`."""
    try:
        return embedded.use(home)
    except (subprocess.SubprocessError, OSError, AssertionError, RuntimeError) as error:
        reason = f"{type(error).__name__}: {error}".split("\n", 1)[0]
        raise BadSettings(
            f"GATEHOUSE_HOME: the embedded PostgreSQL does not start ({reason}); see {home / 'postgres' / 'log'}"
        ) from None


def require_connection(url: str, variable: str) -> None:
    """Connects to the database once. Raises `BadSettings`, with the name of the environment variable of `url`."""
    try:
        psycopg.connect(url, connect_timeout=10).close()
    except psycopg.Error as error:
        raise BadSettings(f"{variable}: {describe(error)}") from None

"""Runs programs of the embedded PostgreSQL, such as pg_dump. So operators need not install PostgreSQL programs that
match the version of their server."""

import subprocess
from pathlib import Path
from typing import Final

from gatehouse.foundation.storage.embedded import PROGRAMS

#: maximum time of a program; it is long, because a dump can be large
_TIMEOUT_SECONDS: Final = 24 * 3600


class ToolFailed(Exception):
    """A program failed. The message contains the first line of its standard error."""


def pg_dump(url: str, target: Path) -> None:
    """Writes a compressed and consistent dump of the whole database."""
    # If row-level security hides rows from the login, pg_dump fails and writes no incomplete dump.
    _run("pg_dump", "--format=custom", f"--file={target}", f"--dbname={url}")


def pg_restore(url: str, source: Path) -> None:
    """Restores a dump in one transaction, into a database without Gatehouse's tables."""
    _run("pg_restore", "--single-transaction", "--no-owner", "--exit-on-error", f"--dbname={url}", str(source))


def check_dump(source: Path) -> None:
    """Raises `ToolFailed` if the file is not a complete dump."""
    _run("pg_restore", "--file=/dev/null", str(source))


def _run(program: str, *arguments: str) -> None:
    command = [str(PROGRAMS / program), *arguments]
    process = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)  # noqa: S603
    if process.returncode != 0:
        lines = [line for line in process.stderr.strip().splitlines() if line] or ["no reason given"]
        raise ToolFailed(f"{program}: {lines[0]}")

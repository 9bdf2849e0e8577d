"""PostgreSQL's own programs from the wheel: nobody has to install a client of the right version."""

import subprocess
from pathlib import Path
from typing import Final

from gatehouse.foundation.storage.embedded import PROGRAMS

#: a dump can be large; one that stands still for a day is stuck
_PATIENCE_SECONDS: Final = 24 * 3600


class ToolFailed(Exception):
    """The program's own last words, in a line."""


def pg_dump(url: str, target: Path) -> None:
    """Everything in the database, compressed. One transaction's view, however long it takes."""
    # It fails for a login that row-level security would show only a part: that is no backup.
    _run("pg_dump", "--format=custom", f"--file={target}", f"--dbname={url}")


def pg_restore(url: str, source: Path) -> None:
    """All or nothing, into a database without tables of ours."""
    _run("pg_restore", "--single-transaction", "--no-owner", "--exit-on-error", f"--dbname={url}", str(source))


def check_dump(source: Path) -> None:
    """Raises `ToolFailed` where the file is no whole dump."""
    _run("pg_restore", "--file=/dev/null", str(source))


def _run(program: str, *arguments: str) -> None:
    command = [str(PROGRAMS / program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_SECONDS, check=False)  # noqa: S603
    if done.returncode != 0:
        words = [line for line in done.stderr.strip().splitlines() if line] or ["no reason given"]
        raise ToolFailed(f"{program}: {words[0]}")

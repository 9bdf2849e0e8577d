"""The first administrator's generated password. It is stored until its first use, and each start shows it."""

import os
import sys
from pathlib import Path
from typing import Final

import click
import msgspec
import psycopg
from sqlalchemy import text

from gatehouse.foundation.journal.files import sync_directory
from gatehouse.foundation.processes.serving import make_home
from gatehouse.foundation.secrets.passwords import matches_now
from gatehouse.foundation.storage.database import Database
from gatehouse.platform.changes.change import DEFAULT_TENANT

_FILE_NAME: Final = "first-admin"

_ACCOUNT: Final = (
    "SELECT last_login_at IS NOT NULL, password_hash FROM users WHERE tenant_id = %s AND operator AND email = %s"
)
_HAS_SIGNED_IN: Final = text(
    "SELECT last_login_at IS NOT NULL FROM users WHERE tenant_id = :tenant AND operator AND email = :email"
)


class FirstAdmin(msgspec.Struct):
    """The first administrator's e-mail address, generated password, and the file that stores them."""

    email: str
    password: str
    file: Path

    def announce(self) -> None:
        """Print the password. Output that is not a terminal may be logged, so it gets the file's name instead."""
        if sys.stdout.isatty():
            click.echo(f"First admin: {self.email}, password {self.password} (shown until its first use)")
        else:
            click.echo(f"First admin: {self.email}; the password is in {self.file} until its first use")


def path_in(home: Path) -> Path:
    return (home / _FILE_NAME).absolute()


def stored(home: Path) -> FirstAdmin | None:
    """Read the stored password; None if there is no valid file."""
    path = path_in(home)
    try:
        email, password = path.read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return None
    return FirstAdmin(email, password, path)


def store(home: Path, email: str, password: str) -> None:
    """Store the password durably; the account is created afterwards. Raises `BadSettings` if `home` is not writable."""
    path = path_in(make_home(home))
    unfinished = path.with_name(path.name + ".new")
    unfinished.unlink(missing_ok=True)
    unfinished.touch(mode=0o600, exist_ok=False)
    with unfinished.open("w", encoding="utf-8") as file:
        file.write(f"{email}\n{password}\n")
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    sync_directory(path.parent)


def unused(connection: psycopg.Connection[tuple[object, ...]], home: Path) -> FirstAdmin | None:
    """Return the stored password if it is still the account's and was never used. Otherwise delete the file and return
    None."""
    admin = stored(home)
    if admin is None:
        return None
    row = connection.execute(_ACCOUNT, [DEFAULT_TENANT, admin.email]).fetchone()
    if row is None or row[0] or not row[1] or not matches_now(str(row[1]), admin.password):
        admin.file.unlink(missing_ok=True)
        return None
    return admin


async def forget_when_used(database: Database, home: Path) -> None:
    """Delete the stored password if the first admin has signed in."""
    admin = stored(home)
    if admin is None:
        return
    async with database.service() as session:
        used = (
            await session.execute(_HAS_SIGNED_IN, {"tenant": DEFAULT_TENANT, "email": admin.email})
        ).scalar_one_or_none()
    if used:
        admin.file.unlink(missing_ok=True)

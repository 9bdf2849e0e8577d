"""The generated password of the first administrator, and the link with which it is replaced in a browser. Both are
stored until the first sign-in, and are shown at each start."""

import os
import sys
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import click
import msgspec
import psycopg
from sqlalchemy import text

from gatehouse.foundation.ids import new_id
from gatehouse.foundation.journal.files import sync_directory
from gatehouse.foundation.processes.serving import make_home
from gatehouse.foundation.secrets import tokens
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
# Revokes the token of an earlier start.
_REVOKE_LINKS: Final = (
    "DELETE FROM one_time_tokens t USING users u WHERE t.user_id = u.id AND t.used_at IS NULL AND u.tenant_id = %s"
    " AND u.operator AND u.email = %s"
)
_ADD_LINK: Final = (
    "INSERT INTO one_time_tokens (id, tenant_id, user_id, purpose, digest, expires_at, created_at)"
    " SELECT %s, tenant_id, id, 'invitation', %s, now() + interval '24 hours', now() FROM users"
    " WHERE tenant_id = %s AND operator AND email = %s"
)
#: Path of the console's first steps, which follow the page of the link.
_FIRST_STEPS: Final = "/console/start"


class FirstAdmin(msgspec.Struct):
    """The e-mail address and generated password of the first administrator, and the file in which they are stored."""

    email: str
    password: str
    file: Path
    #: URL of the page on which a name and a password are set; None if there is no link
    link: str | None = None

    def announce(self) -> None:
        """Print the password and the link. If the output is not a terminal, it may be logged, so the name of the file
        is printed instead."""
        if sys.stdout.isatty():
            click.echo(f"First admin: {self.email}, password {self.password} (shown until its first use)")
            if self.link is not None:
                click.echo(f"Or set your own in a browser, once, within 24 hours: {self.link}")
        else:
            secrets = "the password is" if self.link is None else "the password, and a link to set your own, are"
            click.echo(f"First admin: {self.email}; {secrets} in {self.file} until its first use")


def path_in(home: Path) -> Path:
    return (home / _FILE_NAME).absolute()


def stored(home: Path) -> FirstAdmin | None:
    """Read the stored password. Returns None if there is no valid file."""
    path = path_in(home)
    try:
        email, password, *links = path.read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return None
    return FirstAdmin(email, password, path, links[0] if links else None)


def store(home: Path, email: str, password: str, link: str | None = None) -> None:
    """Store the values durably, before the account is created. Raises `BadSettings` if `home` is not writable."""
    path = path_in(make_home(home))
    unfinished = path.with_name(path.name + ".new")
    unfinished.unlink(missing_ok=True)
    unfinished.touch(mode=0o600, exist_ok=False)
    with unfinished.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in (email, password, link) if line is not None)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    sync_directory(path.parent)


def unused(connection: psycopg.Connection[tuple[object, ...]], home: Path) -> FirstAdmin | None:
    """Return the stored password if it is still valid for the account and was never used. Otherwise delete the file and
    return None."""
    admin = stored(home)
    if admin is None:
        return None
    row = connection.execute(_ACCOUNT, [DEFAULT_TENANT, admin.email]).fetchone()
    if row is None or row[0] or not row[1] or not matches_now(str(row[1]), admin.password):
        admin.file.unlink(missing_ok=True)
        return None
    return admin


def renew_link(owner_url: str, url: str, admin: FirstAdmin) -> FirstAdmin:
    """Store a new link to the server at `url`, and return the admin with this link. The token of the previous link is
    revoked."""
    minted = tokens.mint_token("inv_")
    with psycopg.connect(owner_url) as connection:
        connection.execute(_REVOKE_LINKS, [DEFAULT_TENANT, admin.email])
        connection.execute(_ADD_LINK, [new_id(), minted.digest, DEFAULT_TENANT, admin.email])
    query = urlencode({"token": minted.plaintext, "email": admin.email, "next": _FIRST_STEPS})
    link = f"{url}/login/invitation?{query}"
    store(admin.file.parent, admin.email, admin.password, link)
    return FirstAdmin(admin.email, admin.password, admin.file, link)


async def forget_when_used(database: Database, home: Path) -> None:
    """Delete the stored password once the first admin has signed in."""
    admin = stored(home)
    if admin is None:
        return
    async with database.service() as session:
        used = (
            await session.execute(_HAS_SIGNED_IN, {"tenant": DEFAULT_TENANT, "email": admin.email})
        ).scalar_one_or_none()
    if used:
        admin.file.unlink(missing_ok=True)

"""Implements `archive query`, `list`, `verify`, `run`."""

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import click

from gatehouse.cli.main import CommandError

if TYPE_CHECKING:
    from gatehouse.foundation.secrets.sealing import Sealer
    from gatehouse.platform.installation.setup import Installation
    from gatehouse.platform.records.archive.storage.manifest import Connection
    from gatehouse.platform.records.archive.storage.places import ArchiveStorage

_TENANT = click.option("--tenant", help="Only the data of this organization, by its slug.")


class Archive(NamedTuple):
    installed: "Installation"
    sealer: "Sealer"
    storage: "ArchiveStorage"
    connection: "Connection"

    def tenant(self, slug: str | None) -> UUID | None:
        if slug is None:
            return None
        row = self.connection.execute("SELECT id FROM tenants WHERE slug = %s", [slug]).fetchone()
        if row is None:
            raise CommandError(f"there is no organization with the slug {slug}")
        tenant_id: UUID = row[0]
        return tenant_id

    def slugs(self) -> dict[UUID, str]:
        return dict(self.connection.execute("SELECT id, slug FROM tenants ORDER BY slug").fetchall())


@click.group()
def archive() -> None:
    """Query, list, verify and fill the archive of old records."""


@archive.command(epilog="Example: echo 'SELECT count(*) FROM usage_records' | gatehouse archive query -")
@click.argument("sql")
@_TENANT
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
def query(sql: str, tenant: str | None, form: str) -> None:
    """Run a SQL query (DuckDB) over the archived audit_events, usage_records and dlp_events; `-` reads it from standard
    input.

    The query can read only these three tables, and it cannot change anything.
    """
    from gatehouse.platform.records.archive import querying
    from gatehouse.platform.records.archive.query_output import FORMS

    if sql == "-":
        sql = sys.stdin.read()
    with _open_archive() as archive_access:
        try:
            for text in FORMS[form](
                querying.query(archive_access.connection, archive_access.storage, sql, archive_access.tenant(tenant))
            ):
                click.echo(text, nl=False)
        except querying.BadQuery as error:
            raise CommandError(str(error)) from None


@archive.command("list", epilog="Example: gatehouse archive list --tenant default")
@_TENANT
def list_files(tenant: str | None) -> None:
    """List the files of the archive with their records, dates and paths."""
    from gatehouse.platform.records.archive.storage import manifest

    with _open_archive() as archive_access:
        slugs = archive_access.slugs()
        for file in manifest.list_files(archive_access.connection, archive_access.tenant(tenant)):
            dates = f"{file.first_at:%Y-%m-%d} to {file.last_at:%Y-%m-%d}"
            click.echo(
                f"{slugs[file.tenant_id]}  {file.records}  {dates}  {file.rows} rows  {file.bytes} bytes"
                f"  {file.tier}  {file.path}"
            )


@archive.command(epilog="Example: gatehouse archive verify")
@_TENANT
def verify(tenant: str | None) -> None:
    """Read every file and check that its content is intact. `gatehouse audit verify` also checks the audit chain in the
    files.

    Exits with status 1 if a file is damaged.
    """
    from gatehouse.platform.records.archive import verifying
    from gatehouse.platform.records.archive.storage import manifest

    unsound = 0
    with _open_archive() as archive_access:
        files = manifest.list_files(archive_access.connection, archive_access.tenant(tenant))
        for file in files:
            try:
                verifying.check(archive_access.sealer, archive_access.storage, file)
            except verifying.DamagedFile as error:
                unsound += 1
                click.echo(f"{file.path}: {error}")
    click.echo(f"{len(files)} files with {sum(file.rows for file in files)} rows, {unsound or 'none'} of them unsound")
    if unsound:
        raise click.exceptions.Exit(1)


@archive.command(epilog="Example: gatehouse archive run --tenant default")
@_TENANT
def run(tenant: str | None) -> None:
    """Archive the records that are older than the hot window now, without waiting for the scheduled time."""
    from gatehouse.foundation import log
    from gatehouse.platform.records.archive import jobs
    from gatehouse.platform.records.archive.storage.writer import ArchiverRunning

    with _open_archive() as archive_access:
        log.configure(archive_access.installed.settings.log_level)
        tenant_id = archive_access.tenant(tenant)
        tenants = [tenant_id] if tenant_id else list(archive_access.slugs())
        try:
            rows = jobs.run(
                archive_access.installed.settings, archive_access.installed.url, archive_access.sealer, tenants
            )
        except ArchiverRunning:
            raise CommandError("the archiver is already running: try again when it has ended") from None
        failures = archive_access.connection.execute(
            "SELECT t.slug, r.status FROM archive_runs r JOIN tenants t ON t.id = r.tenant_id"
            " WHERE t.id = ANY(%s) AND r.status <> 'success' ORDER BY t.slug",
            [tenants],
        ).fetchall()
    click.echo(f"{rows} rows went to the archive.")
    for slug, status in failures:
        if status == "held":
            click.echo(f"{slug}: there is a legal hold, so nothing was archived")
    if failed := [slug for slug, status in failures if status != "held"]:
        raise CommandError(f"not all rows of {', '.join(failed)} were archived; the log contains the reason")


@contextlib.contextmanager
def _open_archive() -> Iterator[Archive]:
    from gatehouse.foundation.secrets.sealing import Sealer
    from gatehouse.foundation.storage import roles
    from gatehouse.platform.installation import setup
    from gatehouse.platform.records.archive.storage.places import archive_storage

    installed = setup.connect()
    setup.check(installed)
    keys = installed.master_keys
    connection = roles.connect(installed.url, roles.SERVICE_ROLE, autocommit=True, connect_timeout=10)
    try:
        yield Archive(installed, Sealer(keys.keys, keys.current), archive_storage(installed.settings), connection)
    except OSError as error:
        raise CommandError(f"the archive: {error}".split("\n", 1)[0]) from None
    finally:
        connection.close()

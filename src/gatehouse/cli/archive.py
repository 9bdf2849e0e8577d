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
    place: "ArchiveStorage"
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
    """Query, list, check and fill the archive of old records."""


@archive.command(epilog="Example: echo 'SELECT count(*) FROM usage_records' | gatehouse archive query -")
@click.argument("sql")
@_TENANT
@click.option("--format", "form", type=click.Choice(["table", "csv", "json"]), default="table", show_default=True)
def query(sql: str, tenant: str | None, form: str) -> None:
    """Run a SQL query (DuckDB) over the archived audit_events, usage_records and dlp_events; `-` reads it from standard
    input.

    It can read these three tables and nothing else of this machine, and changes nothing.
    """
    from gatehouse.platform.records.archive import querying
    from gatehouse.platform.records.archive.query_output import FORMS

    if sql == "-":
        sql = sys.stdin.read()
    with _opened() as opened:
        try:
            for text in FORMS[form](querying.query(opened.connection, opened.place, sql, opened.tenant(tenant))):
                click.echo(text, nl=False)
        except querying.BadQuery as error:
            raise CommandError(str(error)) from None


@archive.command("list", epilog="Example: gatehouse archive list --tenant default")
@_TENANT
def listed(tenant: str | None) -> None:
    """List the files with their records, dates and paths."""
    from gatehouse.platform.records.archive.storage import manifest

    with _opened() as opened:
        slugs = opened.slugs()
        for file in manifest.list_files(opened.connection, opened.tenant(tenant)):
            dates = f"{file.first_at:%Y-%m-%d} to {file.last_at:%Y-%m-%d}"
            click.echo(
                f"{slugs[file.tenant_id]}  {file.records}  {dates}  {file.rows} rows  {file.bytes} bytes"
                f"  {file.tier}  {file.path}"
            )


@archive.command(epilog="Example: gatehouse archive verify")
@_TENANT
def verify(tenant: str | None) -> None:
    """Read every file and check its content. `gatehouse audit verify` also checks the audit chain in the files.

    Exits with status 1 if a file is unsound.
    """
    from gatehouse.platform.records.archive import verifying
    from gatehouse.platform.records.archive.storage import manifest

    unsound = 0
    with _opened() as opened:
        files = manifest.list_files(opened.connection, opened.tenant(tenant))
        for file in files:
            try:
                verifying.check(opened.sealer, opened.place, file)
            except verifying.DamagedFile as error:
                unsound += 1
                click.echo(f"{file.path}: {error}")
    click.echo(f"{len(files)} files with {sum(file.rows for file in files)} rows, {unsound or 'none'} of them unsound")
    if unsound:
        raise click.exceptions.Exit(1)


@archive.command(epilog="Example: gatehouse archive run --tenant default")
@_TENANT
def run(tenant: str | None) -> None:
    """Archive records past the hot window now, instead of at the scheduled time."""
    from gatehouse.foundation import log
    from gatehouse.platform.records.archive import jobs
    from gatehouse.platform.records.archive.storage.writer import ArchiverRunning

    with _opened() as opened:
        log.configure(opened.installed.settings.log_level)
        tenant_id = opened.tenant(tenant)
        tenants = [tenant_id] if tenant_id else list(opened.slugs())
        try:
            rows = jobs.run(opened.installed.settings, opened.installed.url, opened.sealer, tenants)
        except ArchiverRunning:
            raise CommandError("the archiver is running already: try again when it is done") from None
        failures = opened.connection.execute(
            "SELECT t.slug, r.status FROM archive_runs r JOIN tenants t ON t.id = r.tenant_id"
            " WHERE t.id = ANY(%s) AND r.status <> 'success' ORDER BY t.slug",
            [tenants],
        ).fetchall()
    click.echo(f"{rows} rows went to the archive.")
    for slug, status in failures:
        if status == "held":
            click.echo(f"{slug}: there is a legal hold, nothing was done")
    if failed := [slug for slug, status in failures if status != "held"]:
        raise CommandError(f"not all rows of {', '.join(failed)} were archived; the log says why")


@contextlib.contextmanager
def _opened() -> Iterator[Archive]:
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

"""Implements `doctor`, `backup`, `restore`."""

import tarfile
from pathlib import Path

import click

from gatehouse.cli.main import CommandError


@click.command(epilog="Example: gatehouse doctor")
def doctor() -> None:
    """Check this installation and report how to fix it. Exits with status 1 if something must be fixed."""
    from gatehouse.platform.installation.doctor import examine

    failed = False
    for finding in examine():
        failed = failed or finding.verdict == "FAIL"
        mend = f"\n      mend: {finding.remedy}" if finding.remedy else ""
        click.echo(f"{finding.verdict:4}  {finding.check}: {finding.message}{mend}")
    if failed:
        raise click.exceptions.Exit(1)


@click.command(epilog="Example: gatehouse backup /var/backups/gatehouse-monday.tar")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
def backup(file: Path, force: bool) -> None:
    """Save the database and the journal in one file. The platform may serve meanwhile. Keep the master key
    elsewhere."""
    from gatehouse.foundation.storage.tools import ToolFailed
    from gatehouse.platform.installation import backup as saving
    from gatehouse.platform.installation import setup

    if file.exists() and not force:
        raise CommandError(f"{file} is there already; --force replaces it")
    try:
        meta = saving.save(setup.connect(), file)
    except (ToolFailed, OSError) as error:
        raise CommandError(str(error)) from None
    click.echo(f"Saved {file} ({file.stat().st_size // 1024} KiB, schema {meta.schema}).")
    click.echo(
        f"To restore it, you need the master key with the id {' or '.join(meta.master_key_ids)}."
        " The file does not contain it."
    )


@click.command(epilog="Example: gatehouse restore /var/backups/gatehouse-monday.tar")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Replace the installation that is in the database.")
def restore(file: Path, force: bool) -> None:
    """Restore a backup. No process may use the database meanwhile."""
    from gatehouse.foundation.processes.serving import CannotStart, HomeLock
    from gatehouse.foundation.settings import Settings
    from gatehouse.foundation.storage.tools import ToolFailed
    from gatehouse.platform.installation import backup as saving
    from gatehouse.platform.installation import setup

    try:
        settings = Settings.from_environment()
        # The lock ensures that no process serves from this home folder meanwhile.
        with HomeLock(settings.gatehouse_home):
            meta = saving.load(setup.connect(settings), file, force=force)
    except CannotStart as error:
        raise CommandError(str(error)) from None
    except (ToolFailed, OSError, tarfile.TarError, saving.CannotRestore) as error:
        raise CommandError(str(error)) from None
    click.echo(f"Restored {file}, which version {meta.version} saved on {meta.created_at:%Y-%m-%d %H:%M} UTC.")

"""Implements `audit verify`."""

import itertools

import click

from gatehouse.cli.main import CommandError

#: Maximum number of breaks of one chain that are shown.
_MAX_SHOWN = 20


@click.group()
def audit() -> None:
    """Check the audit chain."""


@audit.command(epilog="Example: gatehouse audit verify --tenant default")
@click.option("--tenant", help="Only the chain of this organization, by its slug.")
def verify(tenant: str | None) -> None:
    """Read every audit event and check that none was changed, removed, inserted or moved.

    Archived events are checked too. If a chain is broken, the command prints the places and exits with status 1. It
    also lists records that outposts have lost. It can run while the platform serves."""
    from gatehouse.foundation.secrets.sealing import Sealer
    from gatehouse.platform.installation import setup
    from gatehouse.platform.records.archive.storage.places import archive_storage
    from gatehouse.platform.records.audit.verify import Verifier

    installed = setup.connect()
    keys = installed.master_keys
    verifier = Verifier(installed.url, Sealer(keys.keys, keys.current), archive_storage(installed.settings))
    try:
        chains = verifier.chains(tenant)
        if tenant is not None and not chains:
            raise CommandError(f"there is no organization with the slug {tenant} that has audit events")
        broken = 0
        for chain in chains:
            breaks = list(itertools.islice(verifier.breaks(chain), _MAX_SHOWN + 1))
            broken += bool(breaks)
            click.echo(f"{chain.slug}: {'BROKEN' if breaks else f'{chain.sequence} events, the chain is whole'}")
            for fault in breaks[:_MAX_SHOWN]:
                click.echo(f"  sequence {fault.sequence}: {fault.reason}")
            if len(breaks) > _MAX_SHOWN:
                click.echo("  and more")
            for gap in verifier.gaps[:_MAX_SHOWN]:
                click.echo(f"  sequence {gap.sequence}: an outpost lost records ({gap.reason})")
            if len(verifier.gaps) > _MAX_SHOWN:
                click.echo(f"  and {len(verifier.gaps) - _MAX_SHOWN} more of these")
    finally:
        verifier.close()
    if broken:
        raise click.exceptions.Exit(1)

"""Implements `migrate`."""

import click


@click.command(epilog="Example: DATABASE_URL=postgresql://... gatehouse migrate")
@click.argument("application", type=click.Choice(["platform", "portal"]), default="platform")
@click.option("--check", is_flag=True, help="Only check that the schema is this version's.")
def migrate(application: str, check: bool) -> None:
    """Migrate the database's schema to this version, and create the rows that a first start needs."""
    if application == "portal":
        _portal(check)
        return
    from gatehouse.platform.installation import setup

    installed = setup.connect()
    if check:
        setup.check(installed)
        click.echo("The schema is this version's.")
        return
    setup.prepare(installed)
    click.echo("The schema is up to date.")
    if (admin := setup.unused_first_admin(installed)) is not None:
        admin.announce()


def _portal(check: bool) -> None:
    from gatehouse.portal import installation

    installed = installation.connect()
    if check:
        installation.check(installed)
        click.echo("The schema is this version's.")
        return
    admin_key = installation.prepare(installed)
    click.echo("The schema is up to date.")
    if admin_key is not None:
        click.echo(f"Admin key (X-API-Key): {admin_key} (shown once)")

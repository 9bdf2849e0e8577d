"""`migrate`."""

import click


@click.command(epilog="Example: DATABASE_URL=postgresql://... gatehouse migrate")
@click.option("--check", is_flag=True, help="Only say whether the schema is this version's.")
def migrate(check: bool) -> None:
    """Bring the database's schema to this version's, and make what a first start needs."""
    from gatehouse.platform import installation

    installed = installation.connect()
    if check:
        installation.check(installed)
        click.echo("The schema is this version's.")
        return
    admin = installation.prepare(installed)
    click.echo("The schema is up to date.")
    if admin is not None and admin.password is not None:
        click.echo(f"First admin: {admin.email}, password {admin.password} (shown once)")

"""`openapi`."""

import json

import click

from gatehouse.cli.main import CommandError


@click.command(epilog="Example: gatehouse openapi platform > openapi.json")
@click.argument("application", type=click.Choice(["platform", "portal", "outpost"]))
def openapi(application: str) -> None:
    """Print the OpenAPI document of an application. Needs no database."""
    if application != "platform":
        raise CommandError(f"this version has no {application} yet")
    from gatehouse.foundation.settings import Settings
    from gatehouse.platform.app import administration

    app, _ = administration(Settings())
    click.echo(json.dumps(app.openapi(), indent=1))

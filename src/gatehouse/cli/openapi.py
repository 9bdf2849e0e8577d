"""`openapi`."""

import json

import click


@click.command(epilog="Example: gatehouse openapi platform > openapi.json")
@click.argument("application", type=click.Choice(["platform", "portal", "outpost"]))
def openapi(application: str) -> None:
    """Print the OpenAPI document of an application. Needs no database."""
    if application == "portal":
        from gatehouse.portal.app import described

        click.echo(json.dumps(described()[0].openapi(), indent=1))
        return
    if application == "outpost":
        from gatehouse.outpost.admin.app import document

        click.echo(json.dumps(document(), indent=1))
        return
    from gatehouse.foundation.settings import Settings
    from gatehouse.platform.app import administration

    app, _ = administration(Settings())
    click.echo(json.dumps(app.openapi(), indent=1))

"""Implements `openapi`."""

import json
from typing import Any

import click


@click.command(epilog="Example: gatehouse openapi platform > openapi.json")
@click.argument("application", type=click.Choice(["platform", "portal", "outpost"]))
def openapi(application: str) -> None:
    """Print the OpenAPI document of an application. The command needs no database."""
    click.echo(json.dumps(document(application), indent=1))


def document(application: str) -> dict[str, Any]:
    """Return the OpenAPI document of `platform`, `portal` or `outpost`."""
    if application == "portal":
        from gatehouse.portal.server.app import build_api

        return build_api()[0].openapi()
    if application == "outpost":
        from gatehouse.outpost.admin.app import document as outpost_document

        return outpost_document()
    from gatehouse.platform.worker.app import administration

    return administration()[0].openapi()

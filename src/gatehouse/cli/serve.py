"""Implements `serve` and `worker`."""

import click

from gatehouse.cli.main import CommandError

_PORTS = {"platform": 8000, "portal": 8100, "outpost": 8300}


@click.command(epilog="Example: gatehouse serve platform --port 8000 --workers 4")
@click.argument("application", type=click.Choice(list(_PORTS)))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port to listen on. Default: 8000 for the platform, 8100 for the portal, 8300 for an outpost.",
)
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(1, 256),
    help="Number of gateway processes of the platform.",
)
@click.option(
    "--admin-port",
    default=8301,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port of an outpost's administration API.",
)
def serve(application: str, host: str, port: int | None, workers: int, admin_port: int) -> None:
    """Serve an application until SIGTERM, then finish running requests."""
    from gatehouse.foundation.processes.serving import CannotStart

    port = _PORTS[application] if port is None else port
    try:
        if application == "platform":
            _platform(host, port, workers)
        elif application == "portal":
            _portal(host, port)
        else:
            _outpost(host, port, admin_port)
    except CannotStart as error:
        raise CommandError(str(error)) from None


def _platform(host: str, port: int, workers: int) -> None:
    from gatehouse.platform.worker.supervisor import Supervisor

    raise click.exceptions.Exit(Supervisor(host=host, port=port, workers=workers).run())


def _portal(host: str, port: int) -> None:
    from gatehouse.portal.server.process import run

    raise click.exceptions.Exit(run(host, port))


def _outpost(host: str, port: int, admin_port: int) -> None:
    from gatehouse.outpost.serve import serve

    serve(host, port, admin_port)


@click.command(epilog="Example: DATABASE_URL=postgresql://... gatehouse worker")
def worker() -> None:
    """Run background jobs. Any number of workers may run, on any machine that can reach the database."""
    from gatehouse.foundation.processes import preflight
    from gatehouse.foundation.settings import Settings
    from gatehouse.platform.installation import setup
    from gatehouse.platform.installation.preflight import settings as checked_settings
    from gatehouse.platform.keeper import run

    settings = checked_settings(listens=False)
    preflight.warn_about_misspelt(Settings)
    if settings.database_url is None:
        raise CommandError(
            "an installation with the embedded database runs its own jobs; set DATABASE_URL to run jobs in a worker"
        )
    setup.check_all(setup.connect(settings))
    run(settings, settings.database_url, journal=False)

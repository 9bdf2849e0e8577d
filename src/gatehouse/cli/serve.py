"""`serve`, and the processes that it starts."""

import click

from gatehouse.cli.main import CommandError


@click.command(epilog="Example: gatehouse serve platform --port 8000 --workers 4")
@click.argument("application", type=click.Choice(["platform"]))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535))
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 256), help="Gateway processes.")
def serve(application: str, host: str, port: int, workers: int) -> None:
    """Serve an application until SIGTERM, which lets requests finish."""
    from gatehouse.platform.supervisor import CannotStart, Supervisor

    try:
        status = Supervisor(host=host, port=port, workers=workers).run()
    except CannotStart as error:
        raise CommandError(str(error)) from None
    raise click.exceptions.Exit(status)


@click.command(hidden=True)
@click.option("--fd", type=int, required=True)
@click.option("--ready-fd", type=int, required=True)
@click.option("--database", required=True)
def gateway(fd: int, ready_fd: int, database: str) -> None:
    from gatehouse.platform.worker import serve_gateway

    serve_gateway(fd, ready_fd, database)


@click.command(hidden=True)
@click.option("--database", required=True)
def keeper(database: str) -> None:
    from gatehouse.platform.keeper import run

    run(database, journal=True)


@click.command(epilog="Example: DATABASE_URL=postgresql://... gatehouse worker")
def worker() -> None:
    """Run background jobs. Any number of these may run, on any machine that reaches the database."""
    from gatehouse.foundation.settings import Settings
    from gatehouse.platform import installation
    from gatehouse.platform.keeper import run

    settings = Settings.from_environment()
    if settings.database_url is None:
        raise CommandError("an embedded installation runs its jobs itself; set DATABASE_URL to run them elsewhere")
    installation.check_all(installation.connect(settings))
    run("env", journal=False)

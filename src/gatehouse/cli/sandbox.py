"""Implements `sandbox`."""

import click


@click.command(epilog="Example: gatehouse sandbox --port 9000")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=9000, show_default=True, type=click.IntRange(0, 65535))
def sandbox(host: str, port: int) -> None:
    """Serve the sandbox provider alone. It is an OpenAI-compatible upstream; the name of a model selects its
    behaviour."""
    import uvicorn

    from gatehouse.ingress.sandbox_server import sandbox_app

    uvicorn.run(sandbox_app, host=host, port=port, access_log=False, log_level="warning")

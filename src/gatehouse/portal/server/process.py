"""Implements `gatehouse serve portal`: one process, which also runs jobs and periodic tasks."""

import sys
from contextlib import ExitStack

import click
import uvicorn

from gatehouse.administration.serving import TunedServer, server_config
from gatehouse.foundation import log, metrics
from gatehouse.foundation.certificates.tls import tls_context
from gatehouse.foundation.processes import preflight
from gatehouse.foundation.processes.children import Interrupted, Interruptible, return_large_blocks
from gatehouse.foundation.processes.serving import HomeLock, listen, url_of
from gatehouse.foundation.storage import embedded
from gatehouse.ingress.protocol import GatewayHttpProtocol
from gatehouse.portal import installation
from gatehouse.portal.host import PortalHost
from gatehouse.portal.installation import PortalInstallation
from gatehouse.portal.server.app import application
from gatehouse.portal.settings import PortalSettings


class _PortalServer(TunedServer):
    """A server that prints its URL when it accepts requests."""

    def __init__(self, config: uvicorn.Config, url: str) -> None:
        super().__init__(config)
        self._url = url

    def on_serving(self) -> None:
        click.echo(f"Gatehouse portal serves on {self._url} (documentation of the API: {self._url}/docs)")
        sys.stdout.flush()


def run(host: str, port: int) -> int:
    """Serves requests until SIGTERM or SIGINT, then completes running requests. Returns the exit code. Raises
    `CannotStart`, `BadSettings`, `SchemaDrift`, and database errors."""
    interruptible = Interruptible()
    settings = preflight.checked_settings(PortalSettings, (preflight.listener_tls,))
    log.configure(settings.log_level)
    preflight.warn_about_misspelt(PortalSettings)
    return_large_blocks()
    context = tls_context(settings.tls_cert_path, settings.tls_key_path, settings.tls_client_ca_path)
    with ExitStack() as stack:
        lock = stack.enter_context(HomeLock(settings.home))
        listener = stack.enter_context(listen(host, port))
        url = url_of(listener, secure=context is not None)
        lock.describe(url)
        if settings.embedded:
            stack.callback(embedded.leave, settings.home, serving=True)
        try:
            with interruptible:
                installed = _open_installation(settings)
        except Interrupted:
            return 0
        metrics.clean(settings.home / "metrics")
        app = application(PortalHost(installed))
        config = server_config(app, GatewayHttpProtocol, tls=context, drain_seconds=settings.drain_seconds)
        server = _PortalServer(config, url)
        if interruptible.ending:
            return 0
        server.run(sockets=[listener])
        return 0 if server.started else 3


def _open_installation(settings: PortalSettings) -> PortalInstallation:
    installed = installation.connect(settings)
    if settings.embedded:
        admin_key = installation.prepare(installed)
        if admin_key is not None:
            # Print the key immediately. Only its digest is stored, so the key would be lost if the start fails later.
            click.echo(f"Admin key (X-API-Key): {admin_key} (shown once)")
            sys.stdout.flush()
    installation.check(installed)
    return installed

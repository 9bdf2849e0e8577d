"""Implements `gatehouse serve portal`: one process, including its jobs and periodic tasks."""

import socket
import sys
from contextlib import ExitStack

import click
import uvicorn

from gatehouse.foundation import log, metrics
from gatehouse.foundation.certificates.tls import tls_context
from gatehouse.foundation.processes import preflight
from gatehouse.foundation.processes.children import Interrupted, Interruptible, return_large_blocks
from gatehouse.foundation.processes.serving import HomeLock, listen, url_of
from gatehouse.foundation.storage import embedded
from gatehouse.ingress.protocol import WatchfulProtocol
from gatehouse.portal import installation
from gatehouse.portal.host import PortalHost
from gatehouse.portal.installation import Installation
from gatehouse.portal.server.app import application
from gatehouse.portal.settings import PortalSettings


class _PortalServer(uvicorn.Server):
    """Prints its address when it serves."""

    def __init__(self, config: uvicorn.Config, url: str) -> None:
        super().__init__(config)
        self._url = url

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            click.echo(f"Gatehouse portal serves on {self._url} (documentation of the API: {self._url}/docs)")
            sys.stdout.flush()


def run(host: str, port: int) -> int:
    """Serves until SIGTERM, then finishes running requests. Raises `CannotStart`, `BadSettings`, `SchemaDrift`, and
    database errors."""
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
        config = uvicorn.Config(
            application(PortalHost(installed)),
            loop="uvloop",
            http=WatchfulProtocol,
            ws="none",
            lifespan="on",
            access_log=False,
            log_config=None,
            server_header=False,
            # The client's address is derived from TRUSTED_PROXIES, in one place.
            proxy_headers=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=settings.drain_seconds,
        )
        if context is not None:
            config.load()
            config.ssl = context
        server = _PortalServer(config, url)
        if interruptible.ending:
            return 0
        server.run(sockets=[listener])
        return 0 if server.started else 3


def _open_installation(settings: PortalSettings) -> Installation:
    installed = installation.connect(settings)
    if settings.embedded:
        admin_key = installation.prepare(installed)
        if admin_key is not None:
            # Printed at once: only its digest is stored, so that a later failure would lose the key.
            click.echo(f"Admin key (X-API-Key): {admin_key} (shown once)")
            sys.stdout.flush()
    installation.check(installed)
    return installed

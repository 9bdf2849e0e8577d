"""Implements `gatehouse serve outpost`: the proxy and, on a separate port, the administration API, in one process."""

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import Iterator

import click
import uvicorn
import uvloop

from gatehouse.administration.serving import server_config, tune_process
from gatehouse.foundation import log, metrics
from gatehouse.foundation.certificates.tls import tls_context
from gatehouse.foundation.processes import preflight
from gatehouse.foundation.processes.children import return_large_blocks
from gatehouse.foundation.processes.serving import HomeLock, listen, url_of
from gatehouse.foundation.settings import BadSettings
from gatehouse.ingress.metrics import METRICS_DIRECTORY
from gatehouse.ingress.protocol import GatewayHttpProtocol
from gatehouse.ingress.protocol_choice import protocol_of
from gatehouse.outpost.admin.app import administration
from gatehouse.outpost.app import OutpostProxy
from gatehouse.outpost.host import OutpostHost
from gatehouse.outpost.records.siem import target
from gatehouse.outpost.settings import OutpostSettings


class _OutpostServer(uvicorn.Server):
    """A server without signal handlers, because one handler ends both servers."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(host: str, port: int, admin_port: int) -> None:
    """Serves requests until SIGTERM or SIGINT, then completes running requests. Raises `BadSettings`, `CannotStart`."""
    settings = preflight.checked_settings(OutpostSettings, (OutpostSettings.checked, listener_tls, siem_target))
    log.configure(settings.log_level)
    preflight.warn_about_misspelt(OutpostSettings)
    return_large_blocks()
    with (
        HomeLock(settings.folder, mode=0o700) as lock,
        listen(host, port) as proxy,
        listen(host, admin_port, "--admin-port") as admin,
    ):
        lock.describe(url_of(proxy, secure=settings.proxy_tls_cert_path is not None))
        uvloop.run(_serve(settings, proxy, admin))


async def _serve(settings: OutpostSettings, proxy: socket.socket, admin: socket.socket) -> None:
    metrics.clean(settings.folder / METRICS_DIRECTORY)
    outpost = OutpostHost(settings)
    await outpost.start()
    try:
        proxy_app = OutpostProxy(outpost)
        servers = [
            _server(proxy_app, settings, protocol_of(settings.ingress, lambda: proxy_app.gateway)),
            _server(administration(outpost), settings, GatewayHttpProtocol),
        ]

        def end() -> None:
            for server in servers:
                server.should_exit = True

        loop = asyncio.get_running_loop()
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signal_number, end)
        secure = settings.proxy_tls_cert_path is not None
        proxy_url, admin_url = url_of(proxy, secure=secure), url_of(admin, secure=secure)
        click.echo(f"The outpost serves on {proxy_url}, its administration on {admin_url}")
        sys.stdout.flush()
        trimming = tune_process()
        await asyncio.gather(servers[0].serve([proxy]), servers[1].serve([admin]))
        trimming.cancel()
    finally:
        await outpost.stop()


def _server(app: object, settings: OutpostSettings, protocol: type[asyncio.Protocol]) -> _OutpostServer:
    config = server_config(
        app,
        protocol,
        tls=tls_context(settings.proxy_tls_cert_path, settings.proxy_tls_key_path),
        drain_seconds=settings.drain_seconds,
        lifespan="off",
    )
    return _OutpostServer(config)


def listener_tls(settings: OutpostSettings) -> None:
    """Checks the TLS settings of the listeners. Raises `BadSettings`, with the names of the proxy's variables."""
    try:
        tls_context(settings.proxy_tls_cert_path, settings.proxy_tls_key_path)
    except BadSettings as error:
        raise BadSettings(str(error).replace("TLS_", "PROXY_TLS_")) from None


def siem_target(settings: OutpostSettings) -> None:
    """Checks the settings of the SIEM receiver. Raises `BadSettings`."""
    if settings.siem_direct_type is not None:
        target(settings)

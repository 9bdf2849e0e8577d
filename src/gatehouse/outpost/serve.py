"""`gatehouse serve outpost`: the proxy and, on a port of its own, the administration API, in one process."""

import asyncio
import contextlib
import gc
import signal
import socket
import sys
from collections.abc import Iterator

import click
import uvicorn
import uvloop

from gatehouse.foundation import log, metrics
from gatehouse.foundation.processes import return_large_blocks
from gatehouse.foundation.tls import tls_context
from gatehouse.ingress.figures import DIRECTORY
from gatehouse.ingress.front import protocol_of
from gatehouse.ingress.protocol import WatchfulProtocol
from gatehouse.outpost.admin.app import administration
from gatehouse.outpost.app import Proxy
from gatehouse.outpost.host import OutpostHost
from gatehouse.outpost.settings import OutpostSettings


class CannotStart(Exception):
    """One line: what is wrong, and what to do."""


class _Server(uvicorn.Server):
    """Signals are handled once for both servers."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(host: str, port: int, admin_port: int) -> None:
    """Serves until SIGTERM, which lets requests finish. Raises `BadSettings`, `CannotStart`."""
    settings = OutpostSettings.from_environment().checked()
    log.configure(settings.log_level)
    return_large_blocks()
    # Before anything is started: what is taken is told at once.
    sockets = [_listen(host, port, "--port"), _listen(host, admin_port, "--admin-port")]
    uvloop.run(_serve(settings, *sockets))


async def _serve(settings: OutpostSettings, proxy: socket.socket, admin: socket.socket) -> None:
    metrics.clean(settings.folder / DIRECTORY)
    outpost = OutpostHost(settings)
    await outpost.start()
    try:
        front = Proxy(outpost)
        servers = [
            _server(front, settings, protocol_of(settings.ingress, lambda: front.gateway)),
            _server(administration(outpost), settings, WatchfulProtocol),
        ]

        def end() -> None:
            for server in servers:
                server.should_exit = True

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, end)
        # What is loaded by now stays: collections need not look at it again.
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        sys.setswitchinterval(0.001)
        scheme = "https" if settings.proxy_tls_cert_path else "http"
        addresses = [f"{scheme}://{_address(each)}" for each in (proxy, admin)]
        click.echo(f"The outpost serves on {addresses[0]}, its administration on {addresses[1]}")
        sys.stdout.flush()
        await asyncio.gather(servers[0].serve([proxy]), servers[1].serve([admin]))
    finally:
        await outpost.stop()


def _server(app: object, settings: OutpostSettings, protocol: type[asyncio.Protocol]) -> _Server:
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        loop="none",
        http=protocol,
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=settings.drain_seconds,
    )
    context = tls_context(settings.proxy_tls_cert_path, settings.proxy_tls_key_path)
    if context is not None:
        config.load()
        config.ssl = context
    return _Server(config)


def _listen(host: str, port: int, option: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        raise CannotStart(f"cannot listen on {host}:{port}: {error.strerror}; choose {option}") from None
    listener.listen(2048)
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"{f'[{host}]' if ':' in host else host}:{port}"

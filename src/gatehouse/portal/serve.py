"""`gatehouse serve portal`: one process, with its jobs and duties in it."""

import fcntl
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import click
import uvicorn

from gatehouse.foundation import log, metrics
from gatehouse.foundation.processes import return_large_blocks
from gatehouse.foundation.storage import embedded
from gatehouse.foundation.tls import tls_context
from gatehouse.ingress.protocol import WatchfulProtocol
from gatehouse.portal import installation
from gatehouse.portal.app import application
from gatehouse.portal.host import PortalHost
from gatehouse.portal.settings import PortalSettings


class CannotStart(Exception):
    """One line: what is wrong, and what to do."""


class _Server(uvicorn.Server):
    """Says where it is when it serves."""

    def __init__(self, config: uvicorn.Config, *, secure: bool, admin_key: str | None) -> None:
        super().__init__(config)
        self._secure = secure
        self._admin_key = admin_key

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started and sockets:
            self._greet(sockets[0])

    def _greet(self, listener: socket.socket) -> None:
        address, port = listener.getsockname()[:2]
        host = f"[{address}]" if ":" in address else address
        url = f"{'https' if self._secure else 'http'}://{host}:{port}"
        click.echo(f"Gatehouse portal serves on {url} (documentation of the API: {url}/docs)")
        if self._admin_key is not None:
            click.echo(f"Admin key (X-API-Key): {self._admin_key} (shown once)")


def run(host: str, port: int) -> int:
    """Until SIGTERM, which lets requests finish. Raises `CannotStart`, `BadSettings`, `SchemaDrift`, the database's."""
    ending = False

    def end(*_: object) -> None:
        nonlocal ending
        ending = True

    # uvicorn has handlers of its own while it serves. Then, and before, a signal must not end this process at once.
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    settings = PortalSettings.from_environment()
    log.configure(settings.log_level)
    return_large_blocks()
    with _database_of(settings):
        installed = installation.connect(settings)
        context = tls_context(settings.tls_cert_path, settings.tls_key_path, settings.tls_client_ca_path)
        admin_key = installation.prepare(installed) if settings.embedded else None
        installation.check(installed)
        listener = _listen(host, port)
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
            # The client's address is worked out from TRUSTED_PROXIES, in one place.
            proxy_headers=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=settings.drain_seconds,
        )
        if context is not None:
            config.load()
            config.ssl = context
        server = _Server(config, secure=context is not None, admin_key=admin_key)
        if ending:
            return 0
        server.run(sockets=[listener])
        return 0 if server.started else 3


@contextmanager
def _database_of(settings: PortalSettings) -> Iterator[None]:
    """An embedded one runs as long as any portal of its home does: the last to leave stops it."""
    if not settings.embedded:
        yield
        return
    with (installation.make_home(settings) / "serving.lock").open("a") as lock:
        # Not while another stops it.
        fcntl.flock(lock, fcntl.LOCK_SH)
        try:
            yield
        finally:
            if _alone(lock.fileno()):
                embedded.stop(settings.home)


def _alone(lock: int) -> bool:
    """Whether no other process holds it. It is given up either way, so of two that leave at once one is alone."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _listen(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        raise CannotStart(f"cannot listen on {host}:{port}: {error.strerror}; choose --port") from None
    listener.listen(2048)
    return listener

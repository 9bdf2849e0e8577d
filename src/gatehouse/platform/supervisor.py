"""`gatehouse serve platform`: opens the port, starts the processes, restarts those that die, ends them in order.

supervisor   this process; holds the port and serves nothing
gateway      one a core: the gateway and administration
keeper       one: drains the journals into the database, runs scheduled work
detection    one: holds the models of DLP's tiers, for all gateways; started when a rule first needs one
"""

import functools
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import structlog

from gatehouse.foundation import log as logs
from gatehouse.foundation import metrics
from gatehouse.foundation.processes import Flag, Forked, return_large_blocks
from gatehouse.foundation.storage import embedded
from gatehouse.foundation.tls import tls_context
from gatehouse.ingress.figures import DIRECTORY
from gatehouse.platform import installation
from gatehouse.platform.bootstrap import FirstAdmin, trial_key
from gatehouse.platform.keeper import run as run_keeper
from gatehouse.platform.sharing import Board
from gatehouse.platform.worker import platform_of, serve_gateway

log = structlog.get_logger(__name__)

#: a process that ends sooner than this after its start has a fault that starting again at once would not mend
_SETTLED_SECONDS = 10.0
_START_SECONDS = 60.0
#: what a gateway needs besides `DRAIN_SECONDS` to end, and what the keeper needs to store what was written last
_GATEWAY_SECONDS = 5.0
_KEEPER_SECONDS = 30.0


class CannotStart(Exception):
    """One line: what is wrong, and what to do."""


class _Child:
    """One process and how to start it again."""

    def __init__(
        self,
        begin: Callable[[], "Forked | subprocess.Popen[bytes]"],
        figures: Path,
        died: Callable[[], None] = lambda: None,
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        self._begin = begin
        self._wanted = wanted
        self._figures = figures
        self._died = died
        self._failures = 0
        self.start_at = 0.0
        self.process: Forked | subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = self._begin()
        self.started_at = time.monotonic()

    def look(self) -> None:
        """Starts it once it is wanted, and again if it has died: at once after a good while, else later and later."""
        now = time.monotonic()
        if self.process is not None and self.process.poll() is not None:
            quick = now - self.started_at < _SETTLED_SECONDS
            self._failures = self._failures + 1 if quick else 0
            self.start_at = now + min(0.1 * 2**self._failures, 10.0)
            metrics.bury(self._figures, self.process.pid)
            self._died()
            self.process = None
        if self.process is None and now >= self.start_at and self._wanted():
            try:
                self.start()
            except OSError as error:
                # No more processes, or no memory, for now: the others go on.
                log.warning("supervisor.cannot_start", reason=str(error))
                self.start_at = now + 1.0

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)


class Supervisor:
    def __init__(self, *, host: str, port: int, workers: int) -> None:
        self._host = host
        self._port = port
        self._workers = workers
        self._ending = False

    def run(self) -> int:
        """Serves until SIGTERM or SIGINT. Raises `CannotStart`, `BadSettings`, `SchemaDrift`, the database's."""
        # Before anything is started: a signal during the start must not leave processes behind.
        signal.signal(signal.SIGTERM, self._end)
        signal.signal(signal.SIGINT, self._end)
        # Whoever started this one may ignore its children's ends, which would hide those of ours.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        return_large_blocks()
        installed = installation.connect()
        settings = installed.settings
        logs.configure(settings.log_level)
        tls_context(settings.tls_cert_path, settings.tls_key_path, settings.tls_client_ca_path)
        embedded_database = installed.settings.embedded
        admin = installation.prepare(installed) if embedded_database else None
        installation.check_all(installed)
        listener = self._listen()
        figures = installed.home / DIRECTORY
        metrics.clean(figures)
        ready, told = os.pipe()
        detecting = Flag()
        platform = platform_of(settings, installed.url, detecting)

        def gateway(board: Board | None) -> Forked:
            return Forked("gatehouse: gateway", lambda: serve_gateway(platform, settings, listener, told, board))

        def keep() -> None:
            # It outlives the gateways, and must not keep the port.
            listener.close()
            run_keeper(settings, installed.url, journal=True)

        if self._workers == 1:
            gateways = [_Child(lambda: gateway(None), figures)]
        else:
            boards = Board.of(self._workers)
            gateways = [_Child(functools.partial(gateway, each), figures, died=each.leave) for each in boards]
        keeper = _Child(lambda: Forked("gatehouse: keeper", keep), figures)
        # It needs little of what is imported here, and its libraries have threads of their own.
        detection = _Child(_detection, figures, wanted=lambda: bool(detecting))
        children = [*gateways, keeper, detection]
        try:
            for child in (*gateways, keeper):
                child.start()
            self._wait_ready(gateways, ready, detection)
            if not self._ending:
                _greet(listener, installed, admin)
            while not self._ending:
                time.sleep(0.2)
                for child in children:
                    child.look()
        finally:
            # The gateways have their own, until they end: whoever comes then is refused, and does not wait for nobody.
            listener.close()
            _stop(gateways, signal.SIGTERM, installed.settings.drain_seconds + _GATEWAY_SECONDS)
            # After the gateways: it drains what they wrote last.
            _stop([keeper, detection], signal.SIGTERM, _KEEPER_SECONDS)
            if embedded_database:
                embedded.stop(installed.home)
        return 0

    def _end(self, number: int, frame: object) -> None:
        self._ending = True

    def _listen(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((self._host, self._port))
        except OSError as error:
            raise CannotStart(f"cannot listen on {self._host}:{self._port}: {error.strerror}; choose --port") from None
        listener.listen(2048)
        return listener

    def _wait_ready(self, gateways: list[_Child], ready: int, detection: _Child) -> None:
        """Returns when each has said that it serves. What they need is started meanwhile: requests may come at once."""
        deadline = time.monotonic() + _START_SECONDS
        waiting = len(gateways)
        with selectors.DefaultSelector() as selector:
            selector.register(ready, selectors.EVENT_READ)
            while waiting and not self._ending:
                if selector.select(timeout=0.1):
                    waiting -= len(os.read(ready, 64))
                detection.look()
                if any(child.process is None or child.process.poll() is not None for child in gateways):
                    raise CannotStart("a gateway process ended during its start; its log above says why")
                if time.monotonic() > deadline:
                    raise CannotStart(f"not ready after {_START_SECONDS:.0f} s")


def _detection() -> "subprocess.Popen[bytes]":
    # -P: a module of ours is called `platform`, and must not stand in for the standard library's.
    command = [sys.executable, "-P", "-m", "gatehouse.detection.service"]
    return subprocess.Popen(command)  # noqa: S603 - our own words


def _stop(children: list[_Child], number: int, patience: float) -> None:
    for child in children:
        child.signal(number)
    deadline = time.monotonic() + patience
    for child in children:
        if child.process is None:
            continue
        try:
            child.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.process.kill()
            child.process.wait()


def _greet(listener: socket.socket, installed: installation.Installation, admin: FirstAdmin | None) -> None:
    """Says where it is and, on a fresh embedded installation, a line that can be pasted and answers at once."""
    host, port = listener.getsockname()[:2]
    scheme = "https" if installed.settings.tls_cert_path else "http"
    url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
    click.echo(f"Gatehouse serves on {url} (documentation of the API: {url}/docs)")
    if admin is not None and admin.password is not None:
        click.echo(f"First admin: {admin.email}, password {admin.password} (shown once)")
    if installed.settings.sandbox and installed.settings.embedded:
        key = trial_key(installed.owner_url, installed.settings)
        if key is None:
            return
        click.echo(
            "Try it:\n"
            f"  curl {url}/v1/chat/completions -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' "
            """-d '{"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello, Gatehouse"}]}'"""
        )
    sys.stdout.flush()

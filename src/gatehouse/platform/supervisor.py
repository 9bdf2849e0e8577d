"""`gatehouse serve platform`: opens the port, starts the processes, restarts those that die, ends them in order.

supervisor   this process; holds the port and serves nothing
gateway      one a core: the gateway and administration
keeper       one: drains the journals into the database, runs scheduled work
detection    one: holds the models of DLP's tiers, for all gateways; started when a rule first needs one
PostgreSQL   where it is embedded: no child, but started again when it dies

The order of a start: settings, home folder, port, and only then the database. What cannot be used ends the start before
anything is written.
"""

import functools
import os
import selectors
import signal
import socket
import sys
import time
from contextlib import ExitStack
from typing import Final

import click
import structlog

from gatehouse.foundation import log as logs
from gatehouse.foundation import metrics, preflight
from gatehouse.foundation.processes import Flag, Forked, Interrupted, Interruptible, return_large_blocks
from gatehouse.foundation.serving import CannotStart, HomeLock, listen, make_home, url_of
from gatehouse.foundation.settings import Settings
from gatehouse.ingress.figures import DIRECTORY
from gatehouse.platform import installation
from gatehouse.platform.bootstrap import trial_key_file
from gatehouse.platform.children import Child, EmbeddedDatabase, detection_process, stop_all
from gatehouse.platform.installation import Installation
from gatehouse.platform.keeper import run as run_keeper
from gatehouse.platform.preflight import settings as checked_settings
from gatehouse.platform.sharing import Board
from gatehouse.platform.worker import platform_of, serve_gateway

log = structlog.get_logger(__name__)

#: A start takes as long as it takes; after so many seconds, and again after as many, the log says that it goes on.
_SLOW_START_SECONDS: Final = 30.0
#: what a gateway needs besides `DRAIN_SECONDS` to end, and what the keeper needs to store what was written last
_GATEWAY_SECONDS: Final = 5.0
_KEEPER_SECONDS: Final = 30.0


class Supervisor:
    def __init__(self, *, host: str, port: int, workers: int) -> None:
        self._host = host
        self._port = port
        self._workers = workers
        # Before anything is started: a signal during the start must not leave processes behind.
        self._signals = Interruptible()

    def run(self) -> int:
        """Serves until SIGTERM or SIGINT. Raises `CannotStart`, `BadSettings`, `SchemaDrift`, the database's."""
        # Whoever started this one may ignore its children's ends, which would hide those of ours.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        return_large_blocks()
        settings = checked_settings()
        logs.configure(settings.log_level)
        preflight.warn_about_misspelt(Settings)
        with ExitStack() as stack:
            lock = stack.enter_context(HomeLock(settings.gatehouse_home))
            listener = stack.enter_context(listen(self._host, self._port))
            url = url_of(listener, secure=settings.tls_cert_path is not None)
            lock.describe(url)
            database = EmbeddedDatabase(make_home(settings.gatehouse_home)) if settings.embedded else None
            if database is not None:
                stack.callback(database.stop)
            try:
                with self._signals:
                    installed = _opened(settings)
            except Interrupted:
                return 0
            self._serve(installed, listener, url, lock, database)
        return 0

    def _serve(
        self,
        installed: Installation,
        listener: socket.socket,
        url: str,
        lock: HomeLock,
        database: EmbeddedDatabase | None,
    ) -> None:
        settings = installed.settings
        figures = installed.home / DIRECTORY
        metrics.clean(figures)
        ready, ready_end = os.pipe()
        detecting = Flag()
        platform = platform_of(settings, installed.url, detecting)

        def serve(board: Board | None) -> None:
            # It may outlive a supervisor that was killed, and must not keep the next one from starting.
            lock.release()
            serve_gateway(platform, settings, listener, ready_end, board)

        def gateway(board: Board | None) -> Forked:
            return Forked("gatehouse: gateway", lambda: serve(board))

        def keep() -> None:
            # It outlives the gateways, and must not keep the port.
            listener.close()
            lock.release()
            run_keeper(settings, installed.url, journal=True)

        if self._workers == 1:
            gateways = [Child(lambda: gateway(None), figures)]
        else:
            boards = Board.of(self._workers)
            gateways = [Child(functools.partial(gateway, board), figures, died=board.leave) for board in boards]
        keeper = Child(lambda: Forked("gatehouse: keeper", keep), figures)
        # It needs little of what is imported here, and its libraries have threads of their own.
        detection = Child(detection_process, figures, wanted=lambda: bool(detecting))
        watched: list[Child | EmbeddedDatabase] = [*gateways, keeper, detection]
        if database is not None:
            watched.append(database)
        try:
            for child in (*gateways, keeper):
                child.start()
            self._wait_ready(gateways, ready, detection)
            if not self._signals.ending:
                _greet(url, installed)
            while not self._signals.ending:
                time.sleep(0.2)
                for process in watched:
                    process.look()
        finally:
            # The gateways have their own, until they end: whoever comes then is refused, and does not wait for nobody.
            listener.close()
            stop_all(gateways, signal.SIGTERM, settings.drain_seconds + _GATEWAY_SECONDS)
            # After the gateways: it drains what they wrote last.
            stop_all([keeper, detection], signal.SIGTERM, _KEEPER_SECONDS)

    def _wait_ready(self, gateways: list[Child], ready: int, detection: Child) -> None:
        """Returns when each has said that it serves. What they need is started meanwhile: requests may come at once."""
        began = time.monotonic()
        next_line = began + _SLOW_START_SECONDS
        waiting = len(gateways)
        with selectors.DefaultSelector() as selector:
            selector.register(ready, selectors.EVENT_READ)
            while waiting and not self._signals.ending:
                if selector.select(timeout=0.1):
                    waiting -= len(os.read(ready, 64))
                detection.look()
                if any(child.process is None or child.process.poll() is not None for child in gateways):
                    raise CannotStart("a gateway process ended during its start; its log above says why")
                if time.monotonic() > next_line:
                    log.warning("supervisor.still_starting", seconds=round(time.monotonic() - began), waiting=waiting)
                    next_line += _SLOW_START_SECONDS


def _opened(settings: Settings) -> Installation:
    installed = installation.connect(settings)
    if settings.embedded:
        installation.prepare(installed)
    installation.check_all(installed)
    return installed


def _greet(url: str, installed: Installation) -> None:
    """Says where it is and, on an embedded installation, a line that can be pasted and answers at once."""
    click.echo(f"Gatehouse serves on {url} (documentation of the API: {url}/docs)")
    if (admin := installation.unused_first_admin(installed)) is not None:
        admin.announce()
    if installed.settings.sandbox and installed.settings.embedded:
        key_file = trial_key_file(installed.owner_url, installed.settings)
        if key_file is not None:
            click.echo(
                "Try it:\n"
                f"  curl {url}/v1/chat/completions -H \"Authorization: Bearer $(cat '{key_file}')\""
                """ -H 'Content-Type: application/json'"""
                """ -d '{"model": "sandbox/echo", "messages": [{"role": "user", "content": "Hello, Gatehouse"}]}'"""
            )
    sys.stdout.flush()

"""`gatehouse serve platform`: opens the port, starts the processes, restarts processes that die, and stops them in
order.

supervisor   this process; opens the port and serves no request
gateway      one process per core: the gateway and administration
keeper       one process: stores the journals in the database, and runs jobs
detection    one process: runs the models of the DLP tiers for all gateways; started when a rule first needs one
stdio        one process: owns the MCP servers that are processes of this machine, if MCP_STDIO_COMMANDS permits any
PostgreSQL   if embedded: not a child process, but restarted when it dies

The settings, the home folder and the port are checked before the database is opened, so that a bad value ends the start
before anything is written.
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
from gatehouse.foundation import metrics
from gatehouse.foundation.processes import preflight
from gatehouse.foundation.processes.children import (
    Forked,
    Interrupted,
    Interruptible,
    SharedFlag,
    return_large_blocks,
)
from gatehouse.foundation.processes.serving import (
    CannotStart,
    HomeLock,
    listen,
    make_home,
    url_of,
)
from gatehouse.foundation.settings import Settings
from gatehouse.ingress.metrics import METRICS_DIRECTORY
from gatehouse.platform.installation import first_admin, setup
from gatehouse.platform.installation.bootstrap import trial_key_file
from gatehouse.platform.installation.preflight import settings as checked_settings
from gatehouse.platform.installation.setup import Installation
from gatehouse.platform.keeper import run as run_keeper
from gatehouse.platform.worker.child_processes import (
    Child,
    EmbeddedDatabase,
    detection_process,
    stdio_process,
    stop_all,
)
from gatehouse.platform.worker.connection_sharing import ConnectionBoard
from gatehouse.platform.worker.process import platform_of, serve_gateway

log = structlog.get_logger(__name__)

#: Interval at which a start in progress is logged. A start has no timeout.
_SLOW_START_LOG_SECONDS: Final = 30.0
_SUPERVISION_INTERVAL_SECONDS: Final = 0.2
_READY_POLL_SECONDS: Final = 0.1
#: Time that a gateway has to stop, in addition to `DRAIN_SECONDS`.
_GATEWAY_STOP_SECONDS: Final = 5.0
#: Time that the keeper has to store the last records.
_KEEPER_STOP_SECONDS: Final = 30.0


class Supervisor:
    """Runs the platform on one machine with `workers` gateway processes."""

    def __init__(self, *, host: str, port: int, workers: int) -> None:
        self._host = host
        self._port = port
        self._workers = workers
        # Created before anything is started, so that a signal during the start does not leave processes behind.
        self._signals = Interruptible()

    def run(self) -> int:
        """Serve until SIGTERM or SIGINT, and return the exit status. Raises `CannotStart`, `BadSettings`,
        `SchemaDrift`, and exceptions of the database."""
        # The parent process may have set SIGCHLD to be ignored, which would hide the exits of the child processes.
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
                    installed = _open(settings)
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
        metrics_directory = installed.home / METRICS_DIRECTORY
        metrics.clean(metrics_directory)
        ready, ready_end = os.pipe()
        detecting = SharedFlag()
        platform = platform_of(settings, installed.url, detecting)

        def serve(board: ConnectionBoard | None) -> None:
            # A gateway may outlive a killed supervisor. It must not prevent the next supervisor from starting.
            lock.release()
            serve_gateway(platform, settings, listener, ready_end, board)

        def gateway(board: ConnectionBoard | None) -> Forked:
            return Forked("gatehouse: gateway", lambda: serve(board))

        def keep() -> None:
            # The keeper outlives the gateways, so it must not keep the port open.
            listener.close()
            lock.release()
            run_keeper(settings, installed.url, journal=True)

        if self._workers == 1:
            gateways = [Child(lambda: gateway(None), metrics_directory)]
        else:
            boards = ConnectionBoard.of(self._workers)
            gateways = [
                Child(functools.partial(gateway, board), metrics_directory, on_exit=board.leave) for board in boards
            ]
        keeper = Child(lambda: Forked("gatehouse: keeper", keep), metrics_directory)
        # The detection process is not forked, because it needs few of the modules imported here, and its libraries
        # start their own threads.
        detection = Child(detection_process, metrics_directory, is_needed=lambda: bool(detecting))
        # Not forked either, so that the servers inherit nothing from this process.
        stdio = Child(
            functools.partial(stdio_process, settings.gatehouse_home),
            metrics_directory,
            is_needed=lambda: settings.mcp_stdio_commands is not None,
        )
        supervised: list[Child | EmbeddedDatabase] = [*gateways, keeper, detection, stdio]
        if database is not None:
            supervised.append(database)
        try:
            for child in (*gateways, keeper):
                child.start()
            self._wait_ready(gateways, ready, detection)
            if not self._signals.ending:
                _print_greeting(url, installed)
            while not self._signals.ending:
                time.sleep(_SUPERVISION_INTERVAL_SECONDS)
                for process in supervised:
                    process.supervise()
        finally:
            # The gateways have their own listeners. Once these are closed too, new connections are refused at once.
            listener.close()
            stop_all(gateways, signal.SIGTERM, settings.drain_seconds + _GATEWAY_STOP_SECONDS)
            # The keeper is stopped after the gateways, because it stores the last records that they wrote.
            stop_all([keeper, detection, stdio], signal.SIGTERM, _KEEPER_STOP_SECONDS)

    def _wait_ready(self, gateways: list[Child], ready: int, detection: Child) -> None:
        """Wait until every gateway serves. The detection process is started meanwhile if it is needed, because requests
        may come at once. Raises `CannotStart` if a gateway ends."""
        began = time.monotonic()
        next_log = began + _SLOW_START_LOG_SECONDS
        waiting = len(gateways)
        with selectors.DefaultSelector() as selector:
            selector.register(ready, selectors.EVENT_READ)
            while waiting and not self._signals.ending:
                if selector.select(timeout=_READY_POLL_SECONDS):
                    waiting -= len(os.read(ready, 64))
                detection.supervise()
                if any(child.process is None or child.process.poll() is not None for child in gateways):
                    raise CannotStart("a gateway process ended during its start; the reason is in its log above")
                if time.monotonic() > next_log:
                    log.warning("supervisor.still_starting", seconds=round(time.monotonic() - began), waiting=waiting)
                    next_log += _SLOW_START_LOG_SECONDS


def _open(settings: Settings) -> Installation:
    installed = setup.connect(settings)
    if settings.embedded:
        setup.prepare(installed)
    setup.check_all(installed)
    return installed


def _print_greeting(url: str, installed: Installation) -> None:
    """Print the URL. On an embedded installation with the sandbox, also print a curl command that can be pasted."""
    admin = setup.unused_first_admin(installed)
    if admin is not None and installed.settings.embedded:
        admin = first_admin.renew_link(installed.owner_url, url, admin)
    click.echo(f"Gatehouse serves on {url} (documentation of the API: {url}/docs)")
    if admin is not None:
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

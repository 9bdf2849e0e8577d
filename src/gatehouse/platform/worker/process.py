"""A gateway process: serves the application on the socket that the supervisor opened."""

import asyncio
import os
import socket
from collections.abc import Callable
from typing import cast

import uvicorn

from gatehouse.administration.serving import TunedServer, server_config
from gatehouse.foundation.certificates.tls import tls_context
from gatehouse.foundation.processes.children import SharedFlag
from gatehouse.foundation.processes.shared_times import SharedTimes
from gatehouse.foundation.secrets.sealing import load_master_keys
from gatehouse.foundation.settings import Settings
from gatehouse.foundation.storage.database import Database
from gatehouse.ingress.protocol_choice import protocol_of
from gatehouse.platform.worker.app import Platform
from gatehouse.platform.worker.connection_sharing import Acceptor, ConnectionBoard, ConnectionSet
from gatehouse.platform.worker.host import PlatformHost
from gatehouse.policy.dlp.compile import built_in_matcher


class _WorkerServer(TunedServer):
    """A server that signals its readiness to the supervisor with a byte on `ready_fd`. `board` balances connections
    between workers. It is None if there is only one worker."""

    def __init__(
        self,
        config: uvicorn.Config,
        listener: socket.socket,
        ready_fd: int,
        platform: Platform,
        board: ConnectionBoard | None,
    ) -> None:
        super().__init__(config)
        self._listener = listener
        self._ready_fd = ready_fd
        self._platform = platform
        self._connections = None if board is None else ConnectionSet(board)
        if self._connections is not None:
            self.server_state.connections = self._connections

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[self._listener] if self._connections is None else [])

    def on_serving(self) -> None:
        if self._connections is not None:
            self.servers.append(cast("asyncio.Server", self._acceptor(self._connections)))
        os.write(self._ready_fd, b"1")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._platform.drain()
        await super().shutdown(sockets=[self._listener])

    def _acceptor(self, connections: ConnectionSet) -> Acceptor:
        config, loop = self.config, asyncio.get_running_loop()

        def connection() -> asyncio.Protocol:
            protocol: Callable[..., asyncio.Protocol] = config.http_protocol_class
            return protocol(config=config, server_state=self.server_state, app_state=self.lifespan.state)

        async def serve(accepted_socket: socket.socket) -> None:
            await loop.connect_accepted_socket(connection, accepted_socket, ssl=config.ssl)

        return Acceptor(self._listener, connections, serve)


def platform_of(settings: Settings, database_url: str, detecting: SharedFlag) -> Platform:
    """Build the application, which any number of forked processes can serve. `detecting` is raised when the detection
    process is needed."""
    # Built before the fork, so that all processes share it. It takes 0.3 seconds and 10 MiB.
    built_in_matcher()
    # All workers that are forked from this process share this memory.
    shared_cooldowns = SharedTimes()

    def make_host() -> PlatformHost:
        return PlatformHost(
            settings,
            Database(database_url, pool_size=settings.database_pool_size),
            load_master_keys(settings),
            detecting=detecting,
            shared_cooldowns=shared_cooldowns,
        )

    return Platform(settings, make_host)


def serve_gateway(
    platform: Platform, settings: Settings, listener: socket.socket, ready_fd: int, board: ConnectionBoard | None
) -> None:
    """Serve until SIGTERM. `board` is this worker's board if there are several workers, else None."""
    if board is not None:
        platform.workers, platform.worker = board.workers, board.slot
    config = server_config(
        platform,
        protocol_of(settings.ingress, lambda: platform.gateway),
        tls=tls_context(settings.tls_cert_path, settings.tls_key_path, settings.tls_client_ca_path),
        drain_seconds=settings.drain_seconds,
    )
    server = _WorkerServer(config, listener, ready_fd, platform, board)
    server.run()
    if not server.started:
        raise SystemExit(3)

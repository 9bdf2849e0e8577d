"""Chooses the HTTP protocol class for uvicorn."""

import asyncio
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from uvicorn.config import Config
from uvicorn.server import ServerState

from gatehouse.ingress.gateway import Gateway
from gatehouse.ingress.http1.behind import ServerContext
from gatehouse.ingress.http1.connection import ClientConnection
from gatehouse.ingress.protocol import GatewayHttpProtocol

#: values of the setting INGRESS
Ingress: TypeAlias = Literal["lean", "uvicorn"]


def protocol_of(ingress: Ingress, gateway: Callable[[], Gateway]) -> Any:
    """Return the protocol for uvicorn's `http` option. `gateway` is a function, because the server is created before
    the gateway. It is called for each connection."""
    if ingress == "uvicorn":
        return GatewayHttpProtocol

    def connection(
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> ClientConnection:
        loop = _loop or asyncio.get_running_loop()
        return ClientConnection(gateway(), ServerContext(config, server_state, app_state, loop))

    return connection

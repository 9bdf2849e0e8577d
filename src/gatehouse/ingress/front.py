"""What takes requests off the wire."""

import asyncio
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from uvicorn.config import Config
from uvicorn.server import ServerState

from gatehouse.ingress.gateway import Gateway
from gatehouse.ingress.lane.behind import Serving
from gatehouse.ingress.lane.connection import Connection
from gatehouse.ingress.protocol import WatchfulProtocol

#: What the setting INGRESS may say.
Ingress: TypeAlias = Literal["lean", "uvicorn"]


def protocol_of(ingress: Ingress, gateway: Callable[[], Gateway]) -> Any:
    """What uvicorn's `http` takes. `gateway` is asked for at each connection: the server is there before it."""
    if ingress == "uvicorn":
        return WatchfulProtocol

    def connection(
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> Connection:
        loop = _loop or asyncio.get_running_loop()
        return Connection(gateway(), Serving(config, server_state, app_state, loop))

    return connection

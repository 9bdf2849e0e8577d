"""A stream as an answer of administration: made, written, watched and cut off as the gateway does it."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gatehouse.engine.exchange import Answer, ClientLeft, Received
from gatehouse.ingress.gateway import while_connected, write


class Events(Response):
    """Whatever `make` gives, which may still be a refusal. A client that leaves ends it, also before the first byte."""

    def __init__(self, make: Callable[[], Awaitable[Answer]], received: Received) -> None:
        super().__init__()
        self._make = make
        self._received = received

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def work() -> None:
            await write(await self._make(), self._received, send)

        whole = asyncio.Event()
        # The request's body was read before its route was called.
        whole.set()
        with contextlib.suppress(ClientLeft):
            await while_connected(scope, receive, whole, work())

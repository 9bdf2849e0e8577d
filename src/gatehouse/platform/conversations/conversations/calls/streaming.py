"""Sends an answer of the engine as a response of the administration API. It uses the gateway's functions for sending
and for the detection of disconnects."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gatehouse.engine.exchange import Answer, Received
from gatehouse.foundation.errors import ClientLeft
from gatehouse.ingress.gateway import send_over_asgi, while_connected


class EngineStreamResponse(Response):
    """Sends the answer that `make` returns, which is a stream or a refusal. `make` and the sending are cancelled if the
    client disconnects, even before the first byte."""

    def __init__(self, make: Callable[[], Awaitable[Answer]], received: Received) -> None:
        super().__init__()
        self._make = make
        self._received = received

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def work() -> None:
            await send_over_asgi(await self._make(), self._received, send)

        body_received = asyncio.Event()
        # Set at once, because FastAPI reads the body of the request before it calls the route.
        body_received.set()
        with contextlib.suppress(ClientLeft):
            await while_connected(scope, receive, body_received, work())

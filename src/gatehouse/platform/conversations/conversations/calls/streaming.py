"""Sends an engine's answer as a response of the administration API, with the gateway's functions for writing and for
disconnects."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gatehouse.engine.exchange import Answer, ClientLeft, Received
from gatehouse.ingress.gateway import send_over_asgi, while_connected


class EngineStreamResponse(Response):
    """Sends the answer that `make` returns, a stream or a refusal. It is cancelled if the client disconnects, even
    before the first byte."""

    def __init__(self, make: Callable[[], Awaitable[Answer]], received: Received) -> None:
        super().__init__()
        self._make = make
        self._received = received

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def work() -> None:
            await send_over_asgi(await self._make(), self._received, send)

        body_received = asyncio.Event()
        # FastAPI reads the request's body before it calls the route.
        body_received.set()
        with contextlib.suppress(ClientLeft):
            await while_connected(scope, receive, body_received, work())

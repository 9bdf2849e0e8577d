"""ASGI middleware of the administration: checks the token before it reads a body, and bounds the body's size.

The framework reads a whole body before it authenticates the caller, and the process shares its memory with the proxy's
requests.
"""

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gatehouse.engine.exchange import ClientLeft, Received
from gatehouse.foundation.deadlines import Deadlines
from gatehouse.foundation.errors import Refusal
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.http.handlers import ErrorResponses
from gatehouse.foundation.http.middleware.added_headers import add_missing_headers
from gatehouse.foundation.http.middleware.replay import replay
from gatehouse.ingress import receive as receiving
from gatehouse.ingress.receive import RequestBody
from gatehouse.outpost.admin.access import admit
from gatehouse.outpost.host import OutpostHost
from gatehouse.outpost.platform_link.peers import MAX_BODY_BYTES

_METHODS_WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS"})
#: Peers are authenticated by their certificates, in the routes.
_PEER_PREFIX: Final = "/peer/"


class AdminMiddleware:
    def __init__(
        self, app: ASGIApp, *, host: OutpostHost, addresses: ClientAddresses, responses: ErrorResponses
    ) -> None:
        self._app = app
        self._host = host
        self._addresses = addresses
        self._responses = responses
        self._deadlines = Deadlines(host.settings.body_timeout_seconds)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_completed(message: Message) -> None:
            if message["type"] == "http.response.start":
                add_missing_headers(message, {})
            await send(message)

        await self._handle(scope, receive, send_completed)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in _METHODS_WITHOUT_BODY:
            await self._app(scope, receive, send)
            return
        x = receiving.read_head(scope, self._addresses)
        from_peer = x.path.startswith(_PEER_PREFIX)
        body = RequestBody(
            x, receive, MAX_BODY_BYTES if from_peer else self._host.settings.max_request_bytes, self._deadlines
        )
        try:
            if not from_peer:
                await self._admit(x, scope)
            content = await body.read()
        except ClientLeft:
            return
        except Refusal as error:
            if body.blocks_reuse:
                error.headers["Connection"] = "close"
            await self._responses.to(scope, error)(scope, receive, send)
            return
        await self._app(scope, replay(content, receive), send)

    async def _admit(self, x: Received, scope: Scope) -> None:
        scheme, _, token = x.headers.get("authorization", "").partition(" ")
        await admit(self._host, x.client_address, token.strip() if scheme.lower() == "bearer" else "", x.path)
        scope.setdefault("state", {})["admitted"] = True

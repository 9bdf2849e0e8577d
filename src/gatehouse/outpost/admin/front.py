"""In front of the administration: who sends a body is asked for the token first, and a body has bounds.

The framework reads a body whole before it asks who sends it, and the proxy's requests share this process' memory.
"""

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gatehouse.engine.exchange import ClientLeft, Received
from gatehouse.foundation.deadlines import Deadlines
from gatehouse.foundation.errors import Refusal
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.http.handlers import ErrorResponses
from gatehouse.foundation.http.leaving import complete
from gatehouse.foundation.http.replay import replay
from gatehouse.ingress import receive as receiving
from gatehouse.ingress.receive import Body
from gatehouse.outpost.admin.access import admit
from gatehouse.outpost.host import OutpostHost
from gatehouse.outpost.peers import MOST_BYTES

_WITHOUT_A_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS"})
#: Peers prove themselves by certificates, where their calls end.
_OF_PEERS: Final = "/peer/"


class Front:
    def __init__(
        self, app: ASGIApp, *, host: OutpostHost, addresses: ClientAddresses, responses: ErrorResponses
    ) -> None:
        self._behind = app
        self._host = host
        self._addresses = addresses
        self._responses = responses
        self._deadlines = Deadlines(host.settings.body_timeout_seconds)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._behind(scope, receive, send)
            return

        async def completed(message: Message) -> None:
            if message["type"] == "http.response.start":
                complete(message, {})
            await send(message)

        await self._handle(scope, receive, completed)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] in _WITHOUT_A_BODY:
            await self._behind(scope, receive, send)
            return
        x = receiving.head(scope, self._addresses)
        of_peer = x.path.startswith(_OF_PEERS)
        body = Body(x, receive, MOST_BYTES if of_peer else self._host.settings.max_request_bytes, self._deadlines)
        try:
            if not of_peer:
                await self._admit(x, scope)
            content = await body.read()
        except ClientLeft:
            return
        except Refusal as error:
            if body.blocks_reuse:
                error.headers["Connection"] = "close"
            await self._responses.to(scope, error)(scope, receive, send)
            return
        await self._behind(scope, replay(content, receive), send)

    async def _admit(self, x: Received, scope: Scope) -> None:
        scheme, _, token = x.headers.get("authorization", "").partition(" ")
        await admit(self._host, x.client_address, token.strip() if scheme.lower() == "bearer" else "", x.path)
        scope.setdefault("state", {})["admitted"] = True

"""The HTTP shell of an administration API: ASGI middleware around the framework.

The shell chooses the id of the request, determines the address of the client, reads the body within its limits, adds
headers to every response, and reports every request to the metrics. The framework would read a complete body of any
size before it authenticates the caller. A deployable can therefore pass a function `admit`, which is called before the
body is read."""

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

import msgspec
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gatehouse.foundation import log
from gatehouse.foundation.deadlines import Deadlines
from gatehouse.foundation.errors import ClientLeft
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.http.handlers import ErrorResponses
from gatehouse.foundation.http.middleware import request_id
from gatehouse.foundation.http.middleware.added_headers import add_missing_headers
from gatehouse.foundation.http.middleware.replay import replay
from gatehouse.foundation.http.request_body import RequestBody
from gatehouse.foundation.settings import CommonSettings

#: a function that is called after each request, with the method, the route template, the status and the seconds
Observe: TypeAlias = Callable[[str, str, int, float], None]

#: the status in the metrics of a request whose client has disconnected before the response
CLIENT_LEFT_STATUS: Final = 499

METHODS_WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_READ_HEADERS: Final = frozenset({b"x-request-id", b"content-length", b"expect", b"authorization"})
_BODY_HEADERS: Final = frozenset({b"content-length", b"transfer-encoding"})


class Head(Protocol):
    """A request without its body. `headers` has lower-case names and includes `content-length` and `expect`. `started`
    is a monotonic time in seconds."""

    @property
    def request_id(self) -> str: ...
    @property
    def method(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def client_address(self) -> str: ...
    @property
    def started(self) -> float: ...


class RequestHead(msgspec.Struct, frozen=True):
    request_id: str
    method: str
    path: str
    headers: Mapping[str, str]
    client_address: str
    started: float


H = TypeVar("H", bound=Head)


def read_head(scope: Scope, addresses: ClientAddresses) -> RequestHead:
    headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in _READ_HEADERS}
    return RequestHead(
        request_id.choose(headers.get("x-request-id")),
        scope["method"],
        scope["path"],
        headers,
        addresses.of_scope(scope),
        time.monotonic(),
    )


class Arrival(Generic[H]):
    """A request before it is passed to the framework. `state` is the state of the ASGI scope, which routes read.
    `body.limit` may be changed until the body is read."""

    __slots__ = ("_content", "body", "head", "response_headers", "state")

    def __init__(self, head: H, state: dict[str, Any], body: RequestBody) -> None:
        self.head = head
        self.state = state
        # Responses may contain tokens, keys that are shown once, and personal data. No cache may store them.
        self.response_headers = {"X-Request-Id": head.request_id, "Cache-Control": "no-store"}
        self.body = body
        self._content: bytes | None = None
        state.update(
            request_id=head.request_id, client_address=head.client_address, response_headers=self.response_headers
        )

    async def read_body(self) -> bytes:
        """Return the complete body. The framework receives it too. Raises the same exceptions as `RequestBody.read`."""
        if self._content is None:
            self._content = await self.body.read()
        return self._content


class Shell(Generic[H]):
    """The middleware. `read_head` returns the head of a request. `admit` may raise a refusal, change the limit of the
    body, read the body, and add values to the state."""

    def __init__(
        self,
        app: ASGIApp,
        responses: ErrorResponses,
        settings: CommonSettings,
        *,
        read_head: Callable[[Scope, ClientAddresses], H],
        admit: Callable[[Arrival[H]], Awaitable[None]] | None = None,
        observe: Observe = lambda *_: None,
    ) -> None:
        self._app = app
        self._responses = responses
        self._addresses = ClientAddresses(settings.trusted_proxies)
        self._read_head = read_head
        self._max_request_bytes = settings.max_request_bytes
        self._deadlines = Deadlines(settings.body_timeout_seconds)
        self._admit = admit
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        head = self._read_head(scope, self._addresses)
        body = RequestBody(head.headers, receive, self._max_request_bytes, self._deadlines)
        arrival = Arrival(head, scope.setdefault("state", {}), body)
        response_headers, status = arrival.response_headers, CLIENT_LEFT_STATUS

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                add_missing_headers(message, response_headers)
            await send(message)

        token = log.request_id.set(head.request_id)
        try:
            app = self._app
            try:
                if self._admit is not None:
                    await self._admit(arrival)
                if head.method not in METHODS_WITHOUT_BODY:
                    receive = replay(await arrival.read_body(), receive)
                # `arrival` must not keep the body in memory until the response is complete.
                del arrival
            except ClientLeft:
                return
            except Exception as error:
                app = response = await self._responses.of(Request(scope), error)
                if body.blocks_reuse and any(name in _BODY_HEADERS for name, _ in scope["headers"]):
                    response.headers["Connection"] = "close"
            await app(scope, receive, send_with_headers)
        finally:
            log.request_id.reset(token)
            # The metrics use the template of the route, because clients can send any number of different paths.
            route = getattr(scope.get("route"), "path", None) or "unmatched"
            self._observe(head.method, route, status, time.monotonic() - head.started)

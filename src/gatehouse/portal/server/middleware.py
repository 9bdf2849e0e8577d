"""ASGI middleware of the portal: request id, client address, body limits, and metrics."""

import time
from collections.abc import Callable
from typing import Final, TypeAlias

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gatehouse.foundation import log
from gatehouse.foundation.deadlines import Deadlines
from gatehouse.foundation.errors import BadRequest, PayloadTooLarge, Refusal
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.http.handlers import ErrorResponses
from gatehouse.foundation.http.middleware import request_id
from gatehouse.foundation.http.middleware.added_headers import add_missing_headers
from gatehouse.foundation.http.middleware.replay import replay

Observe: TypeAlias = Callable[[str, str, int, float], None]

#: Status in the metrics of a request whose client left before the response.
_CLIENT_CLOSED_STATUS: Final = 499
_METHODS_WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class PortalBodyTooSlow(BadRequest):
    status = 408
    message = "The request's body did not arrive in time."


class _ClientLeft(Exception):
    """The client closed the connection while it sent the body."""


class PortalMiddleware:
    def __init__(
        self,
        app: ASGIApp,
        *,
        addresses: ClientAddresses,
        responses: ErrorResponses,
        max_request_bytes: int,
        body_timeout_seconds: float,
        observe: Observe,
    ) -> None:
        self._app = app
        self._addresses = addresses
        self._responses = responses
        self._max_bytes = max_request_bytes
        self._deadlines = Deadlines(body_timeout_seconds)
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        new_request_id = request_id.choose(headers.get(b"x-request-id", b"").decode("latin-1") or None)
        # Responses contain tokens and keys: no intermediary may store them.
        response_headers = {"X-Request-Id": new_request_id, "Cache-Control": "no-store"}
        scope.setdefault("state", {}).update(
            request_id=new_request_id, client_address=self._addresses.of_scope(scope), response_headers=response_headers
        )
        started_at, status = time.monotonic(), _CLIENT_CLOSED_STATUS

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                add_missing_headers(message, response_headers)
            await send(message)

        token = log.request_id.set(new_request_id)
        try:
            if scope["method"] not in _METHODS_WITHOUT_BODY:
                receive = replay(await self._body(headers, receive), receive)
            await self._app(scope, receive, send_with_headers)
        except _ClientLeft:
            pass
        except Refusal as error:
            await self._responses.to(scope, error)(scope, receive, send_with_headers)
        finally:
            log.request_id.reset(token)
            # The route's template, not the path: clients can send any number of paths.
            route = getattr(scope.get("route"), "path", None) or "unmatched"
            self._observe(scope["method"], route, status, time.monotonic() - started_at)

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        """Return the whole body. Raises `PayloadTooLarge` as early as possible, and `PortalBodyTooSlow`."""
        announced = headers.get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > self._max_bytes:
            raise self._too_large()
        parts, size = [], 0
        try:
            with self._deadlines.one():
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _ClientLeft
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self._max_bytes:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise PortalBodyTooSlow(headers={"Connection": "close"}) from None

    def _too_large(self) -> PayloadTooLarge:
        return PayloadTooLarge(
            f"A request's body may have {self._max_bytes} bytes at most.", headers={"Connection": "close"}
        )

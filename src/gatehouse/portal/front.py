"""In front of the application: a request's id, where it comes from, how large its body may be, and its figures."""

import time
from collections.abc import Callable
from typing import Final, TypeAlias

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gatehouse.foundation import log
from gatehouse.foundation.deadlines import Deadlines
from gatehouse.foundation.errors import BadRequest, PayloadTooLarge, Refusal
from gatehouse.foundation.http import request_id
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.foundation.http.handlers import ErrorResponses
from gatehouse.foundation.http.leaving import complete
from gatehouse.foundation.http.replay import replay

Observe: TypeAlias = Callable[[str, str, int, float], None]

#: What is counted for a request whose client left before its answer.
_LEFT: Final = 499
_WITHOUT_A_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class BodyTooSlow(BadRequest):
    status = 408
    message = "The request's body did not arrive in time."


class _Left(Exception):
    """The client went away while it sent."""


class Front:
    def __init__(
        self,
        behind: ASGIApp,
        *,
        addresses: ClientAddresses,
        responses: ErrorResponses,
        max_request_bytes: int,
        body_timeout_seconds: float,
        observe: Observe,
    ) -> None:
        self._behind = behind
        self._addresses = addresses
        self._responses = responses
        self._max_bytes = max_request_bytes
        self._deadlines = Deadlines(body_timeout_seconds)
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._behind(scope, receive, send)
            return
        headers = dict(scope["headers"])
        chosen = request_id.choose(headers.get(b"x-request-id", b"").decode("latin-1") or None)
        # Answers hold tokens, and keys shown once: nothing between here and the caller keeps them.
        told = {"X-Request-Id": chosen, "Cache-Control": "no-store"}
        scope.setdefault("state", {}).update(
            request_id=chosen, client_address=self._addresses.of_scope(scope), told=told
        )
        began, status = time.monotonic(), _LEFT

        async def with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                complete(message, told)
            await send(message)

        token = log.request_id.set(chosen)
        try:
            if scope["method"] not in _WITHOUT_A_BODY:
                receive = replay(await self._body(headers, receive), receive)
            await self._behind(scope, receive, with_headers)
        except _Left:
            pass
        except Refusal as error:
            await self._responses.to(scope, error)(scope, receive, with_headers)
        finally:
            log.request_id.reset(token)
            # The template of the route: of those there are few, of paths as many as clients make up.
            route = getattr(scope.get("route"), "path", None) or "unmatched"
            self._observe(scope["method"], route, status, time.monotonic() - began)

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes:
        """All of it. Raises `PayloadTooLarge` as soon as it must be, and `BodyTooSlow`."""
        announced = headers.get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > self._max_bytes:
            raise self._too_large()
        parts, size = [], 0
        try:
            with self._deadlines.one():
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _Left
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self._max_bytes:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise BodyTooSlow(headers={"Connection": "close"}) from None

    def _too_large(self) -> PayloadTooLarge:
        return PayloadTooLarge(
            f"A request's body may have {self._max_bytes} bytes at most.", headers={"Connection": "close"}
        )

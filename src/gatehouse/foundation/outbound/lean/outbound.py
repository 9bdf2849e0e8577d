"""`LeanOutbound`: performs a call from the URL to the head of the response."""

import asyncio
import ssl
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from gatehouse.foundation.egress.guard import EgressGuard, HostNotFound, UnsafeUrl
from gatehouse.foundation.outbound import (
    AddressRefused,
    ConnectFailed,
    OutboundFailed,
    OutboundRequest,
    OutboundTimeout,
)
from gatehouse.foundation.outbound.lean.connection import LeanConnection
from gatehouse.foundation.outbound.lean.dial import Dialler
from gatehouse.foundation.outbound.lean.names import AddressCache
from gatehouse.foundation.outbound.lean.pool import ConnectionPool, PoolLimits
from gatehouse.foundation.outbound.lean.reply import LeanReply
from gatehouse.foundation.outbound.lean.route import Origin, Route, find_route
from gatehouse.foundation.settings import EgressPolicy

#: idempotent methods (RFC 9110, 9.2.2)
_IDEMPOTENT_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})

#: headers of the caller that are not sent, because this client sets the framing
_FRAMING_HEADERS: Final = frozenset(
    {"connection", "content-length", "expect", "keep-alive", "te", "trailer", "transfer-encoding"}
)
_DEFAULTS: Final = {"User-Agent": "gatehouse", "Accept": "*/*", "Accept-Encoding": "identity"}
_METHODS_WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


class LeanOutbound:
    """HTTP client for providers. `max_connections` limits the calls in progress, and `max_per_provider` those to one
    provider. A call is in progress until its reply is closed. For each provider, `max_connections` calls may wait (at
    least a thousand), and each of them waits for at most `connect_timeout`.

    `guard` checks every URL and every address of a name. Private addresses are allowed, because local runtimes have
    them. `tls` replaces the system's trust store. HTTP_PROXY, HTTPS_PROXY and NO_PROXY are used. Redirects are not
    followed and cookies not stored.

    No request is sent twice. If the server closes a reused connection before it sends a byte of the response, an
    idempotent request fails with `ConnectFailed`, and any other request fails with `BrokenOff`.
    """

    def __init__(
        self,
        max_connections: int = 1000,
        *,
        max_per_provider: int | None = None,
        guard: EgressGuard | None = None,
        keepalive_seconds: float = 30.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._guard = guard or EgressGuard()
        self._route = lru_cache(maxsize=1024)(self._find_route)
        self._pool = ConnectionPool(PoolLimits.of(max_connections, max_per_provider), keepalive_seconds)
        self._names = AddressCache(self._guard)
        self._dialler = Dialler(self._names, tls)

    async def send(self, request: OutboundRequest) -> LeanReply:
        """Sends a request. Raises `NoConnectionFree`, `ConnectFailed`, `OutboundTimeout`, `BrokenOff`,
        `AddressRefused`, and the exceptions of `before_first_byte`."""
        loop = asyncio.get_running_loop()
        total_deadline = None if request.total_timeout is None else loop.time() + request.total_timeout
        try:
            route = self._route(request.url, request.egress)
        except UnsafeUrl as error:
            raise _refusal(error) from None
        head = _head_of(request, route)
        host = self._pool.enter(route.origin) or await self._pool.wait(route.origin, request.wait_timeout)
        reply = LeanReply(
            self._pool,
            host,
            first_byte=request.first_byte_timeout,
            idle=request.idle_timeout,
            total_deadline=total_deadline,
            method=request.method,
            idempotent=request.method in _IDEMPOTENT_METHODS,
        )
        try:
            connection = self._pool.idle(host) or await self._dial(host.origin, request.connect_timeout, total_deadline)
            if request.before_first_byte is not None:
                self._call_gate(request.before_first_byte, connection)
            await reply.send_request(connection, head, request.body)
        except BaseException:
            await reply.close()
            raise
        return reply

    async def close(self) -> None:
        self._names.close()
        self._pool.close()
        # Let the transports run their last callbacks.
        await asyncio.sleep(0)

    async def _dial(self, origin: Origin, seconds: float, total_deadline: float | None) -> LeanConnection:
        self._pool.make_room()
        remaining = seconds if total_deadline is None else total_deadline - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(min(seconds, remaining)):
                connection = await self._dialler.dial(origin, lambda: LeanConnection(self._pool, origin))
        except UnsafeUrl as error:
            raise _refusal(error) from None
        except (OSError, EOFError) as error:
            # Compare the two limits and do not read the clock: a timer may fire early, because the loop rounds times.
            if remaining < seconds and isinstance(error, TimeoutError):
                raise OutboundTimeout from None
            raise ConnectFailed from None
        self._pool.opened(connection)
        return connection

    def _call_gate(self, gate: Callable[[], None], connection: LeanConnection) -> None:
        try:
            gate()
        except BaseException:
            self._pool.on_idle(connection)
            raise

    def _find_route(self, url: str, egress: EgressPolicy | None) -> Route:
        return find_route(url, self._guard, egress)


def _refusal(error: UnsafeUrl) -> OutboundFailed:
    return ConnectFailed() if isinstance(error, HostNotFound) else AddressRefused()


def _head_of(request: OutboundRequest, route: Route) -> bytes:
    """Returns the head of a request. Raises `ValueError` for a header that contains a line break or NUL, because such a
    header could inject a second request."""
    headers, body, start = request.headers, request.body, route.start
    names, defaults, own_host = _plan(tuple(headers))
    fields = "".join([f"{name}: {headers[name]}\r\n" for name in names])
    if fields.count("\n") != len(names) or fields.count("\r") != len(names) or "\0" in fields:
        raise ValueError("a header contains a line break or NUL")
    if own_host:
        line, _, from_host = start.partition("Host: ")
        start = line + from_host.partition("\r\n")[2]
    if body:
        return f"{request.method}{start}{fields}{defaults}Content-Length: {len(body)}\r\n\r\n".encode()
    length = "" if request.method in _METHODS_WITHOUT_BODY else "Content-Length: 0\r\n"
    return f"{request.method}{start}{fields}{defaults}{length}\r\n".encode()


@lru_cache(maxsize=256)
def _plan(names: tuple[str, ...]) -> tuple[tuple[str, ...], str, bool]:
    """Returns the names of the caller's headers that are sent, the default headers that the caller has not set, and
    whether the caller has set `Host`."""
    lower = {name.lower() for name in names}
    defaults = "".join(f"{name}: {value}\r\n" for name, value in _DEFAULTS.items() if name.lower() not in lower)
    return tuple(name for name in names if name.lower() not in _FRAMING_HEADERS), defaults, "host" in lower

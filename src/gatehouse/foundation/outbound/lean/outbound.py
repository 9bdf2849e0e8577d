"""`LeanOutbound`: one call, from the URL to the head of the answer."""

import asyncio
import ssl
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from gatehouse.foundation.egress import EgressGuard, HostNotFound, UnsafeUrl
from gatehouse.foundation.egress_policy import EgressPolicy
from gatehouse.foundation.outbound import (
    AddressRefused,
    ConnectFailed,
    OutboundFailed,
    OutboundRequest,
    OutboundTimeout,
)
from gatehouse.foundation.outbound.lean.connection import Connection
from gatehouse.foundation.outbound.lean.dial import Dialler
from gatehouse.foundation.outbound.lean.head import head_of
from gatehouse.foundation.outbound.lean.names import Names
from gatehouse.foundation.outbound.lean.pool import Bounds, Pool
from gatehouse.foundation.outbound.lean.reply import LeanReply
from gatehouse.foundation.outbound.lean.route import Origin, Route, find_route

#: Whoever gets one of these twice does it once (RFC 9110, 9.2.2).
_IDEMPOTENT: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"})


class LeanOutbound:
    """`max_connections` bounds the calls in progress, and those with one provider where `max_each` does not do it
    tighter; of each provider as many more wait, or a thousand, `connect_timeout` at most. A call is in progress until
    its reply is closed.

    `guard` judges every URL and every address that a name resolves to; private ones pass, because local runtimes have
    them. `tls` replaces the system's trust. HTTP_PROXY, HTTPS_PROXY and NO_PROXY are obeyed. Redirects are not
    followed and cookies not kept.

    No request is sent twice. One that finds its idle connection closed by the far end, with not a byte answered, is
    `ConnectFailed` where repeating it does no harm, else `BrokenOff`.
    """

    def __init__(
        self,
        max_connections: int = 1000,
        *,
        max_each: int | None = None,
        guard: EgressGuard | None = None,
        keepalive_seconds: float = 30.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._guard = guard or EgressGuard()
        self._route = lru_cache(maxsize=1024)(self._find_route)
        self._pool = Pool(Bounds.of(max_connections, max_each), keepalive_seconds)
        self._names = Names(self._guard)
        self._dialler = Dialler(self._names, tls)

    async def send(self, request: OutboundRequest) -> LeanReply:
        """Raises `NoConnectionFree`, `ConnectFailed`, `OutboundTimeout`, `BrokenOff` or `AddressRefused`, and whatever
        `before_first_byte` raises."""
        loop = asyncio.get_running_loop()
        total = None if request.total_timeout is None else loop.time() + request.total_timeout
        try:
            route = self._route(request.url, request.egress)
        except UnsafeUrl as error:
            raise _refusal(error) from None
        head = head_of(request, route)
        host = self._pool.enter(route.origin) or await self._pool.wait(route.origin, request.wait_timeout)
        reply = LeanReply(
            self._pool,
            host,
            first_byte=request.first_byte_timeout,
            idle=request.idle_timeout,
            total=total,
            method=request.method,
            repeatable=request.method in _IDEMPOTENT,
        )
        try:
            connection = self._pool.idle(host) or await self._dial(host.origin, request.connect_timeout, total)
            if request.before_first_byte is not None:
                self._pass(request.before_first_byte, connection)
            await reply.asked(connection, head, request.body)
        except BaseException:
            await reply.close()
            raise
        return reply

    async def close(self) -> None:
        self._names.close()
        self._pool.close()
        # The transports' own last callbacks.
        await asyncio.sleep(0)

    async def _dial(self, origin: Origin, seconds: float, total: float | None) -> Connection:
        self._pool.make_room()
        left = seconds if total is None else total - asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(min(seconds, left)):
                connection = await self._dialler.dial(origin, lambda: Connection(self._pool, origin))
        except UnsafeUrl as error:
            raise _refusal(error) from None
        except (OSError, EOFError) as error:
            # Not by the clock: a timer may be early by what the loop rounds.
            if left < seconds and isinstance(error, TimeoutError):
                raise OutboundTimeout from None
            raise ConnectFailed from None
        self._pool.opened(connection)
        return connection

    def _pass(self, gate: Callable[[], None], connection: Connection) -> None:
        try:
            gate()
        except BaseException:
            self._pool.rests(connection)
            raise

    def _find_route(self, url: str, egress: EgressPolicy | None) -> Route:
        return find_route(url, self._guard, egress)


def _refusal(error: UnsafeUrl) -> OutboundFailed:
    return ConnectFailed() if isinstance(error, HostNotFound) else AddressRefused()

"""Implements `Outbound` with aiohttp: pooled sessions that share no state between calls, and a limit for every wait.

The limit of concurrent calls, the queue and the decompression are those of the lean client.
"""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from functools import lru_cache, partial
from typing import NamedTuple

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from gatehouse.foundation.egress.guard import (
    EgressGuard,
    GuardedResolver,
    HostNotFound,
    UnsafeUrl,
)
from gatehouse.foundation.outbound import (
    AddressRefused,
    BrokenOff,
    ConnectFailed,
    OutboundFailed,
    OutboundReply,
    OutboundRequest,
    OutboundTimeout,
    ReplyTooLarge,
)
from gatehouse.foundation.outbound.lean.inflate import Inflater, make_inflater
from gatehouse.foundation.outbound.lean.pool import ConnectionPool, PoolLimits
from gatehouse.foundation.outbound.lean.route import Origin
from gatehouse.foundation.outbound.proxies import environment_proxy
from gatehouse.foundation.settings import EgressPolicy


class _Route(NamedTuple):
    origin: Origin
    url: URL
    proxy: URL | None
    #: headers that are sent to the proxy
    headers: Mapping[str, str] | None


class AiohttpOutbound:
    """HTTP client for providers with aiohttp. `max_connections` and `max_per_provider` limit the calls in progress and
    the waiting calls, as in `LeanOutbound`. Each call in progress has a connection of its own. A call is in progress
    until its reply is closed.

    `guard` checks every URL, and every address of a name when connecting. Private addresses are allowed, because local
    runtimes have them. `tls` replaces the system's trust store. HTTP_PROXY, HTTPS_PROXY and NO_PROXY are used; netrc
    files are not read. Redirects are not followed and cookies not stored.
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
        # The route of each URL is cached. aiohttp's `trust_env` would read the environment and netrc in a thread for
        # every request.
        self._route = lru_cache(maxsize=1024)(self._find_route)
        self._guard = guard or EgressGuard()
        self._max_connections = max_connections
        # This pool limits connections before aiohttp's pool does. The queue of aiohttp's pool is unbounded, and its
        # timeouts cannot be distinguished from those of a server that does not accept connections.
        self._pool = ConnectionPool(PoolLimits.of(max_connections, max_per_provider), keepalive_seconds)
        self._keepalive = keepalive_seconds
        self._tls = tls
        if tls is not None:
            # The same protocols as in aiohttp's default context.
            tls.set_alpn_protocols(["http/1.1"])
        #: sessions by the policy that their connections apply to addresses
        self._sessions: dict[EgressPolicy, aiohttp.ClientSession] = {}

    async def send(self, request: OutboundRequest) -> OutboundReply:
        """Sends a request. Raises `NoConnectionFree`, `ConnectFailed`, `OutboundTimeout`, `BrokenOff`,
        `AddressRefused`, and the exceptions of `before_first_byte`."""
        started = time.monotonic()
        try:
            route = self._route(request.url, request.egress)
        except UnsafeUrl as error:
            raise _translated(error) from None
        host = self._pool.enter(route.origin) or await self._pool.wait(route.origin, request.wait_timeout)
        try:
            response = await self._request(request, route, waited=time.monotonic() - started)
            inflater = _inflater_for(response)
        except BaseException:
            self._pool.leave(host)
            raise
        if request.idle_timeout != request.first_byte_timeout and response.connection is not None:
            protocol = response.connection.protocol
            if protocol is not None:
                protocol.read_timeout = request.idle_timeout
        return AiohttpReply(response, inflater, partial(self._pool.leave, host))

    async def _request(self, request: OutboundRequest, route: _Route, waited: float) -> aiohttp.ClientResponse:
        body = _RequestBody(request.body, request.before_first_byte) if request.body else None
        if body is None and request.before_first_byte is not None:
            request.before_first_byte()
        # The operator has chosen the proxy, so it may have a private address. The proxy resolves the provider's name.
        session = self._session("private" if route.proxy is not None else route.origin.bounds)
        # The total is never zero, because zero means no limit for aiohttp.
        total = None if request.total_timeout is None else max(request.total_timeout - waited, 0.001)
        try:
            # A request over plain HTTP is sent to the proxy itself, with the proxy's headers. Only a tunnel has a
            # separate request with headers for the proxy.
            to_proxy = route.headers is not None and route.url.scheme == "http"
            return await session.request(
                request.method,
                route.url,
                data=body,
                headers={**request.headers, **(route.headers or {})} if to_proxy else request.headers,
                allow_redirects=False,
                timeout=_timeout(request.connect_timeout, request.first_byte_timeout, total),
                proxy=route.proxy,
                proxy_headers=route.headers,
            )
        except (aiohttp.ClientError, OSError, TimeoutError, UnsafeUrl) as error:
            if body is not None and body.refusal is not None:
                raise body.refusal from None
            raise _translated(error) from None

    async def close(self) -> None:
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            await session.close()

    def _find_route(self, url: str, egress: EgressPolicy | None) -> _Route:
        safe = self._guard.provider_url(url, egress)
        parsed = URL(safe.url)
        origin = Origin(safe.host, safe.port, safe.scheme == "https", None, safe.bounds)
        return _Route(origin, parsed, *_proxy_for(parsed))

    def _session(self, bounds: EgressPolicy) -> aiohttp.ClientSession:
        return self._sessions.get(bounds) or self._open(bounds)

    def _open(self, bounds: EgressPolicy) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=self._max_connections,
            keepalive_timeout=self._keepalive,
            resolver=GuardedResolver(self._guard, bounds=bounds),
            ssl=self._tls or True,
        )
        connector._factory = partial(_Handler, loop=asyncio.get_running_loop())  # type: ignore[assignment]
        session = self._sessions[bounds] = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "gatehouse", "Accept-Encoding": "identity"},
            # aiohttp's own decompression would accept an incomplete body.
            auto_decompress=False,
        )
        return session


class AiohttpReply:
    """One response; see `OutboundReply`. `release` frees the call's place in the pool and is called once."""

    __slots__ = ("_inflater", "_release", "_response", "headers", "status")

    def __init__(
        self, response: aiohttp.ClientResponse, inflater: Inflater | None, release: Callable[[], None]
    ) -> None:
        self._response = response
        self._inflater = inflater
        self._release: Callable[[], None] | None = release
        self.status: int = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read(self, limit: int) -> bytes:
        declared = self._response.content_length
        if declared is not None and declared > limit:
            self._response.close()
            raise ReplyTooLarge
        parts: list[bytes] = []
        size = 0
        # `chunks` is not used, because its generator costs more than this loop.
        while chunk := await self._next():
            size += len(chunk)
            if size > limit:
                self._response.close()
                raise ReplyTooLarge
            parts.append(chunk)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def chunks(self) -> AsyncIterator[bytes]:
        while chunk := await self._next():
            yield chunk

    async def _next(self) -> bytes:
        """Returns the next data of the body, or no bytes at the end of the body."""
        try:
            if self._inflater is None:
                return await self._response.content.readany()
            return await self._decompressed(self._inflater)
        except (aiohttp.ClientError, OSError, TimeoutError, BrokenOff) as error:
            self._response.close()
            raise _translated(error) from None

    async def _decompressed(self, inflater: Inflater) -> bytes:
        while not (piece := inflater.take()):
            compressed = await self._response.content.readany()
            if not compressed:
                inflater.end()
                break
            inflater.put(compressed)
        return piece

    async def close(self) -> None:
        # If the body has been read to its end, the connection is back in the pool and `close` has no effect.
        self._response.close()
        release, self._release = self._release, None
        if release is not None:
            release()


class _Handler(ResponseHandler):
    """A protocol handler that reports the parser's errors in a body to the reader of the body. aiohttp reports them
    only to the connection and cancels the connection's timeout, so the reader would wait without end."""

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        super().set_exception(exc, *cause)
        if isinstance(exc, HttpProcessingError) and self._payload is not None:
            self._payload.set_exception(aiohttp.ClientPayloadError())


class _RequestBody(aiohttp.BytesPayload):
    """A request's body that calls `gate` before it is written. aiohttp writes head and body together, so `gate` runs
    before the first byte of the request."""

    def __init__(self, value: bytes, gate: Callable[[], None] | None) -> None:
        super().__init__(value)
        self._gate = gate
        self.refusal: Exception | None = None

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        if self._gate is not None:
            try:
                self._gate()
            except Exception as refusal:
                # aiohttp closes the connection and reports a closed connection. `_request` raises this exception
                # instead.
                self.refusal = refusal
                raise
        await super().write_with_length(writer, content_length)


def _inflater_for(response: aiohttp.ClientResponse) -> Inflater | None:
    """Returns the decompressor of the body, or None. Raises `BrokenOff` for an unsupported response."""
    if response.status == 101:
        # The request did not ask for an upgrade, and aiohttp would wait for the new protocol without end.
        response.close()
        raise BrokenOff
    try:
        return make_inflater(", ".join(response.headers.getall("Content-Encoding", ())).lower())
    except BrokenOff:
        response.close()
        raise


@lru_cache(maxsize=256)
def _timeout(connect: float, first_byte: float, total: float | None) -> aiohttp.ClientTimeout:
    # `connect` also limits the resolution of the name.
    return aiohttp.ClientTimeout(total=total, connect=connect, sock_connect=connect, sock_read=first_byte)


def _proxy_for(url: URL) -> tuple[URL | None, Mapping[str, str] | None]:
    """Returns the proxy that the environment names for a URL, and the headers for the proxy. Both may be None."""
    proxy_url = environment_proxy(url.scheme, url.host or "")
    if proxy_url is None:
        return None, None
    proxy = URL(proxy_url)
    if proxy.user is None:
        return proxy, None
    credentials = aiohttp.encode_basic_auth(proxy.user, proxy.password or "")
    return proxy.with_user(None), {"Proxy-Authorization": credentials}


_CONNECT_ERRORS = (
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.InvalidURL,
)


def _translated(error: BaseException) -> OutboundFailed:
    """Returns the `OutboundFailed` for an exception. The order of the tests matters, because some of aiohttp's errors
    inherit from several of these classes."""
    if isinstance(error, UnsafeUrl):
        return ConnectFailed() if isinstance(error, HostNotFound) else AddressRefused()
    if isinstance(error, _CONNECT_ERRORS):
        return ConnectFailed()
    if isinstance(error, aiohttp.ServerTimeoutError | asyncio.TimeoutError):
        return OutboundTimeout()
    return BrokenOff()

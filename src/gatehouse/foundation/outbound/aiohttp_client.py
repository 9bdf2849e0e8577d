"""`Outbound` carried by aiohttp: one pooled session, nothing remembered between calls, every wait bounded.

Turns and unpacking are the lean carrier's, so that both have one bound, one queue and one judgement of what is packed.
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

from gatehouse.foundation.egress import EgressGuard, GuardedResolver, HostNotFound, UnsafeUrl
from gatehouse.foundation.egress_policy import EgressPolicy
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
from gatehouse.foundation.outbound.lean.inflate import Inflater, inflater
from gatehouse.foundation.outbound.lean.pool import Bounds, Pool
from gatehouse.foundation.outbound.lean.route import Origin
from gatehouse.foundation.outbound.proxies import environment_proxy


class _Route(NamedTuple):
    origin: Origin
    url: URL
    proxy: URL | None
    #: what the proxy asks for
    headers: Mapping[str, str] | None


class AiohttpOutbound:
    """`max_connections` and `max_each` bound the calls in progress, each with a connection of its own, and the calls
    that wait, as they do in `LeanOutbound`. A call is in progress until its reply is closed.

    `guard` judges every URL and every address that a name resolves to, at the moment of connecting; private ones
    pass, because local runtimes have them. `tls` replaces the system's trust. HTTP_PROXY, HTTPS_PROXY and NO_PROXY
    are obeyed; netrc files are not read. Redirects are not followed and cookies not kept.
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
        # Once a URL: aiohttp's own `trust_env` reads the environment in a thread for every request, and netrc too.
        self._route = lru_cache(maxsize=1024)(self._find_route)
        self._guard = guard or EgressGuard()
        self._max_connections = max_connections
        # Ahead of aiohttp's own pool, whose waits cannot be told from a far end that does not accept, and are endless
        # in number.
        self._turns = Pool(Bounds.of(max_connections, max_each), keepalive_seconds)
        self._keepalive = keepalive_seconds
        self._tls = tls
        if tls is not None:
            # As aiohttp's own has it.
            tls.set_alpn_protocols(["http/1.1"])
        #: by what the addresses of a name are judged by
        self._sessions: dict[EgressPolicy, aiohttp.ClientSession] = {}

    async def send(self, request: OutboundRequest) -> OutboundReply:
        """Raises `NoConnectionFree`, `ConnectFailed`, `OutboundTimeout`, `BrokenOff` or `AddressRefused`, and whatever
        `before_first_byte` raises."""
        began = time.monotonic()
        try:
            route = self._route(request.url, request.egress)
        except UnsafeUrl as error:
            raise _translated(error) from None
        turn = self._turns.enter(route.origin) or await self._turns.wait(route.origin, request.wait_timeout)
        try:
            response = await self._request(request, route, waited=time.monotonic() - began)
            unpacking = _unpacking(response)
        except BaseException:
            self._turns.leave(turn)
            raise
        if request.idle_timeout != request.first_byte_timeout and response.connection is not None:
            protocol = response.connection.protocol
            if protocol is not None:
                protocol.read_timeout = request.idle_timeout
        return AiohttpReply(response, unpacking, partial(self._turns.leave, turn))

    async def _request(self, request: OutboundRequest, route: _Route, waited: float) -> aiohttp.ClientResponse:
        body = _Body(request.body, request.before_first_byte) if request.body else None
        if body is None and request.before_first_byte is not None:
            request.before_first_byte()
        # A proxy is the operator's own, and looks the name up by itself.
        session = self._session("private" if route.proxy is not None else route.origin.bounds)
        # aiohttp takes none for no bound.
        total = None if request.total_timeout is None else max(request.total_timeout - waited, 0.001)
        try:
            # A plain request goes to the proxy itself; only a tunnel has headers of its own.
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
            # It takes a packed body that ends early for a whole one.
            auto_decompress=False,
        )
        return session


class AiohttpReply:
    """One answer. See `OutboundReply`. `release` gives back what the call has taken; it is called once."""

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
        # Not over `chunks`: a generator costs more than all that it does here.
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
        """What has arrived; nothing at the end."""
        try:
            if self._inflater is None:
                return await self._response.content.readany()
            return await self._unpacked(self._inflater)
        except (aiohttp.ClientError, OSError, TimeoutError, BrokenOff) as error:
            self._response.close()
            raise _translated(error) from None

    async def _unpacked(self, inflater: Inflater) -> bytes:
        while not (piece := inflater.take()):
            packed = await self._response.content.readany()
            if not packed:
                inflater.end()
                break
            inflater.put(packed)
        return piece

    async def close(self) -> None:
        # Once the body was read to its end the connection is back in the pool and this does nothing.
        self._response.close()
        release, self._release = self._release, None
        if release is not None:
            release()


class _Handler(ResponseHandler):
    """aiohttp's own tells the connection that what comes behind a head is no HTTP, and not whoever waits for the body:
    with the connection its clock is gone, too."""

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        super().set_exception(exc, *cause)
        if isinstance(exc, HttpProcessingError) and self._payload is not None:
            self._payload.set_exception(aiohttp.ClientPayloadError())


class _Body(aiohttp.BytesPayload):
    """A body that asks its gate before anything is written. The head waits for it: aiohttp sends both at once."""

    def __init__(self, value: bytes, gate: Callable[[], None] | None) -> None:
        super().__init__(value)
        self._gate = gate
        self.refusal: Exception | None = None

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        if self._gate is not None:
            try:
                self._gate()
            except Exception as refusal:
                # aiohttp breaks the connection off and reports that; `send` tells the reason.
                self.refusal = refusal
                raise
        await super().write_with_length(writer, content_length)


def _unpacking(response: aiohttp.ClientResponse) -> Inflater | None:
    """What its body has to go through. Raises `BrokenOff` for an answer that nobody here can read."""
    if response.status == 101:
        # Nobody asked to speak another protocol, and aiohttp would wait for it without end.
        response.close()
        raise BrokenOff
    try:
        return inflater(", ".join(response.headers.getall("Content-Encoding", ())).lower())
    except BrokenOff:
        response.close()
        raise


@lru_cache(maxsize=256)
def _timeout(connect: float, first_byte: float, total: float | None) -> aiohttp.ClientTimeout:
    # `connect` counts from the lookup of the name on.
    return aiohttp.ClientTimeout(total=total, connect=connect, sock_connect=connect, sock_read=first_byte)


def _proxy_for(url: URL) -> tuple[URL | None, Mapping[str, str] | None]:
    """The environment's proxy for a URL, and the headers that it asks for."""
    named = environment_proxy(url.scheme, url.host or "")
    if named is None:
        return None, None
    proxy = URL(named)
    if proxy.user is None:
        return proxy, None
    credentials = aiohttp.encode_basic_auth(proxy.user, proxy.password or "")
    return proxy.with_user(None), {"Proxy-Authorization": credentials}


_NOT_CONNECTED = (
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.InvalidURL,
)


def _translated(error: BaseException) -> OutboundFailed:
    """The word for what happened. Order matters: aiohttp's errors inherit from several of these."""
    if isinstance(error, UnsafeUrl):
        return ConnectFailed() if isinstance(error, HostNotFound) else AddressRefused()
    if isinstance(error, _NOT_CONNECTED):
        return ConnectFailed()
    if isinstance(error, aiohttp.ServerTimeoutError | asyncio.TimeoutError):
        return OutboundTimeout()
    return BrokenOff()

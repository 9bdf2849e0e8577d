"""`Outbound` carried by aiohttp: one pooled session, nothing remembered between calls, every wait bounded."""

import asyncio
import socket
import ssl
import urllib.request
from collections.abc import AsyncIterator, Mapping
from functools import lru_cache

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from gatehouse.foundation.outbound import (
    BrokenOff,
    ConnectFailed,
    OutboundFailed,
    OutboundReply,
    OutboundRequest,
    OutboundTimeout,
    ReplyTooLarge,
)
from gatehouse.foundation.outbound.metadata import AddressRefused, is_metadata_address, is_metadata_host


class AiohttpOutbound:
    """`max_connections` bounds open connections in all; a call that finds none free waits `connect_timeout`.

    `tls` replaces the system's trust. HTTP_PROXY, HTTPS_PROXY and NO_PROXY are obeyed; netrc files are not read.
    Redirects are not followed and cookies not kept.
    """

    def __init__(
        self, max_connections: int = 1000, *, keepalive_seconds: float = 30.0, tls: ssl.SSLContext | None = None
    ) -> None:
        self._max_connections = max_connections
        self._keepalive = keepalive_seconds
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    async def send(self, request: OutboundRequest) -> OutboundReply:
        """Raises `ConnectFailed`, `OutboundTimeout`, `BrokenOff` or `AddressRefused`."""
        session = self._session or self._open()
        url, proxy, proxy_headers = _route(request.url)
        try:
            response = await session.request(
                request.method,
                url,
                data=request.body or None,
                headers=request.headers,
                allow_redirects=False,
                timeout=_timeout(request.connect_timeout, request.first_byte_timeout),
                proxy=proxy,
                proxy_headers=proxy_headers,
            )
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _translated(error) from None
        if request.idle_timeout != request.first_byte_timeout and response.connection is not None:
            protocol = response.connection.protocol
            if protocol is not None:
                protocol.read_timeout = request.idle_timeout
        return AiohttpReply(response)

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=self._max_connections,
            keepalive_timeout=self._keepalive,
            resolver=_GuardedResolver(aiohttp.ThreadedResolver()),
            ssl=self._tls or True,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "gatehouse", "Accept-Encoding": "identity"},
        )
        return self._session


class AiohttpReply:
    """One answer. See `OutboundReply`."""

    __slots__ = ("_response", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status: int = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read(self, limit: int) -> bytes:
        declared = self._response.content_length
        if declared is not None and declared > limit:
            self._response.close()
            raise ReplyTooLarge
        parts: list[bytes] = []
        size = 0
        async for chunk in self.chunks():
            size += len(chunk)
            if size > limit:
                self._response.close()
                raise ReplyTooLarge
            parts.append(chunk)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def chunks(self) -> AsyncIterator[bytes]:
        readany = self._response.content.readany
        try:
            while chunk := await readany():
                yield chunk
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self._response.close()
            raise _translated(error) from None

    async def close(self) -> None:
        # Once the body was read to its end the connection is back in the pool and this does nothing.
        self._response.close()


class _RefusedByResolver(OSError):
    pass


class _GuardedResolver(AbstractResolver):
    """Looks at what a name means at the moment of connecting, so that no later answer of a DNS server slips by."""

    def __init__(self, inner: AbstractResolver) -> None:
        self._inner = inner

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        if any(is_metadata_address(result["host"]) for result in found):
            raise _RefusedByResolver("metadata address")
        return found

    async def close(self) -> None:
        await self._inner.close()


@lru_cache(maxsize=256)
def _timeout(connect: float, first_byte: float) -> aiohttp.ClientTimeout:
    # `connect` counts from the wait for a free connection, so a full pool cannot hold a request for longer.
    return aiohttp.ClientTimeout(total=None, connect=connect, sock_connect=connect, sock_read=first_byte)


@lru_cache(maxsize=1024)
def _route(url: str) -> tuple[URL, URL | None, Mapping[str, str] | None]:
    """The parsed URL and the environment's proxy for it with its headers.

    Asked once a URL: aiohttp's own `trust_env` reads the environment in a thread for every request, and netrc too.
    """
    try:
        target = URL(url)
    except ValueError:
        raise ConnectFailed from None
    if target.scheme not in {"http", "https"} or not target.host:
        raise ConnectFailed
    if is_metadata_host(target.host):
        raise AddressRefused
    proxies = urllib.request.getproxies()
    named = proxies.get(target.scheme) or proxies.get("all")
    if not named or urllib.request.proxy_bypass(target.host):
        return target, None, None
    proxy = URL(named)
    if proxy.user is None:
        return target, proxy, None
    credentials = aiohttp.encode_basic_auth(proxy.user, proxy.password or "")
    return target, proxy.with_user(None), {"Proxy-Authorization": credentials}


_NOT_CONNECTED = (
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.InvalidURL,
)


def _translated(error: BaseException) -> OutboundFailed:
    """The word for what happened. Order matters: aiohttp's errors inherit from several of these."""
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, _RefusedByResolver):
        return AddressRefused()
    if isinstance(error, _NOT_CONNECTED):
        return ConnectFailed()
    if isinstance(error, aiohttp.ServerTimeoutError | asyncio.TimeoutError):
        return OutboundTimeout()
    return BrokenOff()

"""A new connection: the name's addresses, the first that answers, a proxy's tunnel, TLS."""

import asyncio
import re
import ssl
from collections.abc import Callable
from typing import Final, cast

from gatehouse.foundation.egress import Address
from gatehouse.foundation.egress_policy import EgressPolicy
from gatehouse.foundation.outbound.lean import race
from gatehouse.foundation.outbound.lean.connection import Connection
from gatehouse.foundation.outbound.lean.names import Names
from gatehouse.foundation.outbound.lean.route import Origin, Proxy, authority_of

_MAX_ANSWER: Final = 16 * 1024
_opened: Final = re.compile(rb"HTTP/1\.[01] 2[0-9][0-9][ \r]").match


def client_tls() -> ssl.SSLContext:
    """What the system trusts, and SSL_CERT_FILE."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class Dialler:
    """`proxy_tls` is for proxies that are reached by TLS themselves."""

    def __init__(self, names: Names, tls: ssl.SSLContext | None) -> None:
        self._names = names
        self._tls = tls
        if tls is not None:
            tls.set_alpn_protocols(["http/1.1"])

    async def dial(self, origin: Origin, make: Callable[[], Connection]) -> Connection:
        """Raises `UnsafeUrl`, `OSError` (TLS's errors are among them), `EOFError`. Bounded by whoever calls."""
        proxy = origin.proxy
        near: Origin | Proxy = proxy or origin
        opening = await self._reach(near.host, near.port, "private" if proxy is not None else origin.bounds)
        transport = opening.transport
        try:
            if proxy is not None:
                if proxy.tls:
                    transport = await self._secure(opening, opening, proxy.host)
                if origin.tls:
                    await opening.tunnel(authority_of(origin, explicit=True), proxy.credentials)
            connection = make()
            if origin.tls:
                transport = await self._secure(opening, connection, origin.host)
            else:
                transport.set_protocol(connection)
        except BaseException:
            opening.transport.abort()
            raise
        connection.connection_made(transport)
        return connection

    async def _reach(self, host: str, port: int, bounds: EgressPolicy) -> "_Opening":
        addresses = await self._names.addresses(host, port, bounds)
        loop = asyncio.get_running_loop()

        async def attempt(address: Address) -> _Opening:
            # The address that was judged, and no name: nothing is looked up again.
            _, opening = await loop.create_connection(_Opening, str(address), port)
            return opening

        try:
            return await race.first(addresses, attempt, lambda late: late.transport.abort())
        except (OSError, asyncio.CancelledError):
            # An address that never answers ends by the caller's patience.
            self._names.forget(host, bounds)
            raise

    async def _secure(self, opening: "_Opening", protocol: asyncio.Protocol, host: str) -> asyncio.Transport:
        if self._tls is None:
            self._tls = client_tls()
        transport = await asyncio.get_running_loop().start_tls(
            opening.transport, protocol, self._tls, server_hostname=host
        )
        if transport is None:
            raise ConnectionResetError
        opening.transport = transport
        return transport


class _Opening(asyncio.Protocol):
    """Holds a transport until its connection is made; speaks with a proxy before."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self._said = b""
        self._heard: asyncio.Future[None] | None = None

    async def tunnel(self, authority: str, credentials: str | None) -> None:
        """Raises `ConnectionRefusedError` where the proxy will not, `EOFError` where it hangs up."""
        asking = f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n"
        if credentials is not None:
            asking += f"Proxy-Authorization: {credentials}\r\n"
        self._heard = asyncio.get_running_loop().create_future()
        self.transport.write(f"{asking}\r\n".encode())
        await self._heard
        # Beyond its answer a proxy has nothing to say before we have.
        if not _opened(self._said) or not self._said.endswith(b"\r\n\r\n"):
            raise ConnectionRefusedError

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio's.
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._said += data
        if self._heard is None or len(self._said) > _MAX_ANSWER:
            self.transport.abort()
        elif b"\r\n\r\n" in self._said and not self._heard.done():
            self._heard.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._heard is not None and not self._heard.done():
            self._heard.set_exception(exc or EOFError())

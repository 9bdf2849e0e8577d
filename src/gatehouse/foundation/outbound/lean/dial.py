"""Opens a connection: resolves the name, connects to one of its addresses, opens a tunnel if there is a proxy, and
starts TLS."""

import asyncio
import re
import ssl
from collections.abc import Callable
from typing import Final, cast

from gatehouse.foundation.egress.guard import Address
from gatehouse.foundation.outbound.lean import race
from gatehouse.foundation.outbound.lean.connection import LeanConnection
from gatehouse.foundation.outbound.lean.names import AddressCache
from gatehouse.foundation.outbound.lean.route import Origin, OutboundProxy, authority_of
from gatehouse.foundation.settings import EgressPolicy

_MAX_PROXY_RESPONSE_BYTES: Final = 16 * 1024
_tunnel_opened: Final = re.compile(rb"HTTP/1\.[01] 2[0-9][0-9][ \r]").match


def client_tls() -> ssl.SSLContext:
    """Returns a TLS context that trusts the system's authorities and SSL_CERT_FILE."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class Dialler:
    """Opens connections. `tls` replaces the system's trust store."""

    def __init__(self, names: AddressCache, tls: ssl.SSLContext | None) -> None:
        self._names = names
        self._tls = tls
        if tls is not None:
            tls.set_alpn_protocols(["http/1.1"])

    async def dial(self, origin: Origin, make: Callable[[], LeanConnection]) -> LeanConnection:
        """Returns an open connection to the origin. `make` returns a new, unconnected one. The caller limits the time.

        Raises `UnsafeUrl`, `OSError` (also for TLS errors) and `EOFError`.
        """
        proxy = origin.proxy
        peer: Origin | OutboundProxy = proxy or origin
        opening = await self._connect(peer.host, peer.port, "private" if proxy is not None else origin.bounds)
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

    async def _connect(self, host: str, port: int, bounds: EgressPolicy) -> "_Opening":
        addresses = await self._names.addresses(host, port, bounds)
        loop = asyncio.get_running_loop()

        async def attempt(address: Address) -> _Opening:
            # Connect to the checked address and not to the name, which would be resolved again.
            _, opening = await loop.create_connection(_Opening, str(address), port)
            return opening

        try:
            return await race.first(addresses, attempt, lambda late: late.transport.abort())
        except (OSError, asyncio.CancelledError):
            # The caller's timeout cancels this attempt if the address does not respond. Then the name is forgotten,
            # too.
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
    """The protocol of the transport until the connection is open. It opens the tunnel through a proxy."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self._response = b""
        self._responded: asyncio.Future[None] | None = None

    async def tunnel(self, authority: str, credentials: str | None) -> None:
        """Opens a tunnel to `authority`. Raises `ConnectionRefusedError` if the proxy refuses it, and `EOFError` if the
        proxy disconnects."""
        request = f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n"
        if credentials is not None:
            request += f"Proxy-Authorization: {credentials}\r\n"
        self._responded = asyncio.get_running_loop().create_future()
        self.transport.write(f"{request}\r\n".encode())
        await self._responded
        # After its response a proxy must not send data before the client does.
        if not _tunnel_opened(self._response) or not self._response.endswith(b"\r\n\r\n"):
            raise ConnectionRefusedError

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio's.
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._response += data
        if self._responded is None or len(self._response) > _MAX_PROXY_RESPONSE_BYTES:
            self.transport.abort()
        elif b"\r\n\r\n" in self._response and not self._responded.done():
            self._responded.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._responded is not None and not self._responded.done():
            self._responded.set_exception(exc or EOFError())

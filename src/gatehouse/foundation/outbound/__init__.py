"""Requests to providers and their replies, independent of the HTTP client.

The engine uses only these types. `carriers` chooses the client: `lean` or `aiohttp_client`.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol

import msgspec

from gatehouse.foundation.settings import EgressPolicy


class OutboundRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a provider. `url` is absolute. Timeouts are in seconds. `first_byte_timeout` limits the wait for the
    status line."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = b""
    connect_timeout: float = 5.0
    first_byte_timeout: float = 30.0
    #: maximum time between two chunks of a body
    idle_timeout: float = 30.0
    #: maximum duration of the call, including the wait for a connection and the reading of the body
    total_timeout: float | None = None
    #: Is called when a connection is available. Nothing is awaited between this call and the first byte. If it raises
    #: an exception, nothing is sent.
    before_first_byte: Callable[[], None] | None = None
    #: the organization's policy for an address that it has set (`foundation.settings`); None for other addresses
    egress: EgressPolicy | None = None

    @property
    def wait_timeout(self) -> float:
        """Returns the maximum time to wait until another call ends and frees its connection. After this time
        `NoConnectionFree` is raised."""
        return self.connect_timeout if self.total_timeout is None else min(self.connect_timeout, self.total_timeout)


class OutboundReply(Protocol):
    """A response whose status and headers have arrived, and whose body has not been read yet. Always close it."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Returns the headers, with case-insensitive names."""

    async def read(self, limit: int) -> bytes:
        """Returns the whole body. Raises `ReplyTooLarge` above `limit` bytes, `OutboundFailed` if it is incomplete."""

    def chunks(self) -> AsyncIterator[bytes]:
        """Yields the body as it arrives. Raises `OutboundFailed` if it is incomplete."""

    async def close(self) -> None:
        """Returns the connection to the pool if the body has been read to its end. Otherwise cancels the call and
        closes the connection."""


class Outbound(Protocol):
    async def send(self, request: OutboundRequest) -> OutboundReply:
        """Sends a request. Raises `OutboundFailed` or a subclass if no status line arrives."""

    async def close(self) -> None: ...


class OutboundFailed(Exception):
    """No complete response arrived. `reason` is a short code for records, without secrets or content."""

    reason = "connection_failed"


class ConnectFailed(OutboundFailed):
    reason = "connect_failed"


class NoConnectionFree(OutboundFailed):
    """The limit of concurrent calls was reached, and no call ended in time. Nothing was sent."""

    reason = "no_connection_free"


class OutboundTimeout(OutboundFailed):
    reason = "timeout"


class BrokenOff(OutboundFailed):
    reason = "connection_closed"


class ReplyTooLarge(OutboundFailed):
    reason = "reply_too_large"


class AddressRefused(OutboundFailed):
    """The egress guard refuses the URL or an address of its host, for example a cloud's metadata service."""

    reason = "address_refused"

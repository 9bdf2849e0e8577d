"""What leaves the house: one request to a provider, and its reply, whatever library carries them.

The engine knows only these types. `carriers` chooses who carries them: `aiohttp_client`, or `lean` beside it.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol

import msgspec

from gatehouse.foundation.egress_policy import EgressPolicy


class OutboundRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`url` is absolute. Times are in seconds; `first_byte_timeout` bounds the wait for the status line."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = b""
    connect_timeout: float = 5.0
    first_byte_timeout: float = 30.0
    #: longest silence between two chunks of a body
    idle_timeout: float = 30.0
    #: bounds all of it, the wait for a turn and the body included
    total_timeout: float | None = None
    #: called when a connection is at hand, with nothing awaited between it and the first byte; what it raises ends
    #: the call unsent
    before_first_byte: Callable[[], None] | None = None
    #: bounds an address that an organization has given (`foundation.egress_policy`); None: nobody's own address
    egress: EgressPolicy | None = None

    @property
    def wait_timeout(self) -> float:
        """The longest wait until other calls have ended; then `NoConnectionFree`."""
        return self.connect_timeout if self.total_timeout is None else min(self.connect_timeout, self.total_timeout)


class OutboundReply(Protocol):
    """An answer whose status and headers are here and whose body is still to be read. Close it always."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Case-insensitive."""

    async def read(self, limit: int) -> bytes:
        """The whole body. Raises `ReplyTooLarge` past `limit` bytes, `OutboundFailed` if it breaks off."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives. Raises `OutboundFailed` if it breaks off."""

    async def close(self) -> None:
        """Gives the connection back when the body was read to its end, else closes it, which cancels the call."""


class Outbound(Protocol):
    async def send(self, request: OutboundRequest) -> OutboundReply:
        """Raises `OutboundFailed` (or a leaf of it) when no status line arrives."""

    async def close(self) -> None: ...


class OutboundFailed(Exception):
    """No complete answer arrived. `reason` is a short word for records; it never holds a secret or a body."""

    reason = "connection_failed"


class ConnectFailed(OutboundFailed):
    reason = "connect_failed"


class NoConnectionFree(OutboundFailed):
    """As many calls are in progress as may be, and none ended in time. The far end was not asked."""

    reason = "no_connection_free"


class OutboundTimeout(OutboundFailed):
    reason = "timeout"


class BrokenOff(OutboundFailed):
    reason = "connection_closed"


class ReplyTooLarge(OutboundFailed):
    reason = "reply_too_large"


class AddressRefused(OutboundFailed):
    """The URL, or what its name resolves to, is out of bounds: a cloud's metadata service above all (decisions 7)."""

    reason = "address_refused"

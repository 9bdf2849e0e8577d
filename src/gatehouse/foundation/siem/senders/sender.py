"""Types shared by all senders."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

import msgspec

from gatehouse.foundation.siem.events import SiemEvent


class SiemTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A receiver. Its type determines which fields are set."""

    tenant_id: UUID
    type: str
    url: str | None = None
    host: str | None = None
    port: int | None = None
    ca_certificate: str | None = None
    index: str | None = None


class BatchRefused(Exception):
    """The receiver did not accept the batch. `reason` is shown to users and contains no data of the events. If
    `too_large` is true, the receiver may accept fewer events."""

    def __init__(self, reason: str, *, too_large: bool = False) -> None:
        self.reason = reason
        self.too_large = too_large
        super().__init__(reason)


class Sender(Protocol):
    async def send(self, target: SiemTarget, secret: bytes, events: Sequence[SiemEvent]) -> None:
        """Sends the events and returns when the receiver has received all of them. `secret` is empty for a type of
        receiver without a secret. Raises `BatchRefused`, `UnsafeUrl`, `ReceiverFailed`."""


def url_of(host: str, port: int) -> str:
    """Returns a URL with the host and port, for the egress guard, which checks URLs."""
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"

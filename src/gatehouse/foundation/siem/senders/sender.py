"""What all types of receivers have in common."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

import msgspec

from gatehouse.foundation.siem.events import Forwarded


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A receiver. Which fields are set is its type's affair."""

    tenant_id: UUID
    type: str
    url: str | None = None
    host: str | None = None
    port: int | None = None
    ca_certificate: str | None = None
    index: str | None = None


class NotTaken(Exception):
    """The receiver has not taken the batch. `reason` is shown: it holds nothing of what was sent. `too_large`: it may
    take fewer events."""

    def __init__(self, reason: str, *, too_large: bool = False) -> None:
        self.reason = reason
        self.too_large = too_large
        super().__init__(reason)


class Sender(Protocol):
    async def send(self, target: Target, secret: bytes, events: Sequence[Forwarded]) -> None:
        """Returns when the receiver has all of them. Raises `NotTaken`, `UnsafeUrl`, `ReceiverFailed`. `secret` is
        empty where the type has none."""


def address(host: str, port: int) -> str:
    """As the guard judges it: it knows URLs."""
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"

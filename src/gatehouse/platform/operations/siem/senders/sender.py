"""What all types of receivers have in common."""

from collections.abc import Sequence
from typing import Any, Protocol
from uuid import UUID

import msgspec

from gatehouse.platform.operations.siem.events import Forwarded


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A receiver as it is stored. Which fields are set is its type's affair."""

    tenant_id: UUID
    type: str
    url: str | None
    host: str | None
    port: int | None
    ca_certificate: str | None
    index: str | None
    sealed_secret: str | None

    @classmethod
    def of(cls, row: Any) -> "Target":
        return cls(**{name: getattr(row, name) for name in cls.__struct_fields__})


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


def secret_context(tenant_id: UUID) -> bytes:
    """What a receiver's sealed token or secret is bound to."""
    return f"siem:{tenant_id}".encode()


def address(host: str, port: int) -> str:
    """As the guard judges it: it knows URLs."""
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"

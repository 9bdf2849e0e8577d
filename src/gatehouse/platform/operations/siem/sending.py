"""Sends a batch to the receiver of an organization, with the receiver's unsealed secret."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from gatehouse.foundation.outbound.receivers import Receivers
from gatehouse.foundation.secrets.sealing import CannotOpen, Sealer
from gatehouse.foundation.siem.events import SiemEvent
from gatehouse.foundation.siem.senders.sender import BatchRefused, SiemTarget
from gatehouse.foundation.siem.sending import Senders


class SealedTarget(SiemTarget, frozen=True, kw_only=True):
    """A receiver as it is stored, with its sealed secret."""

    sealed_secret: str | None = None

    @classmethod
    def of(cls, row: Any) -> "SealedTarget":
        return cls(**{name: getattr(row, name) for name in cls.__struct_fields__})


class SealedSenders:
    """The senders of one process. `home` is the folder GATEHOUSE_HOME."""

    def __init__(self, receivers: Receivers, sealer: Sealer, home: Path) -> None:
        self._senders = Senders(receivers, home)
        self._sealer = sealer

    async def send(self, target: SealedTarget, events: Sequence[SiemEvent]) -> None:
        """Send `events`. Returns when the receiver has accepted all of them. Raises `BatchRefused`."""
        await self._senders.send(target, self._opened(target), events)

    def _opened(self, target: SealedTarget) -> bytes:
        if target.sealed_secret is None:
            return b""
        try:
            return self._sealer.open(target.sealed_secret, context=secret_context(target.tenant_id))
        except CannotOpen:
            raise BatchRefused(
                "its secret cannot be opened with the current master keys; set the secret again"
            ) from None


def secret_context(tenant_id: UUID) -> bytes:
    """Return the context under which a receiver's token or secret is sealed."""
    return f"siem:{tenant_id}".encode()

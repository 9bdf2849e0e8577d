"""A batch to its receiver, of whatever type."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from gatehouse.foundation.egress import UnsafeUrl
from gatehouse.foundation.receivers import ReceiverFailed, Receivers
from gatehouse.foundation.sealing import CannotOpen, Sealer
from gatehouse.platform.operations.siem.events import Forwarded
from gatehouse.platform.operations.siem.senders.file import File
from gatehouse.platform.operations.siem.senders.hec import Hec
from gatehouse.platform.operations.siem.senders.sender import NotTaken, Sender, Target, secret_context
from gatehouse.platform.operations.siem.senders.syslog import Syslog
from gatehouse.platform.operations.siem.senders.webhook import Webhook


class Senders:
    """All that a process sends with. `home` is GATEHOUSE_HOME."""

    def __init__(self, receivers: Receivers, sealer: Sealer, home: Path) -> None:
        self._sealer = sealer
        self._by_type: Mapping[str, Sender] = {
            "hec": Hec(receivers),
            "webhook": Webhook(receivers),
            "syslog_tcp": Syslog(receivers, tls=False),
            "syslog_tls": Syslog(receivers, tls=True),
            "file": File(home),
        }

    async def send(self, target: Target, events: Sequence[Forwarded]) -> None:
        """Returns when the receiver has all of them. Raises `NotTaken`."""
        try:
            await self._by_type[target.type].send(target, self._opened(target), events)
        except UnsafeUrl as error:
            raise NotTaken(f"blocked by the address guard: {error.reason}") from None
        except ReceiverFailed as error:
            raise NotTaken(error.reason) from None

    def _opened(self, target: Target) -> bytes:
        if target.sealed_secret is None:
            return b""
        try:
            return self._sealer.open(target.sealed_secret, context=secret_context(target.tenant_id))
        except CannotOpen:
            raise NotTaken("its secret cannot be opened with the master keys at hand: set it again") from None

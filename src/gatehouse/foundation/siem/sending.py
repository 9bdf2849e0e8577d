"""Sends a batch to a receiver of any type."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from gatehouse.foundation.egress.guard import UnsafeUrl
from gatehouse.foundation.outbound.receivers import ReceiverFailed, Receivers
from gatehouse.foundation.siem.events import SiemEvent
from gatehouse.foundation.siem.senders.file import FileSender
from gatehouse.foundation.siem.senders.hec import Hec
from gatehouse.foundation.siem.senders.sender import BatchRefused, Sender, SiemTarget
from gatehouse.foundation.siem.senders.syslog import Syslog
from gatehouse.foundation.siem.senders.webhook import WebhookSender

#: intervals between the attempts to send a batch that the receiver does not accept; the last one is repeated
BACKOFF_SECONDS: Final = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class Senders:
    """All senders of a process, by type. `home` is GATEHOUSE_HOME."""

    def __init__(self, receivers: Receivers, home: Path) -> None:
        self._by_type: Mapping[str, Sender] = {
            "hec": Hec(receivers),
            "webhook": WebhookSender(receivers),
            "syslog_tcp": Syslog(receivers, tls=False),
            "syslog_tls": Syslog(receivers, tls=True),
            "file": FileSender(home),
        }

    async def send(self, target: SiemTarget, secret: bytes, events: Sequence[SiemEvent]) -> None:
        """Sends the events and returns when the receiver has received all of them. Raises `BatchRefused`."""
        try:
            await self._by_type[target.type].send(target, secret, events)
        except UnsafeUrl as error:
            raise BatchRefused(f"blocked by the address guard: {error.reason}") from None
        except ReceiverFailed as error:
            raise BatchRefused(error.reason) from None

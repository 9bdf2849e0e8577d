"""Sends syslog (RFC 5424) over TCP and TLS, with octet counting (RFC 6587 3.4.1, RFC 5425 4.3).

Syslog has no acknowledgement: if the receiver fails, it can lose data that its side of the connection has accepted. So
each batch has a connection of its own, which the sender half-closes after the last byte. A receiver closes its side
only after it has read everything (with TLS, RFC 5425 4.4 requires this). If the receiver fails earlier, the connection
breaks, and the batch is sent again.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import Sequence
from typing import Final

from gatehouse.foundation.clock import iso
from gatehouse.foundation.egress.guard import Address, HostNotFound
from gatehouse.foundation.outbound.receivers import Receivers
from gatehouse.foundation.siem.events import SiemEvent
from gatehouse.foundation.siem.senders.sender import BatchRefused, SiemTarget, url_of

#: maximum time to send a whole batch
_TIMEOUT_SECONDS: Final = 15.0
#: log audit (RFC 5424, 6.2.1)
_FACILITY: Final = 13
#: enterprise number for structured data; the project has none, so this is the number for documentation (RFC 5612)
_ENTERPRISE: Final = 32473
_CONNECTION_LOST: Final = "the receiver closed the connection before it had read everything"

# A header allows only printable ASCII.
_HOSTNAME: Final = re.sub(r"[^!-~]", "", socket.gethostname())[:255] or "-"
_escapes = str.maketrans({'"': '\\"', "\\": "\\\\", "]": "\\]"})


class Syslog:
    def __init__(self, receivers: Receivers, *, tls: bool) -> None:
        self._receivers = receivers
        self._tls = tls
        self._system_context: ssl.SSLContext | None = None

    async def send(self, target: SiemTarget, secret: bytes, events: Sequence[SiemEvent]) -> None:
        assert target.host is not None
        assert target.port is not None
        guard = self._receivers.guard
        # Use only the name in the guard's form, and the addresses that the guard has checked.
        safe = guard.check(url_of(target.host, target.port))
        try:
            addresses = await guard.resolve(safe)
        except HostNotFound as error:
            raise BatchRefused(error.reason) from None
        frames = b"".join(map(frame, events))
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                reader, writer = await self._connect(target, safe.host, addresses)
                try:
                    await _send_all(reader, writer, frames)
                finally:
                    writer.transport.abort()
        except TimeoutError:
            raise BatchRefused(f"the receiver has not read everything within {_TIMEOUT_SECONDS:g} s") from None
        except ssl.SSLCertVerificationError:
            raise BatchRefused("the receiver's certificate is not trusted") from None
        except ssl.SSLError:
            raise BatchRefused("TLS could not be agreed on, or was broken") from None
        except OSError:
            raise BatchRefused(_CONNECTION_LOST) from None

    async def _connect(
        self, target: SiemTarget, host: str, addresses: Sequence[Address]
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connects to the first address that accepts the connection."""
        context = self._context(target.ca_certificate) if self._tls else None
        for checked_address in addresses:
            try:
                return await asyncio.open_connection(
                    str(checked_address),
                    target.port,
                    ssl=context,
                    server_hostname=host if context else None,
                    ssl_shutdown_timeout=_TIMEOUT_SECONDS if context else None,
                )
            except ssl.SSLError:
                raise
            except OSError:
                continue
        raise BatchRefused("the connection could not be made")

    def _context(self, authorities: str | None) -> ssl.SSLContext:
        if authorities is not None:
            return ssl.create_default_context(cadata=authorities)
        if self._system_context is None:
            self._system_context = ssl.create_default_context()
        return self._system_context


async def _send_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, frames: bytes) -> None:
    """Sends the frames and returns when the receiver has read all of them. Raises `OSError` if the connection
    breaks."""
    # With a limit of 0, `drain` waits until everything is written.
    writer.transport.set_write_buffer_limits(0)
    writer.write(frames)
    await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
        # Discard all data that the receiver sends.
        while await reader.read(65536):
            pass
    else:
        # With TLS, send close_notify and wait for the receiver's close_notify.
        writer.close()
    writer.close()
    await writer.wait_closed()


def frame(event: SiemEvent) -> bytes:
    """Returns the message of an event, with its length in front."""
    data = " ".join(
        f'{name}="{value.translate(_escapes)}"'
        for name, value in (
            ("id", str(event.id)), ("tenant", str(event.tenant_id)), ("action", event.action),
            ("sequence", "" if event.sequence is None else str(event.sequence)),
        )
        if value
    )  # fmt: skip
    head = (
        f"<{_FACILITY * 8 + event.severity}>1 {iso(event.at)} {_HOSTNAME} gatehouse - {event.dataset}"
        f" [gatehouse@{_ENTERPRISE} {data}] "
    )
    message = head.encode() + event.body
    return str(len(message)).encode() + b" " + message

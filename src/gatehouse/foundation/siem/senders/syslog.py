"""Syslog (RFC 5424) over TCP and TLS, each message with its length in front (RFC 6587 3.4.1, RFC 5425 4.3).

Syslog knows no answer: what a connection has taken may still be lost with the receiver. So a batch has a connection of
its own, which is closed on this side when all is written; only a receiver that has read it to its end closes the other
(RFC 5425 4.4 asks for that with TLS). One that was killed before breaks the connection, and gets the batch again.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import Sequence
from typing import Final

from gatehouse.foundation.clock import iso
from gatehouse.foundation.egress import Address, HostNotFound
from gatehouse.foundation.receivers import Receivers
from gatehouse.foundation.siem.events import Forwarded
from gatehouse.foundation.siem.senders.sender import NotTaken, Target, address

#: For the whole of a batch.
_SECONDS: Final = 15.0
#: log audit (RFC 5424, 6.2.1)
_FACILITY: Final = 13
#: Stands for one's own in structured data (RFC 5612): the project has no number.
_ENTERPRISE: Final = 32473
_CONNECTION: Final = "the receiver closed the connection before it had read everything"

# Of the printable ASCII that a header takes.
_HOSTNAME: Final = re.sub(r"[^!-~]", "", socket.gethostname())[:255] or "-"
_escaped = str.maketrans({'"': '\\"', "\\": "\\\\", "]": "\\]"})


class Syslog:
    def __init__(self, receivers: Receivers, *, tls: bool) -> None:
        self._receivers = receivers
        self._tls = tls
        self._system: ssl.SSLContext | None = None

    async def send(self, target: Target, secret: bytes, events: Sequence[Forwarded]) -> None:
        assert target.host is not None
        assert target.port is not None
        guard = self._receivers.guard
        # The name as the guard wrote it, and the addresses that it judged: nothing else is asked for either.
        safe = guard.check(address(target.host, target.port))
        try:
            addresses = await guard.resolve(safe)
        except HostNotFound as error:
            raise NotTaken(error.reason) from None
        frames = b"".join(map(framed, events))
        try:
            async with asyncio.timeout(_SECONDS):
                reader, writer = await self._connected(target, safe.host, addresses)
                try:
                    await _through(reader, writer, frames)
                finally:
                    writer.transport.abort()
        except TimeoutError:
            raise NotTaken(f"the receiver has not read everything within {_SECONDS:g} s") from None
        except ssl.SSLCertVerificationError:
            raise NotTaken("the receiver's certificate is not trusted") from None
        except ssl.SSLError:
            raise NotTaken("TLS could not be agreed on, or was broken") from None
        except OSError:
            raise NotTaken(_CONNECTION) from None

    async def _connected(
        self, target: Target, host: str, addresses: Sequence[Address]
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """To the first of the addresses that answers."""
        context = self._context(target.ca_certificate) if self._tls else None
        for judged in addresses:
            try:
                return await asyncio.open_connection(
                    str(judged),
                    target.port,
                    ssl=context,
                    server_hostname=host if context else None,
                    ssl_shutdown_timeout=_SECONDS if context else None,
                )
            except ssl.SSLError:
                raise
            except OSError:
                continue
        raise NotTaken("the connection could not be made")

    def _context(self, authorities: str | None) -> ssl.SSLContext:
        if authorities is not None:
            return ssl.create_default_context(cadata=authorities)
        if self._system is None:
            self._system = ssl.create_default_context()
        return self._system


async def _through(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, frames: bytes) -> None:
    """Returns when the receiver has read all of it. Raises `OSError` where the connection broke."""
    # So that waiting for the writer waits for everything: closing then has nothing left to write.
    writer.transport.set_write_buffer_limits(0)
    writer.write(frames)
    await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
        # It has nothing to say. Whatever it says is not kept.
        while await reader.read(65536):
            pass
    else:
        # Says goodbye, and waits for the receiver's.
        writer.close()
    writer.close()
    await writer.wait_closed()


def framed(event: Forwarded) -> bytes:
    """One message with its length in front."""
    data = " ".join(
        f'{name}="{value.translate(_escaped)}"'
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

"""A name server on a real socket, with TXT records of the test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import dns.asyncresolver
import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

from gatehouse.foundation.egress.dns import SystemResolver


class NameServer(asyncio.DatagramProtocol):
    """`records` are by name, without the final dot. With `broken` it answers SERVFAIL."""

    def __init__(self) -> None:
        self.records: dict[str, list[str]] = {}
        self.broken = False
        self.queried_names: list[str] = []
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        assert self._transport is not None
        query = dns.message.from_wire(data)
        answer = dns.message.make_response(query)
        answer.flags |= dns.flags.RA
        question = query.question[0]
        name = question.name.to_text(omit_final_dot=True).lower()
        self.queried_names.append(name)
        if self.broken:
            answer.set_rcode(dns.rcode.SERVFAIL)
        elif name not in self.records:
            answer.set_rcode(dns.rcode.NXDOMAIN)
        elif question.rdtype == dns.rdatatype.TXT:
            texts = [f'"{text}"' for text in self.records[name]]
            if texts:
                answer.answer.append(dns.rrset.from_text(question.name, 60, "IN", "TXT", *texts))
        self._transport.sendto(answer.to_wire(), addr)


@asynccontextmanager
async def name_server() -> AsyncIterator[tuple[NameServer, SystemResolver]]:
    """Yield the server, and a resolver that uses it."""
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(NameServer, local_addr=("127.0.0.1", 0))
    resolver = dns.asyncresolver.Resolver(configure=False)
    resolver.nameservers = ["127.0.0.1"]
    resolver.port = transport.get_extra_info("sockname")[1]
    try:
        yield server, SystemResolver(resolver)
    finally:
        transport.close()

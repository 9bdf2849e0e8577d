"""A customer's receiver: an HTTPS server on this machine that records requests and answers as the test sets.

async with Receiver.listening() as receiver:
    receivers = receiver.trusted()      receivers that trust its authority and may reach this machine
    receiver.url                        https://localhost:port/
    receiver.got                        every request: path, headers, body
    receiver.answers.append(503)        the answer to the next request; 200 afterwards
"""

import asyncio
import json
import ssl
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple, Self

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.outbound.receivers import Receivers

#: All addresses of this machine, for which the egress guard must permit connections.
HERE = ("127.0.0.0/8", "::1/128")

Answer = int | web.StreamResponse | Callable[[web.Request], Awaitable[web.StreamResponse]]


class Got(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed


class Receiver:
    def __init__(self) -> None:
        self.got: list[Got] = []
        #: answers to the next requests, in order
        self.answers: deque[Answer] = deque()
        #: the answer to all other requests
        self.otherwise: Answer = 200
        self.url = ""
        self._news = asyncio.Event()
        self._closing = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def listening(cls) -> AsyncIterator[Self]:
        receiver = cls()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", receiver._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
        await runner.setup()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate())
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        assert runner.addresses
        receiver.url = f"https://localhost:{runner.addresses[0][1]}/"
        try:
            yield receiver
        finally:
            receiver._closing.set()
            await runner.cleanup()

    def trusted(self, allowlist: Iterable[str] = HERE) -> Receivers:
        """Return a sender, which the caller closes."""
        return Receivers(EgressGuard(allowlist), tls=ssl.create_default_context(cafile=str(certificate())))

    async def until(self, count: int, patience: float = 60.0) -> list[Got]:
        """Wait until this many requests were answered."""
        async with asyncio.timeout(patience):
            while len(self.got) < count:
                self._news.clear()
                await self._news.wait()
        return self.got

    async def silence(self, _: web.Request) -> web.StreamResponse:
        """Return an answer that is never sent."""
        await self._closing.wait()
        return web.Response()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        answer = self.answers.popleft() if self.answers else self.otherwise
        self.got.append(Got(request.path, dict(request.headers), body))
        self._news.set()
        if isinstance(answer, int):
            return web.Response(status=answer, text=f"answered {answer}")
        return await answer(request) if callable(answer) else answer


@cache
def certificate(*more_names: str) -> Path:
    """Write a self-signed certificate and key for `localhost`, 127.0.0.1 and other names into one PEM file."""
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "receiver")]),
    )
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=9))
        .add_extension(
            x509.SubjectAlternativeName(
                [*map(x509.DNSName, ("localhost", *more_names)), x509.IPAddress(ip_address("127.0.0.1"))]
            ),
            False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, SHA256())
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path = Path(tempfile.mkdtemp(prefix="gh-receiver-")) / "receiver.pem"
    path.write_bytes(builder.public_bytes(Encoding.PEM) + secret)
    return path


def serving(*more_names: str) -> ssl.SSLContext:
    """Return the TLS context of a server with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(*more_names))
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


def trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate()))

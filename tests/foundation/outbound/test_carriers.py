"""The common behaviour of both HTTP clients. Each test runs with both."""

import asyncio
import base64
import contextlib
import gzip
import itertools
import socket
import threading
import time
import zlib
from collections.abc import AsyncIterator
from typing import NoReturn

import pytest
from tests.support.receiver import certificate, serving, trusting
from tests.support.tunnels import tunnels
from tests.support.upstream import Connection, upstream

from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.outbound import (
    AddressRefused,
    BrokenOff,
    ConnectFailed,
    NoConnectionFree,
    OutboundRequest,
    OutboundTimeout,
    ReplyTooLarge,
)
from gatehouse.foundation.outbound.lean import pool


def post(url: str, **changes) -> OutboundRequest:
    return OutboundRequest(**{"method": "POST", "url": url, "headers": {"x-a": "1"}, "body": b"{}", **changes})


async def echo(connection: Connection) -> None:
    await connection.answer(connection.body)


async def test_a_reply_has_status_headers_and_body(outbound):
    async def behave(connection: Connection) -> None:
        await connection.answer(b'{"a":1}', status=418, more="X-Thing: yes\r\n")

    async with upstream(behave) as server:
        reply = await outbound.send(post(server.url + "/v1/x?y=1"))
        assert (reply.status, reply.headers["x-thing"], await reply.read(100)) == (418, "yes", b'{"a":1}')
        await reply.close()
        request = server.requests[0]
    assert request.head.startswith("POST /v1/x?y=1 HTTP/1.1")
    assert request.body == b"{}"
    assert request.headers["x-a"] == "1"


async def test_a_connection_is_used_again_after_a_body_was_read(outbound):
    async with upstream(echo) as server:
        for _ in range(3):
            reply = await outbound.send(post(server.url))
            await reply.read(100)
            await reply.close()
        assert server.connections == 1


async def test_cookies_are_not_kept_and_redirects_not_followed(outbound):
    async def behave(connection: Connection) -> None:
        await connection.answer(b"", status=307, more="Location: /elsewhere\r\nSet-Cookie: a=b\r\n")

    async with upstream(behave) as server:
        for _ in range(2):
            reply = await outbound.send(post(server.url))
            assert reply.status == 307
            await reply.read(10)
        assert len(server.requests) == 2
        assert "cookie" not in server.requests[1].headers


async def test_a_closed_port_is_a_failed_connect(outbound):
    async with upstream(echo) as server:
        url = server.url
    with pytest.raises(ConnectFailed):
        await outbound.send(post(url))


@pytest.mark.parametrize("url", ["http://no-such-host.invalid/v1", "ftp://127.0.0.1/", "http:///x", "nonsense"])
async def test_an_unusable_url_fails(outbound, url):
    with pytest.raises((ConnectFailed, AddressRefused)):
        await outbound.send(post(url))


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "169.254.170.2",
        "[fd00:ec2::254]",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "metadata.google.internal",
        "100.100.100.200",
    ],
)
async def test_a_metadata_address_is_refused(outbound, host):
    with pytest.raises(AddressRefused):
        await outbound.send(post(f"http://{host}/latest"))


async def test_a_name_that_resolves_to_a_metadata_address_is_refused(make, monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("169.254.169.254", 80))])
    carrier = make(guard=EgressGuard())
    with pytest.raises(AddressRefused):
        await carrier.send(post("http://harmless.example/latest"))


async def test_a_late_status_line_is_a_timeout(outbound):
    async def behave(connection: Connection) -> None:
        await asyncio.sleep(5)

    async with upstream(behave) as server:
        with pytest.raises(OutboundTimeout):
            await outbound.send(post(server.url, first_byte_timeout=0.1))


async def test_a_pause_between_two_chunks_is_a_timeout(outbound):
    async def behave(connection: Connection) -> None:
        await connection.begin_stream()
        await connection.chunk(b"one")
        await asyncio.sleep(5)

    async with upstream(behave) as server:
        reply = await outbound.send(post(server.url, first_byte_timeout=3.0, idle_timeout=0.1))
        seen = []
        with pytest.raises(OutboundTimeout):
            async for chunk in reply.chunks():
                seen.append(chunk)
        assert seen == [b"one"]


@pytest.mark.parametrize("promised", ["content-length: 100", "transfer-encoding: chunked"])
async def test_an_incomplete_body_is_a_failure(outbound, promised):
    async def behave(connection: Connection) -> None:
        await connection.send(f"HTTP/1.1 200 OK\r\n{promised}\r\n\r\n".encode() + b"5\r\nhello\r\n")
        raise ConnectionError

    async with upstream(behave) as server:
        reply = await outbound.send(post(server.url))
        with pytest.raises(BrokenOff):
            await reply.read(1000)


async def test_a_response_that_is_not_http_is_a_failure(outbound):
    async def behave(connection: Connection) -> None:
        await connection.send(b"\x00\x01\x02 certainly not HTTP\r\n\r\n")

    async with upstream(behave) as server:
        with pytest.raises(BrokenOff):
            await outbound.send(post(server.url))


async def test_a_body_of_100_mb_is_refused_by_its_declared_length(outbound):
    async def behave(connection: Connection) -> None:
        await connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 104857600\r\n\r\n" + b"x" * 1000)
        await connection.reader.read()
        raise ConnectionError

    async with upstream(behave) as server:
        reply = await outbound.send(post(server.url))
        with pytest.raises(ReplyTooLarge):
            await reply.read(1_000_000)
        await asyncio.wait_for(server.closed_by_client.wait(), 1)


async def test_an_endless_body_is_read_to_its_limit_and_no_further(outbound):
    sent = 0

    async def behave(connection: Connection) -> None:
        nonlocal sent
        await connection.begin_stream()
        while sent < 100 * 1024 * 1024:
            await connection.chunk(b"x" * 65_536)
            sent += 65_536

    async with upstream(behave) as server:
        reply = await outbound.send(post(server.url))
        with pytest.raises(ReplyTooLarge):
            await reply.read(1_000_000)
        await asyncio.wait_for(server.closed_by_client.wait(), 1)
    assert sent < 20 * 1024 * 1024


async def test_the_size_of_a_compressed_body_is_its_decompressed_size(outbound):
    packed = gzip.compress(b"0" * 5_000_000)

    async def behave(connection: Connection) -> None:
        await connection.answer(packed, more="content-encoding: gzip\r\n")

    async with upstream(behave) as server:
        reply = await outbound.send(post(server.url))
        with pytest.raises(ReplyTooLarge):
            await reply.read(1_000_000)


async def packed_stream(connection: Connection, pieces: list[bytes]) -> AsyncIterator[int]:
    """Sends chunks as gzip, each compressed byte in a chunk of its own. Yields after a chunk has been sent so far that
    it can be decompressed."""
    packing = zlib.compressobj(wbits=31)
    await connection.send(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n"
        b"transfer-encoding: chunked\r\n\r\n"
    )
    for number, piece in enumerate(pieces):
        for byte in packing.compress(piece) + packing.flush(zlib.Z_SYNC_FLUSH):
            await connection.chunk(bytes([byte]))
        yield number
    for byte in packing.flush():
        await connection.chunk(bytes([byte]))
    await connection.end_stream()


PIECES = [b"data: %d %s\n\n" % (number, b"x" * number) for number in range(6)]


async def test_a_compressed_stream_is_decompressed_as_it_arrives(outbound):
    seen = b""
    chunk_arrived = asyncio.Event()

    async def behave(connection: Connection) -> None:
        async for _ in packed_stream(connection, PIECES):
            # Send nothing more until this chunk has arrived.
            await asyncio.wait_for(chunk_arrived.wait(), 5)
            chunk_arrived.clear()

    async with upstream(behave) as server:
        reply = await outbound.send(post(server.url, first_byte_timeout=3.0, idle_timeout=1.0))
        ends = set(itertools.accumulate(map(len, PIECES)))
        async for chunk in reply.chunks():
            assert chunk
            seen += chunk
            if len(seen) in ends:
                chunk_arrived.set()
        await reply.close()
        assert seen == b"".join(PIECES)
        # The connection has been read to the end of the response.
        assert not server.closed_by_client.is_set()


@pytest.mark.parametrize("framed", ["whole", "cut"])
async def test_an_incomplete_compressed_stream_fails_after_the_received_data(outbound, framed):
    async def behave(connection: Connection) -> None:
        async for number in packed_stream(connection, PIECES):
            if number == 2:
                break
        if framed == "cut":
            raise ConnectionError
        await connection.end_stream()

    async with upstream(behave) as server:
        reply = await outbound.send(post(server.url))
        seen = b""
        with pytest.raises(BrokenOff):
            async for chunk in reply.chunks():
                seen += chunk
        assert seen == b"".join(PIECES[:3])
        await reply.close()


async def test_closing_an_unread_reply_closes_the_connection(outbound):
    async def behave(connection: Connection) -> None:
        await connection.begin_stream()
        await connection.chunk(b"one")
        await connection.reader.read()
        raise ConnectionError

    async with upstream(behave) as server:
        reply = await outbound.send(post(server.url))
        async for _ in reply.chunks():
            break
        await reply.close()
        await asyncio.wait_for(server.closed_by_client.wait(), 5)


async def test_a_cancelled_wait_closes_the_connection(outbound):
    async def behave(connection: Connection) -> None:
        await connection.reader.read()
        raise ConnectionError

    async with upstream(behave) as server:
        call = asyncio.ensure_future(outbound.send(post(server.url)))
        while not server.requests:
            await asyncio.sleep(0.01)
        call.cancel()
        await asyncio.wait_for(server.closed_by_client.wait(), 1)


async def test_a_full_pool_refuses_after_the_connect_timeout_as_no_free_connection(make):
    async def behave(connection: Connection) -> None:
        await asyncio.sleep(5)

    carrier = make(1)
    async with upstream(behave) as server:
        first = asyncio.ensure_future(carrier.send(post(server.url)))
        await asyncio.sleep(0.05)
        with pytest.raises(NoConnectionFree):
            await carrier.send(post(server.url, connect_timeout=0.1))
        first.cancel()


@contextlib.asynccontextmanager
async def hung(carrier, calls: int) -> AsyncIterator[str]:
    """Yields a provider that never responds, with calls to it: some in progress, and the others waiting."""

    async def behave(connection: Connection) -> None:
        await asyncio.sleep(60)

    async with upstream(behave) as server:
        tasks = [asyncio.ensure_future(carrier.send(post(server.url))) for _ in range(calls)]
        await asyncio.sleep(0.1)
        try:
            assert not any(task.done() for task in tasks)
            yield server.url
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_provider_that_hangs_uses_only_its_own_connections(make):
    carrier = make(3, max_per_provider=2)
    async with hung(carrier, 10) as url, upstream(echo) as healthy:
        with pytest.raises(NoConnectionFree):
            await carrier.send(post(url, connect_timeout=0.1))
        for _ in range(3):
            reply = await carrier.send(post(healthy.url, connect_timeout=0.1))
            assert await reply.read(10) == b"{}"
            await reply.close()


async def test_a_call_beyond_the_limit_of_waiting_calls_is_refused_immediately(make, monkeypatch):
    monkeypatch.setattr(pool, "MIN_WAITING_CALLS", 3)
    carrier = make(2, max_per_provider=1)
    async with hung(carrier, 1 + 3) as url, upstream(echo) as healthy:
        with pytest.raises(NoConnectionFree):
            await asyncio.wait_for(carrier.send(post(url, connect_timeout=30)), 1)
        reply = await carrier.send(post(healthy.url, connect_timeout=0.1))
        assert await reply.read(10) == b"{}"
        await reply.close()


async def test_each_provider_behind_one_proxy_has_its_own_limit(make, monkeypatch):
    async def behave(connection: Connection) -> None:
        if "hung.example" in connection.head:
            await asyncio.sleep(60)
        await connection.answer(connection.body)

    async with upstream(behave) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        carrier = make(2, max_per_provider=1)
        hung_call = asyncio.ensure_future(carrier.send(post("http://hung.example/v1")))
        await asyncio.sleep(0.1)
        reply = await carrier.send(post("http://provider.example/v1", connect_timeout=0.1))
        assert await reply.read(10) == b"{}"
        await reply.close()
        hung_call.cancel()


@pytest.mark.parametrize("ending", ["closed", "closed twice", "cancelled", "failed", "refused"])
async def test_a_call_that_has_ended_frees_its_place(make, ending):
    waiting = ending == "cancelled"

    async def behave(connection: Connection) -> None:
        if waiting:
            await asyncio.sleep(5)
        await connection.answer(b"{}")

    def refuse() -> None:
        raise RuntimeError

    carrier = make(1)
    async with upstream(behave) as server:
        match ending:
            case "cancelled":
                call = asyncio.ensure_future(carrier.send(post(server.url)))
                await asyncio.sleep(0.05)
                call.cancel()
                await asyncio.wait([call])
                waiting = False
            case "failed":
                with pytest.raises(ConnectFailed):
                    await carrier.send(post("http://127.0.0.1:1"))
            case "refused":
                with pytest.raises(RuntimeError):
                    await carrier.send(post(server.url, before_first_byte=refuse))
            case _:
                reply = await carrier.send(post(server.url))
                for _ in range(1 + ending.endswith("twice")):
                    await reply.close()
        second = await carrier.send(post(server.url, connect_timeout=0.1))
        with pytest.raises(NoConnectionFree):
            await carrier.send(post(server.url, connect_timeout=0.1))
        await second.close()


async def test_the_proxy_of_the_environment_is_used(make, monkeypatch):
    async with upstream(echo) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("http://", "http://me:secret@"))
        carrier = make()
        reply = await carrier.send(post("http://provider.example/v1/x"))
        assert await reply.read(10) == b"{}"
        assert proxy.requests[0].head.startswith("POST http://provider.example/v1/x ")
        assert proxy.requests[0].headers["proxy-authorization"].startswith("Basic ")


async def test_loopback_addresses_are_reached_without_a_proxy(make, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    carrier = make()
    async with upstream(echo) as server:
        reply = await carrier.send(post(server.url))
        assert await reply.read(10) == b"{}"


class Shut(Exception):
    pass


async def test_the_gate_is_called_between_the_connection_and_the_first_byte(outbound):
    async with upstream(echo) as server:
        seen = []

        def gate() -> None:
            seen.append(len(server.requests))

        for _ in range(2):
            reply = await outbound.send(post(server.url, before_first_byte=gate))
            await reply.read(10)
        assert seen == [0, 1]


@pytest.mark.parametrize("body", [b"{}", b""])
async def test_if_the_gate_raises_an_error_no_byte_is_sent(outbound, body):
    received = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.extend(await reader.read())
        writer.close()

    def gate() -> None:
        raise Shut

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with pytest.raises(Shut):
        await outbound.send(post(url, body=body, before_first_byte=gate))
    await asyncio.sleep(0.05)
    server.close()
    assert received == b""


async def test_the_total_timeout_applies_during_a_response(outbound):
    async def behave(connection: Connection) -> None:
        await connection.begin_stream()
        while True:
            await connection.chunk(b"one")
            await asyncio.sleep(0.05)

    async with upstream(behave) as server:
        reply = await outbound.send(post(server.url, total_timeout=0.3))
        with pytest.raises(OutboundTimeout):
            await reply.read(1000)
        await asyncio.wait_for(server.closed_by_client.wait(), 1)


async def test_the_total_timeout_applies_while_a_call_waits(make):
    carrier = make(2, max_per_provider=1)
    began = time.monotonic()
    async with hung(carrier, 1) as url:
        with pytest.raises(NoConnectionFree):
            await carrier.send(post(url, connect_timeout=30, total_timeout=0.2))
    assert time.monotonic() - began < 5


async def test_the_wait_for_a_connection_is_part_of_the_total_timeout(make):
    async def behave(connection: Connection) -> None:
        await asyncio.sleep(0.4)
        await connection.answer(b"{}")

    carrier = make(1)
    async with upstream(behave) as server:
        before = asyncio.ensure_future(carrier.send(post(server.url)))
        await asyncio.sleep(0)
        # The call gets a connection after 0.4 seconds, when 0.2 seconds of its total time are left.
        behind = asyncio.ensure_future(carrier.send(post(server.url, total_timeout=0.6)))
        await (await before).close()
        with pytest.raises(OutboundTimeout):
            await (await behind).read(10)


async def test_the_total_timeout_applies_while_a_call_connects(make):
    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(deaf, "127.0.0.1", 0)
    url = f"https://localhost:{server.sockets[0].getsockname()[1]}"
    began = time.monotonic()
    with pytest.raises(OutboundTimeout):
        await make(tls=trusting()).send(post(url, connect_timeout=30, total_timeout=0.2))
    assert time.monotonic() - began < 5
    server.close()


async def test_a_slow_reader_does_not_cause_a_timeout(outbound):
    async def behave(connection: Connection) -> None:
        await connection.begin_stream()
        for _ in range(4):
            await connection.chunk(b"x" * 300_000)
        await connection.end_stream()

    async with upstream(behave) as server:
        reply = await outbound.send(post(server.url, first_byte_timeout=3.0, idle_timeout=0.2))
        size = 0
        async for chunk in reply.chunks():
            size += len(chunk)
            if size < 300_000:
                await asyncio.sleep(0.3)
        assert size == 1_200_000


async def test_a_slow_client_slows_the_provider(outbound):
    sent = 0

    async def behave(connection: Connection) -> None:
        nonlocal sent
        await connection.begin_stream()
        for _ in range(1600):
            await connection.chunk(b"x" * 65_536)
            sent += 65_536
        await connection.end_stream()

    async with upstream(behave) as server:
        reply = await outbound.send(post(server.url))
        chunks = reply.chunks()
        await anext(chunks)
        await asyncio.sleep(0.5)
        # The other data is in the system's buffers on both sides.
        assert sent < 20 * 1024 * 1024
        size = 0
        async for chunk in chunks:
            size += len(chunk)
        assert size > 1590 * 65_536
        await reply.close()


async def test_a_long_request_that_the_server_does_not_read_is_a_timeout(outbound):
    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reader._transport.pause_reading()
        await asyncio.sleep(5)

    server = await asyncio.start_server(deaf, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with pytest.raises(OutboundTimeout):
        await outbound.send(post(url, body=b"x" * 30_000_000, first_byte_timeout=0.3, total_timeout=2.0))
    server.close()


@pytest.mark.parametrize("size", [0, 1, 16_384, 16_385, 5_000_000])
async def test_a_request_of_any_length_arrives_completely(outbound, size):
    async def behave(connection: Connection) -> None:
        await connection.answer(str(len(connection.body)).encode())

    async with upstream(behave) as server:
        reply = await outbound.send(post(server.url, body=b"x" * size))
        assert await reply.read(100) == str(size).encode()
        await reply.close()


@pytest.mark.parametrize("headers", [{"x-a": "1\r\nx-b: 2"}, {"x-a\r\nx-b": "1"}, {"x-a": "1\n"}, {"x-a": "1\0"}])
async def test_a_header_with_a_line_break_is_refused(outbound, headers):
    async with upstream(echo) as server:
        with pytest.raises(ValueError, match=r"."):
            await outbound.send(post(server.url, headers=headers))
        assert not server.requests


async def test_headers_of_the_caller_replace_the_default_headers(outbound):
    caller_headers = {"User-Agent": "me", "ACCEPT": "text/event-stream", "host": "elsewhere.example", "X-Long": "é"}
    async with upstream(echo) as server:
        await (await outbound.send(post(server.url, headers=caller_headers))).read(10)
        request = server.requests[0]
    assert {name: request.headers[name] for name in ("user-agent", "accept", "host", "x-long")} == {
        "user-agent": "me",
        "accept": "text/event-stream",
        "host": "elsewhere.example",
        "x-long": "é",
    }
    assert request.head.lower().count("\r\nhost:") == 1
    assert request.headers["accept-encoding"] == "identity"


async def test_a_connection_that_was_idle_too_long_is_not_used_again(make):
    carrier = make(keepalive_seconds=0.1)
    async with upstream(echo) as server:
        for _ in range(2):
            reply = await carrier.send(post(server.url))
            await reply.read(10)
            await reply.close()
            await asyncio.sleep(0.3)
        assert server.connections == 2


def negotiated(connection: Connection) -> str | None:
    """Yields a server that prefers HTTP/2, and does not respond to clients that offer no protocol."""
    return connection.writer.get_extra_info("ssl_object").selected_alpn_protocol()


async def test_tls_is_verified_negotiated_and_kept_alive(make):
    spoken = []

    async def behave(connection: Connection) -> None:
        spoken.append(negotiated(connection))
        await connection.answer(connection.body * 100_000)

    carrier = make(tls=trusting())
    async with upstream(behave, tls=serving()) as server:
        for _ in range(2):
            reply = await carrier.send(post(server.url))
            assert len(await reply.read(1_000_000)) == 200_000
            await reply.close()
        assert server.connections == 1
    assert spoken == ["http/1.1"] * 2


async def test_the_authorities_of_the_environment_are_trusted_and_http_1_1_is_negotiated(make_lean, monkeypatch):
    # aiohttp reads the variable once, when it is imported.
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate()))

    async def behave(connection: Connection) -> None:
        await connection.answer(str(negotiated(connection)).encode())

    async with upstream(behave, tls=serving()) as server:
        reply = await make_lean().send(post(server.url))
        assert await reply.read(10) == b"http/1.1"
        await reply.close()


@pytest.mark.parametrize("case", ["unknown authority", "another name"])
async def test_a_certificate_for_another_host_is_a_failed_connect(make, monkeypatch, case):
    async with upstream(echo, tls=serving()) as server:
        url = server.url
        if case == "another name":
            monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("127.0.0.1", 0))])
            url = url.replace("127.0.0.1", "provider.example")
        carrier = make(tls=trusting() if case == "another name" else None)
        with pytest.raises(ConnectFailed):
            await carrier.send(post(url))
        assert not server.requests


async def test_a_tls_server_without_a_handshake_is_a_failed_connect(make):
    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(5)

    server = await asyncio.start_server(deaf, "127.0.0.1", 0)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    with pytest.raises(ConnectFailed):
        await make(tls=trusting()).send(post(url, connect_timeout=0.2))
    server.close()


async def test_a_name_without_a_response_is_a_failed_connect_and_delays_nothing(make, monkeypatch):
    notified, looks = threading.Event(), []

    def never(*_: object, **__: object) -> NoReturn:
        looks.append(threading.current_thread())
        notified.wait(30)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", never)
    began = time.monotonic()
    try:
        with pytest.raises(ConnectFailed):
            await make().send(post("http://provider.example", connect_timeout=0.2))
        assert time.monotonic() - began < 5
        assert looks
    finally:
        notified.set()


async def test_another_address_of_the_name_is_used_if_one_is_unreachable(make, monkeypatch):
    async with upstream(echo) as server:
        # No server listens on the first address.
        addresses = ["127.0.0.99", "127.0.0.1"]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", (a, 0)) for a in addresses])
        reply = await make().send(post(server.url.replace("127.0.0.1", "provider.example")))
        assert await reply.read(10) == b"{}"


@pytest.mark.parametrize("secure", [False, True])
async def test_https_goes_through_the_proxys_tunnel_and_is_verified_at_its_end(make, monkeypatch, secure):
    async with (
        upstream(echo, tls=serving()) as server,
        tunnels(server.url, tls=serving() if secure else None) as (url, proxy),
    ):
        monkeypatch.setenv("https_proxy", url)
        # The certificate is for localhost. The proxy connects any other name to the same server.
        monkeypatch.setattr("gatehouse.foundation.outbound.proxies._LOOPBACK", lambda host: False)
        carrier = make(tls=trusting())
        for _ in range(2):
            reply = await carrier.send(post(server.url.replace("127.0.0.1", "localhost") + "/v1"))
            assert await reply.read(10) == b"{}"
            await reply.close()
        assert server.connections == 1
        assert server.requests[0].head.startswith("POST /v1 HTTP/1.1")
        assert "proxy-authorization" not in server.requests[0].headers
        (head,) = proxy.heads
        assert head.startswith(f"CONNECT localhost:{server.url.rpartition(':')[2]} HTTP/1.1\r\n")
        assert base64.b64encode(b"me:se@cret").decode() in head
        if not secure:
            # asyncio of Python 3.11 cannot handle a handshake that fails inside another TLS connection. uvloop can.
            with pytest.raises(ConnectFailed):
                await make(tls=trusting()).send(post("https://provider.example/v1"))


async def test_a_proxy_that_refuses_is_a_failed_connect(make, monkeypatch):
    async with tunnels("", b"HTTP/1.1 407 Who are you\r\ncontent-length: 0\r\n\r\n") as (url, _):
        monkeypatch.setenv("https_proxy", url)
        with pytest.raises(ConnectFailed):
            await make().send(post("https://provider.example/v1"))


@pytest.mark.parametrize("answer", [b"nonsense\r\n\r\n", b"HTTP/1.1 200", b"", b"HTTP/1.1 200 OK\r\n\r\nmore"])
async def test_an_invalid_response_of_the_proxy_is_a_failure(make, monkeypatch, answer):
    async with tunnels("", answer or b"\0") as (url, _):
        monkeypatch.setenv("https_proxy", url)
        with pytest.raises((ConnectFailed, BrokenOff)):
            await make().send(post("https://provider.example/v1"))


async def test_no_proxy_is_used_for_hosts_in_no_proxy(make, monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("127.0.0.1", 0))])
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "other.example,.provider.example")
    async with upstream(echo) as server:
        reply = await make().send(post(server.url.replace("127.0.0.1", "eu.provider.example")))
        assert await reply.read(10) == b"{}"

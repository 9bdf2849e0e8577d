import asyncio
import gzip
import socket
import time

import pytest
from tests.support.upstream import Connection, upstream

from gatehouse.foundation.egress import EgressGuard
from gatehouse.foundation.outbound import (
    AddressRefused,
    BrokenOff,
    ConnectFailed,
    NoConnectionFree,
    OutboundRequest,
    OutboundTimeout,
    ReplyTooLarge,
)
from gatehouse.foundation.outbound.aiohttp_client import AiohttpOutbound


@pytest.fixture
async def outbound():
    carrier = AiohttpOutbound(8)
    yield carrier
    await carrier.close()


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


async def test_nobody_listening_is_a_failed_connect(outbound):
    async with upstream(echo) as server:
        url = server.url
    with pytest.raises(ConnectFailed):
        await outbound.send(post(url))


@pytest.mark.parametrize("url", ["http://no-such-host.invalid/v1", "ftp://127.0.0.1/", "http:///x", "nonsense"])
async def test_a_url_that_leads_nowhere_fails_without_an_answer(outbound, url):
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


async def test_a_name_that_resolves_to_a_metadata_address_is_refused(monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("169.254.169.254", 80))])
    carrier = AiohttpOutbound(8, guard=EgressGuard())
    with pytest.raises(AddressRefused):
        await carrier.send(post("http://harmless.example/latest"))
    await carrier.close()


async def test_no_status_line_in_time_is_a_timeout(outbound):
    async def behave(connection: Connection) -> None:
        await asyncio.sleep(5)

    async with upstream(behave) as server:
        with pytest.raises(OutboundTimeout):
            await outbound.send(post(server.url, first_byte_timeout=0.1))


async def test_silence_between_two_chunks_is_a_timeout(outbound):
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
async def test_a_body_that_ends_early_is_broken_off(outbound, promised):
    async def behave(connection: Connection) -> None:
        await connection.send(f"HTTP/1.1 200 OK\r\n{promised}\r\n\r\n".encode() + b"5\r\nhello\r\n")
        raise ConnectionError

    async with upstream(behave) as server:
        reply = await outbound.send(post(server.url))
        with pytest.raises(BrokenOff):
            await reply.read(1000)


async def test_garbage_instead_of_http_is_broken_off(outbound):
    async def behave(connection: Connection) -> None:
        await connection.send(b"\x00\x01\x02 certainly not HTTP\r\n\r\n")

    async with upstream(behave) as server:
        with pytest.raises(BrokenOff):
            await outbound.send(post(server.url))


async def test_a_body_of_100_mb_is_refused_by_what_it_declares(outbound):
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


async def test_a_packed_body_counts_by_what_it_unpacks_to(outbound):
    packed = gzip.compress(b"0" * 5_000_000)

    async def behave(connection: Connection) -> None:
        await connection.answer(packed, more="content-encoding: gzip\r\n")

    async with upstream(behave) as server:
        reply = await outbound.send(post(server.url))
        with pytest.raises(ReplyTooLarge):
            await reply.read(1_000_000)


async def test_closing_an_unread_reply_closes_the_connection_at_once(outbound):
    async def behave(connection: Connection) -> None:
        await connection.begin_stream()
        await connection.chunk(b"one")
        await connection.reader.read()
        raise ConnectionError

    async with upstream(behave) as server:
        reply = await outbound.send(post(server.url))
        async for _ in reply.chunks():
            break
        started = time.monotonic()
        await reply.close()
        await asyncio.wait_for(server.closed_by_client.wait(), 1)
        assert time.monotonic() - started < 1


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


async def test_a_full_pool_refuses_after_the_connect_timeout_and_does_not_blame_the_far_end():
    async def behave(connection: Connection) -> None:
        await asyncio.sleep(5)

    carrier = AiohttpOutbound(1)
    async with upstream(behave) as server:
        first = asyncio.ensure_future(carrier.send(post(server.url)))
        await asyncio.sleep(0.05)
        with pytest.raises(NoConnectionFree):
            await carrier.send(post(server.url, connect_timeout=0.1))
        first.cancel()
    await carrier.close()


@pytest.mark.parametrize("ending", ["closed", "closed twice", "cancelled", "failed", "refused"])
async def test_a_call_that_is_over_makes_room_for_the_next(ending):
    waiting = ending == "cancelled"

    async def behave(connection: Connection) -> None:
        if waiting:
            await asyncio.sleep(5)
        await connection.answer(b"{}")

    def refuse() -> None:
        raise RuntimeError

    carrier = AiohttpOutbound(1)
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
    await carrier.close()


async def test_the_environments_proxy_carries_the_call(monkeypatch):
    async with upstream(echo) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("http://", "http://me:secret@"))
        carrier = AiohttpOutbound(8)
        reply = await carrier.send(post("http://provider.example/v1/x"))
        assert await reply.read(10) == b"{}"
        await carrier.close()
        assert proxy.requests[0].head.startswith("POST http://provider.example/v1/x ")
        assert proxy.requests[0].headers["proxy-authorization"].startswith("Basic ")


async def test_this_machine_is_reached_without_a_proxy(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    carrier = AiohttpOutbound(8)
    async with upstream(echo) as server:
        reply = await carrier.send(post(server.url))
        assert await reply.read(10) == b"{}"
    await carrier.close()


class Shut(Exception):
    pass


async def test_the_gate_is_asked_once_a_connection_is_there_and_before_the_first_byte(outbound):
    async with upstream(echo) as server:
        seen = []

        def gate() -> None:
            seen.append(len(server.requests))

        for _ in range(2):
            reply = await outbound.send(post(server.url, before_first_byte=gate))
            await reply.read(10)
        assert seen == [0, 1]


@pytest.mark.parametrize("body", [b"{}", b""])
async def test_a_shut_gate_ends_the_call_with_not_a_byte_sent(outbound, body):
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

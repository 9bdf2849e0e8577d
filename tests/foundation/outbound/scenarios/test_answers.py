"""Valid and invalid responses from a real socket, byte by byte. Both clients have the same outcome."""

import asyncio
import gzip
import zlib
from functools import cache

import pytest
from tests.support.upstream import Behave, Connection, upstream

from gatehouse.foundation.outbound import BrokenOff, Outbound, OutboundRequest, ReplyTooLarge

OK = b"HTTP/1.1 200 OK\r\n"
HI = OK + b"content-length: 2\r\n\r\nhi"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
RAW_DEFLATE = zlib.compress(b"hi" * 500)[2:-4]


def says(*parts: bytes, close: bool = False) -> Behave:
    async def behave(connection: Connection) -> None:
        for part in parts:
            await connection.send(part)
            # Wait, so that the parts arrive separately.
            await asyncio.sleep(0.02)
        if close:
            raise ConnectionError

    return behave


def packed(encoding: str, body: bytes) -> bytes:
    return OK + f"content-encoding: {encoding}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


async def answer_to(outbound: Outbound, url: str, method: str = "POST") -> tuple[int, bytes]:
    reply = await outbound.send(
        OutboundRequest(
            method=method, url=url, headers={}, body=b"{}" if method == "POST" else b"", first_byte_timeout=3.0
        )
    )
    try:
        return reply.status, await reply.read(1_000_000)
    finally:
        await reply.close()


@pytest.mark.parametrize(
    ("parts", "answer"),
    [
        ([HI], (200, b"hi")),
        ([HI[:5], HI[5:20], HI[20:-1], HI[-1:]], (200, b"hi")),
        ([CHUNKED + b"2\r\nhi\r\n0\r\n\r\n"], (200, b"hi")),
        ([CHUNKED + b"2\r", b"\nh", b"i\r\n0\r\n", b"\r\n"], (200, b"hi")),
        ([CHUNKED + b"2;a=b\r\nhi\r\n0\r\n\r\n"], (200, b"hi")),
        ([CHUNKED + b"2\r\nhi\r\n0\r\nx-sum: 1\r\n\r\n"], (200, b"hi")),
        ([b"HTTP/1.1 100 Continue\r\n\r\n" + HI], (200, b"hi")),
        ([b"HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\n", HI], (200, b"hi")),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\n\r\n" + HI[:9], HI[9:]], (200, b"hi")),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], (204, b"")),
        ([b"HTTP/1.1 304 Not Modified\r\netag: x\r\n\r\n"], (304, b"")),
        ([b"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nhi"], (200, b"hi")),
        ([b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nretry-after: 1\r\n\r\n"], (503, b"")),
        ([b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi"], (200, b"hi")),
        ([OK + b"connection: close\r\ncontent-length: 2\r\n\r\nhi"], (200, b"hi")),
        ([packed("gzip", gzip.compress(b"hi"))], (200, b"hi")),
        ([packed("gzip", gzip.compress(b"hi" * 100_000))], (200, b"hi" * 100_000)),
        ([packed("deflate", zlib.compress(b"hi"))], (200, b"hi")),
        ([packed("deflate", RAW_DEFLATE)], (200, b"hi" * 500)),
        ([packed("gzip", gzip.compress(b"hi") + gzip.compress(b" there"))], (200, b"hi there")),
        ([packed("gzip", b"")], (200, b"")),
        ([packed("identity", b"hi")], (200, b"hi")),
    ],
)
async def test_a_valid_response_is_read(outbound: Outbound, parts: list[bytes], answer: tuple[int, bytes]) -> None:
    async with upstream(says(*parts)) as server:
        assert await answer_to(outbound, server.url) == answer


@pytest.mark.parametrize("head", [b"HTTP/1.0 200 OK\r\n\r\n", OK + b"content-type: text/plain\r\n\r\n"])
async def test_a_body_without_a_length_ends_with_the_connection(outbound: Outbound, head: bytes) -> None:
    async with upstream(says(head + b"hi", b" there", close=True)) as server:
        assert await answer_to(outbound, server.url) == (200, b"hi there")
        assert await answer_to(outbound, server.url) == (200, b"hi there")
        assert server.connections == 2


async def test_a_response_to_head_has_no_body_even_if_it_declares_one(outbound: Outbound) -> None:
    async with upstream(says(OK + b"content-length: 1000\r\n\r\n")) as server:
        for _ in range(2):
            assert await answer_to(outbound, server.url, "HEAD") == (200, b"")


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([b"SSH-2.0-OpenSSH_9.2\r\n\r\n"], id="another protocol"),
        pytest.param([b"HTTP/1.1 OK\r\n\r\n"], id="no status"),
        pytest.param([b"HTTP/1.1 99 OK\r\ncontent-length: 0\r\n\r\n"], id="status 99"),
        pytest.param([b"HTTP/1.1 2000 OK\r\ncontent-length: 0\r\n\r\n"], id="status 2000"),
        pytest.param([OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\nhi"], id="two lengths"),
        pytest.param(
            [OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"], id="cl, te"
        ),
        pytest.param(
            [OK + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n2\r\nhi\r\n0\r\n\r\n"], id="te, cl"
        ),
        pytest.param([OK + b"content-length: +2\r\n\r\nhi"], id="signed length"),
        pytest.param([OK + b"content-length: 0x2\r\n\r\nhi"], id="hexadecimal length"),
        pytest.param([OK + b"content-length: 2, 2\r\n\r\nhi"], id="list of lengths"),
        pytest.param([OK + b"content-length: 99999999999999999999\r\n\r\nhi"], id="length of 67 bits"),
        pytest.param([OK + b"x y: 2\r\ncontent-length: 2\r\n\r\nhi"], id="space in a name"),
        pytest.param([OK + b"x\0y: 2\r\ncontent-length: 2\r\n\r\nhi"], id="NUL in a name"),
        pytest.param([OK + b"x: a\0b\r\ncontent-length: 2\r\n\r\nhi"], id="NUL in a value"),
        pytest.param([OK + b"".join(b"x-%d: y\r\n" % n for n in range(20_000)) + b"\r\n"], id="20,000 headers"),
        pytest.param([OK + b"x: " + b"y" * 200_000 + b"\r\ncontent-length: 0\r\n\r\n"], id="200 KB of a header"),
        pytest.param([OK + b"x" * 200_000 + b": y\r\ncontent-length: 0\r\n\r\n"], id="200 KB of a name"),
        pytest.param([OK] + [b"x: " + b"y" * 20_000] + [b"y" * 20_000] * 10, id="a header in pieces"),
        pytest.param([b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nxx"], id="101"),
        pytest.param([CHUNKED + b"zz\r\nhi\r\n0\r\n\r\n"], id="chunk size no number"),
        pytest.param([CHUNKED, b"zz\r\nhi\r\n0\r\n\r\n"], id="chunk size no number, in the next packet"),
        pytest.param([CHUNKED + b"2\r\nhi\r\n", b"zz\r\nhi\r\n"], id="chunk size no number, behind another"),
        pytest.param([CHUNKED + b"-2\r\nhi\r\n0\r\n\r\n"], id="chunk size negative"),
        pytest.param([CHUNKED + b"ffffffffffffffffff\r\nhi\r\n0\r\n\r\n"], id="chunk size of 72 bits"),
        pytest.param([CHUNKED + b"2\r\nhixx\r\n0\r\n\r\n"], id="chunk longer than told"),
    ],
)
async def test_an_invalid_response_fails_and_its_connection_is_closed(outbound: Outbound, parts: list[bytes]) -> None:
    async with upstream(says(*parts, b"")) as server:
        with pytest.raises(BrokenOff):
            await answer_to(outbound, server.url)
        # The remaining data is not read as the response of another call.
        with pytest.raises(BrokenOff):
            await answer_to(outbound, server.url)
        assert server.connections == 2


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([OK + b"content-length : 2\r\n\r\nhi"], id="space before the colon"),
        pytest.param([CHUNKED, b"2\r\nhixx\r\n0\r\n\r\n"], id="chunk longer than told, in the next packet"),
        pytest.param([OK + b"x: a\r\n b\r\ncontent-length: 2\r\n\r\nhi"], id="folded header"),
        pytest.param([OK.replace(b"\r", b"") + b"content-length: 2\n\nhi"], id="bare LF"),
        pytest.param([OK + b"x: y\ncontent-length: 2\r\n\r\nhi"], id="one bare LF"),
        pytest.param([b"HTTP/2.0 200 OK\r\ncontent-length: 2\r\n\r\nhi"], id="HTTP/2.0"),
        pytest.param([b"RTSP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi"], id="RTSP"),
        pytest.param([b"HTTP/1.1 000 OK\r\ncontent-length: 2\r\n\r\nhi"], id="status 0"),
        pytest.param([OK + b"transfer-encoding: gzip\r\n\r\nhi"], id="coding that is not chunked"),
        pytest.param([OK + b"transfer-encoding: gzip, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"], id="two codings"),
        pytest.param([OK + b"transfer-encoding: chunked, identity\r\n\r\n2\r\nhi\r\n0\r\n\r\n"], id="chunked first"),
        pytest.param([CHUNKED + b"2 \r\nhi\r\n0\r\n\r\n"], id="space behind a chunk's size"),
        pytest.param([CHUNKED + b"2\r\nhi\r\n0\r\n", *[b"x: " + b"y" * 30_000 + b"\r\n"] * 9], id="endless trailer"),
    ],
)
async def test_the_lean_client_refuses_responses_that_parsers_read_differently(
    lean: Outbound, parts: list[bytes]
) -> None:
    async with upstream(says(*parts, b"")) as server:
        for _ in range(2):
            with pytest.raises(BrokenOff):
                await answer_to(lean, server.url)
        assert server.connections == 2


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([packed("gzip", b"certainly not gzip")], id="not gzip"),
        pytest.param([packed("deflate", zlib.compress(b"hi" * 500)[:-9])], id="deflate cut"),
        pytest.param([packed("gzip", gzip.compress(b"hi" * 500)[:-9])], id="gzip cut"),
        pytest.param([packed("gzip", gzip.compress(b"hi")[:9] + b"x" * 50)], id="gzip spoilt"),
        pytest.param([packed("br", b"hi")], id="br"),
    ],
)
async def test_a_body_that_cannot_be_decompressed_fails(outbound: Outbound, parts: list[bytes]) -> None:
    async with upstream(says(*parts)) as server:
        with pytest.raises(BrokenOff):
            await answer_to(outbound, server.url)


@pytest.mark.parametrize("at", range(0, len(CHUNKED) + 16, 3))
async def test_a_connection_that_closes_during_a_response_is_a_failure(outbound: Outbound, at: int) -> None:
    complete_response = CHUNKED + b"5\r\nhello\r\n0\r\n\r\n"
    async with upstream(says(complete_response[:at], close=True)) as server:
        with pytest.raises(BrokenOff):
            await answer_to(outbound, server.url)


@pytest.mark.parametrize("behind", [b"more", HI, b"HTTP/1.1 2"])
async def test_data_after_a_response_is_not_read_as_the_next_response(lean: Outbound, behind: bytes) -> None:
    async with upstream(says(OK + b"content-length: 3\r\n\r\none" + behind)) as server:
        for _ in range(2):
            assert await answer_to(lean, server.url) == (200, b"one")
        assert server.connections == 2


async def test_unsolicited_data_is_not_read_as_the_next_response(lean: Outbound) -> None:
    async with upstream(says(OK + b"content-length: 3\r\n\r\none", HI)) as server:
        for _ in range(2):
            assert await answer_to(lean, server.url) == (200, b"one")
            await asyncio.sleep(0.05)
        assert server.connections == 2


@cache
def bomb() -> bytes:
    packing = zlib.compressobj(1, wbits=31)
    return b"".join(packing.compress(bytes(1024 * 1024)) for _ in range(1024)) + packing.flush()


async def test_decompression_stops_at_the_limit(outbound: Outbound) -> None:
    async with upstream(says(packed("gzip", bomb()))) as server:
        with pytest.raises(ReplyTooLarge):
            await answer_to(outbound, server.url)

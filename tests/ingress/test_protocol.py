"""The HTTP protocol with raw bytes, as old, slow, unusual and hostile clients send them."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator

import pytest
from tests.support.platform import RunningPlatform, Tenant
from tests.support.smuggling import answer_to, cut
from tests.support.upstream import Connection, upstream
from tests.support.wire import BODY, connected

from gatehouse.ingress import protocol


@pytest.fixture(scope="module")
async def key(platform: RunningPlatform) -> str:
    tenant: Tenant = await platform.new_tenant()
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo", max_retries=0)
    return await platform.new_key(tenant.user)


@pytest.fixture
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "CHECK_INTERVAL_SECONDS", 0.1)


async def test_an_offer_of_http_2_does_not_cost_the_body(url: str, key: str) -> None:
    offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAAAA\r\n"
    async with connected(url, key) as wire:
        for more in (offer, ""):
            await wire.send(more=more)
            head, body = await wire.answer()
            assert head.startswith("HTTP/1.1 200"), body
            assert b"Hello there" in body


async def test_http_1_0_gets_its_stream_without_chunks(url: str, key: str) -> None:
    async with connected(url, key) as wire:
        await wire.send(version="1.0", stream=True)
        head = await wire.head()
        assert "transfer-encoding" not in head.lower()
        body = await wire.rest()
        assert body.startswith(b"data: ")
        assert body.endswith(b"data: [DONE]\n\n")


async def test_http_1_0_gets_its_answer(url: str, key: str) -> None:
    async with connected(url, key) as wire:
        await wire.send(version="1.0")
        _, body = await wire.answer()
        assert b"Hello there" in body
        assert await wire.rest() == b""


async def test_a_client_that_waits_for_100_continue_gets_it(url: str, key: str) -> None:
    body = json.dumps(BODY).encode()
    async with connected(url, key) as wire:
        await wire.send(more=f"Expect: 100-continue\r\nContent-Length: {len(body)}\r\nX-", body=b"")
        assert (await wire.head()).startswith("HTTP/1.1 100")
        wire.writer.write(body)
        assert b"Hello there" in (await wire.answer())[1]


async def test_pipelined_requests_are_answered_in_their_order(url: str, key: str) -> None:
    async with connected(url, key) as wire:
        for number in range(3):
            await wire.send(more=f"X-Request-Id: number-{number}\r\n")
        for number in range(3):
            assert f"x-request-id: number-{number}\r\n" in (await wire.answer())[0]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/chat/completions", "POST"),
        ("OPTIONS", "/v1/chat/completions/", "POST"),
        ("PUT", "/v1/messages", "POST"),
        ("DELETE", "/v1/models/sandbox/echo", "GET"),
        ("POST", "/v1/models", "GET"),
    ],
)
async def test_another_method_is_405_and_names_the_right_one(
    url: str, key: str, method: str, path: str, allowed: str
) -> None:
    async with connected(url, key) as wire:
        await wire.send(method, path, body=b"")
        head, body = await wire.answer()
        assert head.startswith("HTTP/1.1 405"), head
        (line,) = (line for line in head.split("\r\n") if line.lower().startswith("allow:"))
        assert allowed in line
        assert json.loads(body)["error"]["type"] == "invalid_request_error"


async def test_head_of_the_models_is_the_head_of_get(url: str, key: str) -> None:
    async with connected(url, key) as wire:
        await wire.send("HEAD", "/v1/models", body=b"")
        assert (await wire.head()).startswith("HTTP/1.1 200")


ENDLESS = b"POST /v1/chat/completions HTTP/1.1\r\nX-Long: "


async def test_a_head_without_an_end_is_refused_at_the_first_byte_too_many(url: str, ingress: str) -> None:
    async with connected(url) as wire:
        wire.writer.write(ENDLESS + b"a" * (protocol.MAX_HEAD_BYTES - len(ENDLESS)))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(wire.reader.read(1), 0.2)
    text = await answer_to(url, ENDLESS + b"a" * 10 * 1024**2)
    assert text.startswith(b"HTTP/1.1 400 ")
    assert text.count(b"HTTP/1.1") == 1
    async with connected(url) as wire:
        wire.writer.write(ENDLESS + b"a" * (protocol.MAX_HEAD_BYTES + 1 - len(ENDLESS)))
        assert (await wire.answer())[0].encode().startswith(b"HTTP/1.1 400 ")
        assert await wire.rest() == b""


GOOD = b"GET /v1/models HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer KEY\r\n\r\n"
UNREAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n"


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("first", "dripped", "statuses"),
    [
        (b"", ENDLESS, []),
        (GOOD, ENDLESS, [b"200"]),
        # A client without a credential continues to send its body after the answer.
        (UNREAD, b"{", [b"401"]),
    ],
    ids=["a head", "a second head", "a body"],
)
async def test_a_slow_sender_is_disconnected_although_bytes_keep_arriving(
    platform: RunningPlatform, url: str, key: str, first: bytes, dripped: bytes, statuses: list[bytes]
) -> None:
    before = len(asyncio.all_tasks())
    # One byte every few milliseconds, for much longer than the timeout.
    async with asyncio.timeout(3):
        text = await answer_to(url, first.replace(b"KEY", key.encode()), *cut(dripped + b"a" * 9_000), pause=0.003)
    assert re.findall(rb"HTTP/1.1 (\d+)", text) == statuses
    assert platform.host.calls.count == 0
    async with asyncio.timeout(5):
        while len(asyncio.all_tasks()) != before:
            await asyncio.sleep(0.01)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("beginning", [b"", b"POST /v1/chat", b"GET /v1/models HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"])
async def test_an_incomplete_request_is_abandoned(url: str, beginning: bytes) -> None:
    async with connected(url) as wire:
        wire.writer.write(beginning)
        with contextlib.suppress(ConnectionResetError):
            # The server sends nothing, or 401 for the GET request, whose head is complete.
            assert (await wire.rest())[:12] in {b"", b"HTTP/1.1 401"}


@pytest.mark.usefixtures("impatient")
async def test_an_idle_connection_between_requests_is_kept(url: str, key: str) -> None:
    async with connected(url, key) as wire:
        for _ in range(3):
            await wire.send()
            assert b"Hello there" in (await wire.answer())[1]
            await asyncio.sleep(0.3)


class SendingProtocol(asyncio.Protocol):
    """Sends much data and closes the connection."""

    may_receive_more = True

    def __init__(self, connections: set[object]) -> None:
        self.connections = connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"x" * MEGABYTES * 1024**2)
        protocol.close(transport, self, self.connections)


@pytest.mark.usefixtures("impatient")
async def test_a_client_that_does_not_read_is_disconnected_after_the_close(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "LINGER_SECONDS", 0.1)
    connections: set[object] = set()
    server = await asyncio.get_running_loop().create_server(lambda: SendingProtocol(connections), "127.0.0.1", 0)
    async with connected(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as wire, asyncio.timeout(5):
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
        while not connections:
            await asyncio.sleep(0.01)
        while connections:
            await asyncio.sleep(0.01)
    server.close()


MEGABYTES = 200


@pytest.fixture
async def flooded(platform: RunningPlatform, url: str) -> AsyncIterator[tuple[str, list[int], asyncio.Event]]:
    """Yield a key for a provider that sends 200 MB of events as fast as they are read, the number of sent bytes, and an
    event that is set when its call ended."""
    sent, ended = [0], asyncio.Event()
    event = {"choices": [{"index": 0, "delta": {"content": "x" * 1000}}]}
    block = (b"data: " + json.dumps(event).encode() + b"\n\n") * 60

    async def flood(connection: Connection) -> None:
        await connection.begin_stream()
        try:
            while sent[0] < MEGABYTES * 1024**2:
                await connection.chunk(block)
                sent[0] += len(block)
        except ConnectionError:
            ended.set()

    tenant = await platform.new_tenant()
    async with upstream(flood) as provider:
        config = {"base_url": f"{provider.url}/v1", "max_retries": 0, "timeout_ms": 60_000}
        await platform.add_provider(tenant.id, "sandbox", "openai_compatible", "echo", **config)
        yield await platform.new_key(tenant.user), sent, ended


async def stalled(sent: list[int]) -> int:
    """Wait until the provider cannot send any more, and return the number of sent bytes."""
    before = -1
    while not sent[0] or sent[0] != before:
        before = sent[0]
        await asyncio.sleep(0.2)
    return before


async def test_nothing_is_read_from_the_provider_for_a_client_that_reads_nothing(
    url: str, flooded: tuple[str, list[int], asyncio.Event]
) -> None:
    key, sent, ended = flooded
    async with connected(url, key) as wire:
        await wire.send(stream=True)
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
        # These bytes fill the system's socket buffers on both sides, and a small buffer of the gateway.
        assert await stalled(sent) < 20 * 1024**2
        wire.writer.transport.abort()
        await asyncio.wait_for(ended.wait(), 1)


@pytest.mark.usefixtures("impatient")
async def test_a_client_that_reads_nothing_is_disconnected(
    url: str, flooded: tuple[str, list[int], asyncio.Event]
) -> None:
    key, _, ended = flooded
    async with connected(url, key) as wire:
        await wire.send(stream=True)
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.wait_for(ended.wait(), 5)


async def test_a_client_that_disconnects_with_pipelined_requests_cancels_the_call(
    url: str, flooded: tuple[str, list[int], asyncio.Event]
) -> None:
    key, sent, ended = flooded
    async with connected(url, key) as wire:
        await wire.send(stream=True)
        await wire.send(stream=True)
        await wire.reader.read(1)
        wire.writer.transport.abort()
        await asyncio.wait_for(ended.wait(), 1)
    assert sent[0] < MEGABYTES * 1024**2

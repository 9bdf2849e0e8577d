"""Tests of Gatehouse's own HTTP protocol: several requests on one connection, some of which are passed to uvicorn, and
the release of all resources."""

import asyncio
import contextlib
import gc
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import pytest
from tests.support.engine import completion
from tests.support.platform import Person, RunningPlatform
from tests.support.slow_clients import reset
from tests.support.upstream import Connection, Upstream, upstream
from tests.support.wire import BODY, Wire, connected

from gatehouse.engine.exchange import Answer, Received
from gatehouse.foundation.http.addresses import ClientAddresses
from gatehouse.ingress import protocol
from gatehouse.ingress.http1.behind import UvicornFallback
from gatehouse.ingress.http1.connection import ClientConnection
from gatehouse.ingress.http1.framing import Chunked, Malformed
from gatehouse.ingress.http1.turn import RequestCycle

CONTENT = json.dumps(BODY).encode()


@pytest.fixture(autouse=True)
def ingress(platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "ingress", "lean")


class Provider:
    """A provider that answers at once while `free` is set."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.free.set()
        self.request_arrived = asyncio.Event()
        self.upstream: Upstream

    async def behave(self, connection: Connection) -> None:
        self.request_arrived.set()
        if not self.free.is_set():
            # When a caller disconnects, reading from its connection returns.
            leaves = asyncio.create_task(connection.reader.read(1))
            freed = asyncio.create_task(self.free.wait())
            try:
                await asyncio.wait({leaves, freed}, return_when=asyncio.FIRST_COMPLETED)
                if not self.free.is_set():
                    raise ConnectionError
            finally:
                freed.cancel()
                leaves.cancel()
                await asyncio.gather(freed, leaves, return_exceptions=True)
        await connection.answer(completion("Hello there"))


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    provider = Provider()
    async with upstream(provider.behave) as provider.upstream:
        yield provider


@pytest.fixture
async def caller(platform: RunningPlatform, provider: Provider) -> Person:
    tenant = await platform.new_tenant()
    base_url = f"{provider.upstream.url}/v1"
    await platform.add_provider(tenant.id, "sandbox", "openai_compatible", "echo", base_url=base_url, max_retries=0)
    return tenant.user


@pytest.fixture
async def key(platform: RunningPlatform, caller: Person) -> str:
    return await platform.new_key(caller)


@pytest.fixture
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


def request(method: str, path: str, key: str, *lines: str, body: bytes = b"") -> bytes:
    head = (f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {key}", *lines)
    length = () if any(line.startswith("Transfer-Encoding") for line in lines) else (f"Content-Length: {len(body)}",)
    return "\r\n".join((*head, *length, "", "")).encode() + body


def call(key: str, *lines: str, body: bytes = CONTENT) -> bytes:
    return request("POST", "/v1/chat/completions", key, *lines, body=body)


def in_chunks(data: bytes, size: int) -> bytes:
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


JSON = "Content-Type: application/json"
FIRST, SECOND = b'{"description": "made first"}', b'{"description": "made second"}'


def mixed(key: str, token: str) -> list[tuple[bytes, int, bytes]]:
    """Return requests for both servers, with the status and a part of the content of each answer."""
    chunks = "Transfer-Encoding: chunked"
    return [
        (call(key), 200, b"Hello there"),
        (request("GET", "/api/health/live", key), 200, b"ok"),
        (call(key, chunks, body=in_chunks(CONTENT, 7)), 200, b"Hello there"),
        (request("POST", "/api/auth/api-keys", token, JSON, chunks, body=in_chunks(FIRST, 5)), 201, b"made first"),
        (request("GET", "/v1/models", key), 200, b"sandbox/echo"),
        (request("POST", "/api/auth/api-keys", token, JSON, "Upgrade: h2c, websocket", "Connection: Upgrade",
                 body=SECOND), 201, b"made second"),
        (call(key, "Origin: https://page.example.com"), 200, b"Hello there"),
        (request("GET", "/v1/models/sandbox%2Fecho", key), 200, b"sandbox/echo"),
        (request("POST", "/v1/scan", key, JSON, body=b'{"text": 1}'), 400, b"error"),
        (request("DELETE", "/v1/chat/completions", key), 405, b"error"),
        (b"\r\n" + call(key), 200, b"Hello there"),
    ]  # fmt: skip


async def in_turn(wire: Wire, expected: list[tuple[bytes, int, bytes]]) -> None:
    for sent, status, part in expected:
        head, body = await wire.answer()
        assert head.startswith(f"HTTP/1.1 {status} "), (sent, head, body)
        assert part in body, (sent, body)


async def test_requests_for_both_in_one_write_are_answered_in_their_order(url: str, key: str, caller: Person) -> None:
    requests = mixed(key, caller.token)
    async with connected(url) as wire:
        wire.writer.write(b"".join(sent for sent, _, _ in requests))
        await in_turn(wire, requests)


@pytest.mark.parametrize("size", [1, 7, 100])
async def test_requests_for_both_in_small_pieces_are_answered_in_their_order(
    url: str, key: str, caller: Person, size: int
) -> None:
    requests = mixed(key, caller.token)
    sent = b"".join(sent for sent, _, _ in requests)
    async with connected(url) as wire:
        answers = asyncio.create_task(in_turn(wire, requests))
        for at in range(0, len(sent), size):
            wire.writer.write(sent[at : at + size])
            await asyncio.sleep(0)
        await answers


async def test_requests_that_wait_behind_a_call_are_bounded(url: str, key: str, provider: Provider) -> None:
    provider.free.clear()
    ahead = call(key) * 100
    async with connected(url) as wire:
        taken = 0

        async def flood() -> None:
            nonlocal taken
            while True:
                wire.writer.write(ahead)
                await wire.writer.drain()
                taken += len(ahead)

        flooding = asyncio.create_task(flood())
        before = -1
        while taken != before:
            before = taken
            await asyncio.sleep(0.2)
        flooding.cancel()
        # These bytes fill the system's buffers on both sides, and a small buffer of the protocol.
        assert taken < 20 * 1024**2
        assert len(provider.upstream.requests) == 1
        wire.writer.transport.abort()


async def test_a_disconnect_with_waiting_requests_is_noticed_at_once(url: str, key: str, provider: Provider) -> None:
    provider.free.clear()
    async with connected(url) as wire:
        wire.writer.write(call(key) * 3)
        await provider.request_arrived.wait()
        wire.writer.transport.abort()
        await asyncio.wait_for(provider.upstream.closed_by_client.wait(), 1)
    assert len(provider.upstream.requests) == 1


async def test_a_stopping_server_finishes_requests_in_progress(
    platform: RunningPlatform, key: str, provider: Provider
) -> None:
    provider.free.clear()
    server = contextlib.AsyncExitStack()
    url = await server.enter_async_context(platform.listening())
    async with connected(url) as busy, connected(url) as idle:
        idle.writer.write(call(key, body=b"{}"))
        assert (await idle.answer())[0].startswith("HTTP/1.1 400")
        busy.writer.write(call(key))
        await provider.request_arrived.wait()
        stopping = asyncio.create_task(server.aclose())
        assert await idle.rest() == b""
        assert not stopping.done()
        provider.free.set()
        head, body = await busy.answer()
        assert head.startswith("HTTP/1.1 200")
        assert "connection: close" in head.lower()
        assert b"Hello there" in body
        assert await busy.rest() == b""
        await asyncio.wait_for(stopping, 5)


async def test_a_stopping_server_finishes_requests_passed_to_uvicorn(platform: RunningPlatform, caller: Person) -> None:
    whole = request("POST", "/api/auth/api-keys", caller.token, JSON, body=FIRST)
    server = contextlib.AsyncExitStack()
    url = await server.enter_async_context(platform.listening())
    async with connected(url) as wire:
        wire.writer.write(whole[:-5])
        await asyncio.sleep(0.1)
        stopping = asyncio.create_task(server.aclose())
        await asyncio.sleep(0.1)
        assert not stopping.done()
        wire.writer.write(whole[-5:])
        head, body = await wire.answer()
        assert head.startswith("HTTP/1.1 201"), head
        assert "connection: close" in head.lower()
        assert b"made first" in body
        assert await wire.rest() == b""
        await asyncio.wait_for(stopping, 5)


async def test_an_idle_connection_is_closed(
    platform: RunningPlatform, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "CHECK_INTERVAL_SECONDS", 0.1)
    async with platform.listening(idle_seconds=1) as url, connected(url) as wire:
        for sent, status in ((call(key), 200), (request("GET", "/api/health/live", key), 200)):
            wire.writer.write(sent)
            assert (await wire.answer())[0].startswith(f"HTTP/1.1 {status}")
            await asyncio.sleep(0.6)
        assert await wire.rest() == b""


async def test_connection_close_is_obeyed(url: str, key: str) -> None:
    async with connected(url) as wire:
        wire.writer.write(call(key, "Connection: Close") + call(key))
        head, _ = await wire.answer()
        assert "connection: close" in head.lower()
        assert await wire.rest() == b""


async def test_head_of_the_models_has_no_body_and_the_next_answer_follows(url: str, key: str) -> None:
    async with connected(url) as wire:
        wire.writer.write(request("HEAD", "/v1/models", key) + call(key))
        head = await wire.head()
        assert head.startswith("HTTP/1.1 200")
        assert "content-length: 0" not in head.lower()
        assert (await wire.answer())[0].startswith("HTTP/1.1 200")


async def test_a_client_that_sends_its_body_at_once_gets_no_100_continue(url: str, key: str) -> None:
    async with connected(url) as wire:
        wire.writer.write(call(key, "Expect: 100-continue"))
        assert (await wire.answer())[0].startswith("HTTP/1.1 200")


Hear = Callable[..., Awaitable[Answer]]


@pytest.fixture
def heard(platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch) -> list[Received]:
    """The requests that the engine receives."""
    received: list[Received] = []
    answer: Hear = platform.host.engine.answer

    async def hear(x: Received, *more: Any) -> Answer:
        received.append(x)
        return await answer(x, *more)

    monkeypatch.setattr(platform.host.engine, "answer", hear)
    return received


async def test_both_ingresses_call_the_engine_with_the_same_input(
    platform: RunningPlatform, key: str, heard: list[Received], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        "X-Request-Id: mine", "User-Agent:\t a client", "tracestate: a=1", "Tracestate: b=2", "anthropic-beta: first",
        "Anthropic-Beta: last", "X-Other: unread", "X-Gateway-Tags: a",
        "x-gateway-tags:b", "Cache-Control:", "X-Forwarded-For: 192.0.2.7",
    ]  # fmt: skip
    for name in ("lean", "uvicorn"):
        monkeypatch.setattr(platform, "ingress", name)
        async with platform.listening() as url, connected(url) as wire:
            wire.writer.write(request("POST", "/v1/chat/completions/?a=b", key, *lines, body=CONTENT))
            assert (await wire.answer())[0].startswith("HTTP/1.1 200")
    lean, asgi = [msgspec.structs.replace(x, received_at=0.0, started=0.0, client_address="") for x in heard]
    assert lean == asgi


@pytest.mark.parametrize(("trusted", "address"), [([], "127.0.0.1"), (["127.0.0.0/8"], "192.0.2.7")])
async def test_only_trusted_proxies_set_the_clients_address(
    platform: RunningPlatform, url: str, key: str, heard: list[Received], monkeypatch: pytest.MonkeyPatch,
    trusted: list[str], address: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(platform.app.gateway, "addresses", ClientAddresses(trusted))
    async with connected(url) as wire:
        wire.writer.write(call(key, "X-Forwarded-For: 198.51.100.1", "X-Forwarded-For: 192.0.2.7"))
        await wire.answer()
    assert [x.client_address for x in heard] == [address]


@pytest.mark.parametrize("value", ["a\r\nX-Second: b", "a\nb", "a\rb", "a\0b"])
async def test_a_header_with_a_line_break_is_never_sent(
    platform: RunningPlatform, url: str, key: str, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    async def answer(*_: object) -> Answer:
        return Answer(status=200, headers={"X-Model": value}, body=b"{}")

    monkeypatch.setattr(platform.host.engine, "answer", answer)
    async with connected(url) as wire:
        wire.writer.write(call(key))
        assert (await wire.head()).startswith("HTTP/1.1 500")


def tasks() -> int:
    """Return the number of the loop's tasks, without the provider's, which has one for each idle connection of the
    gateway."""
    return sum("upstream.<locals>.serve" not in repr(task.get_coro()) for task in asyncio.all_tasks())


async def settled(before: int) -> None:
    """Wait until there are as many tasks as before."""
    async with asyncio.timeout(5):
        while tasks() != before:
            await asyncio.sleep(0.01)


@pytest.fixture
async def before(url: str, key: str) -> int:
    """Return the number of tasks after both servers have answered and a first call has started its background tasks."""
    async with connected(url, key) as wire:
        wire.writer.write(request("GET", "/api/health/live", key) + call(key, "Connection: close"))
        assert (await wire.answer())[0].startswith("HTTP/1.1 200")
        assert (await wire.answer())[0].startswith("HTTP/1.1 200")
        assert await wire.rest() == b""
    await asyncio.sleep(0.1)
    return tasks()


async def test_a_reset_at_any_byte_leaves_no_tasks(
    platform: RunningPlatform, url: str, key: str, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost: list[ClientConnection] = []
    made: list[ClientConnection] = []
    connection_made, connection_lost = ClientConnection.connection_made, ClientConnection.connection_lost

    def make(connection: ClientConnection, transport: Any) -> None:
        made.append(connection)
        connection_made(connection, transport)

    def lose(connection: ClientConnection, error: Exception | None) -> None:
        lost.append(connection)
        connection_lost(connection, error)

    monkeypatch.setattr(ClientConnection, "connection_made", make)
    monkeypatch.setattr(ClientConnection, "connection_lost", lose)
    chunks = call(key, "Transfer-Encoding: chunked", body=in_chunks(CONTENT, 50))
    sent = request("GET", "/api/health/live", key) + chunks + call(key)
    for at in range(len(sent) + 1):
        async with connected(url) as wire:
            wire.writer.write(sent[:at])
            await asyncio.sleep(0.001)
            wire.writer.transport.abort()
    await settled(before)
    async with asyncio.timeout(5):
        while len(lost) < len(made):
            await asyncio.sleep(0.01)
    assert len(made) > len(sent)
    assert platform.host.calls.count == 0


@pytest.mark.parametrize("leave", ["says no more", "resets"])
async def test_a_client_that_disconnects_cancels_the_providers_call(
    platform: RunningPlatform, url: str, key: str, provider: Provider, before: int, leave: str
) -> None:
    provider.free.clear()
    provider.request_arrived.clear()
    provider.upstream.closed_by_client.clear()
    async with connected(url) as wire:
        wire.writer.write(call(key))
        await asyncio.wait_for(provider.request_arrived.wait(), 5)
        if leave == "resets":
            reset(wire.writer)
        else:
            wire.writer.write_eof()
            assert await wire.rest() == b""
        await asyncio.wait_for(provider.upstream.closed_by_client.wait(), 5)
        await settled(before)
    assert platform.host.calls.count == 0


async def test_requests_leave_no_cyclic_garbage(url: str, key: str, before: int) -> None:
    gc.collect()
    gc.disable()
    try:
        for stream in (False, True):
            async with connected(url, key) as wire:
                wire.writer.write(request("GET", "/api/health/live", key) + call(key) + call("gk_nobodys"))
                for _ in range(3):
                    await wire.answer()
                await wire.send(stream=stream)
                await wire.reader.readuntil(b"\r\n\r\n")
        await settled(before)
        await asyncio.sleep(0.1)
        remaining_objects = [
            obj for obj in gc.get_objects() if type(obj) in {RequestCycle, ClientConnection, UvicornFallback}
        ]
        assert remaining_objects == []
    finally:
        gc.enable()


CHUNKS = in_chunks(b"x" * 40 + b"\r\n0\r\n\r\n" + b"y" * 40, 33) + b"GET / HTTP/1.1"


@pytest.mark.parametrize("first", range(len(CHUNKS)))
def test_chunks_are_decoded_equally_wherever_they_are_split(first: int) -> None:
    framing = Chunked()
    body, remaining = b"", b""
    for data in (CHUNKS[:first], CHUNKS[first:]):
        if framing.done:
            remaining += data
        else:
            part, remaining = framing.take(data)
            body += part
    assert body == b"x" * 40 + b"\r\n0\r\n\r\n" + b"y" * 40
    assert remaining == b"GET / HTTP/1.1"


@pytest.mark.parametrize("data", [b"5\n", b"5 ", b"g", b";", b"\n", b"5\rx", b"0" * 17, b"5\r\nhelloa", b"0\r\na"])
def test_invalid_chunks_are_refused_before_their_end(data: bytes) -> None:
    with pytest.raises(Malformed):
        Chunked().take(data)

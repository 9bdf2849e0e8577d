"""The receiving of bodies: who may send one, its maximum size, and its timeout."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from tests.support.platform import RunningPlatform, Tenant
from tests.support.wire import BODY, connected

from gatehouse.engine.conversation.decoding import bodies
from gatehouse.foundation.deadlines import Deadlines
from gatehouse.foundation.http.request_body import RequestBody
from gatehouse.ingress import protocol

LARGE = 20 * 1024 * 1024
PATHS = ["/v1/chat/completions", "/api/chat/completions", "/v1/messages", "/v1/responses", "/v1/embeddings"]


@pytest.fixture(scope="module")
async def caller(platform: RunningPlatform) -> Tenant:
    tenant = await platform.new_tenant()
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo", max_retries=0)
    return tenant


@pytest.fixture(scope="module")
async def key(platform: RunningPlatform, caller: Tenant) -> str:
    return await platform.new_key(caller.user)


@pytest.fixture
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


@pytest.fixture
def hasty(platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set `BODY_TIMEOUT_SECONDS` to a fifth of a second."""
    gateway = platform.app._app
    for part in (gateway, gateway._application):  # type: ignore[union-attr]
        monkeypatch.setattr(part, "_deadlines", Deadlines(0.2))


def head(path: str, *lines: str, key: str = "gk_nobodys") -> bytes:
    return "\r\n".join((f"POST {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {key}", *lines, "", "")).encode()


def error(body: bytes) -> dict[str, str]:
    error_body: dict[str, str] = json.loads(body)["error"]
    return error_body


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("length", [f"Content-Length: {LARGE}", "Transfer-Encoding: chunked"])
async def test_a_stranger_is_refused_before_the_body_and_disconnected(url: str, path: str, length: str) -> None:
    async with connected(url) as wire:
        wire.writer.write(head(path, length))
        response_head, body = await wire.answer()
        assert response_head.startswith("HTTP/1.1 401"), response_head
        assert "connection: close" in response_head.lower()
        assert "www-authenticate: bearer" in response_head.lower()
        assert error(body)["code"] == "invalid_api_key"
        assert await wire.rest() == b""


async def test_a_stranger_who_has_sent_a_large_body_gets_the_answer(url: str) -> None:
    async with connected(url) as wire:
        wire.writer.write(head(PATHS[0], f"Content-Length: {LARGE}"))
        wire.writer.write(b"x" * LARGE)
        await wire.writer.drain()
        response_head, _ = await wire.answer()
        assert response_head.startswith("HTTP/1.1 401")
        assert await wire.rest() == b""


async def test_a_stranger_who_keeps_sending_is_disconnected(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "LINGER_SECONDS", 0.1)
    async with connected(url) as wire:
        wire.writer.write(head(PATHS[0], "Transfer-Encoding: chunked"))
        with pytest.raises(ConnectionError):
            while True:
                wire.writer.write(b"1\r\nx\r\n")
                await wire.writer.drain()
                await asyncio.sleep(0.01)


async def test_the_body_of_a_stranger_is_not_stored(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def read(body: RequestBody) -> bytes:
        raise AssertionError(body)

    monkeypatch.setattr(RequestBody, "read", read)
    async with connected(url) as wire:
        wire.writer.write(head(PATHS[0], "Content-Length: 2") + b"{}")
        assert (await wire.answer())[0].startswith("HTTP/1.1 401")


async def test_a_connection_is_kept_after_a_refusal_before_a_small_body(url: str, key: str) -> None:
    async with connected(url, key) as wire:
        wire.writer.write(head(PATHS[0], "Content-Length: 1000"))
        response_head, _ = await wire.answer()
        assert response_head.startswith("HTTP/1.1 401")
        assert "connection: close" not in response_head.lower()
        wire.writer.write(b"x" * 1000)
        await wire.send()
        response_head, body = await wire.answer()
        assert response_head.startswith("HTTP/1.1 200"), response_head
        assert b"Hello there" in body


async def test_a_stranger_who_waits_for_100_continue_gets_401_instead(url: str) -> None:
    async with connected(url) as wire:
        wire.writer.write(head(PATHS[0], "Content-Length: 1000", "Expect: 100-continue"))
        response_head, _ = await wire.answer()
        assert response_head.startswith("HTTP/1.1 401")
        assert "connection: close" in response_head.lower()


async def test_a_body_that_is_too_large_is_answered_with_413(url: str, key: str) -> None:
    async with connected(url, key) as wire:
        await wire.send(body=b"x" * LARGE)
        response_head, body = await wire.answer()
        assert response_head.startswith("HTTP/1.1 413")
        assert error(body)["code"] == "request_too_large"
        assert await wire.rest() == b""


DRIPPING: list[bytes] = [
    head("/v1/chat/completions", "Content-Length: 100000", key="KEY"),
    head("/v1/messages", "Content-Length: 100", key="KEY"),
    head("/v1/chat/completions", "Transfer-Encoding: chunked", key="KEY"),
    head("/api/auth/api-keys", "Content-Length: 100", "Content-Type: application/json", key="KEY"),
    head("/api/auth/login", "Content-Length: 100", "Content-Type: application/json"),
]


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("beginning", DRIPPING)
@pytest.mark.parametrize("silent", [True, False])
async def test_a_body_that_takes_too_long_is_408_and_the_connection_ends(
    url: str, key: str, beginning: bytes, silent: bool
) -> None:
    chunked = b"chunked" in beginning
    async with connected(url) as wire:
        wire.writer.write(beginning.replace(b"KEY", key.encode()))

        async def drip() -> None:
            while not silent:
                wire.writer.write(b"1\r\n \r\n" if chunked else b" ")
                await asyncio.sleep(0.02)

        dripping = asyncio.create_task(drip())
        response_head, body = await wire.answer()
        dripping.cancel()
        assert response_head.startswith("HTTP/1.1 408"), response_head
        assert "connection: close" in response_head.lower()
        assert b"0.2 seconds" in body


#: A request whose connection ends while the client still sends, the data that the client sends then, and the status.
ENDING: list[tuple[bytes, bytes, str]] = [
    *((beginning, b"1\r\n \r\n" if b"chunked" in beginning else b" ", "408") for beginning in DRIPPING),
    (head("/v1/messages", f"Content-Length: {LARGE}"), b" ", "401"),
    (head("/v1/messages", f"Content-Length: {LARGE}", key="KEY"), b" ", "413"),
    (head("/v1/messages", "Transfer-Encoding: chunked", key="KEY"), b"none\r\n", "400"),
    (head("/api/auth/login", "Transfer-Encoding: chunked"), b"none\r\n", "400"),
    (b"GET / HTTP/7.7\r\n\r\n", b" ", "400"),
    (b"POST http://a:99999/ HTTP/1.1\r\nContent-Length: 99999\r\n\r\n", b" ", "400"),
    (b"GET / HTTP/1.1\r\nX: " + b"x" * protocol.MAX_HEAD_BYTES, b" ", "400"),
]


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(("beginning", "more", "status"), ENDING)
async def test_a_client_that_still_sends_after_the_end_gets_the_answer(
    url: str, key: str, beginning: bytes, more: bytes, status: str
) -> None:
    async with connected(url) as wire:
        wire.writer.write(beginning.replace(b"KEY", key.encode()))
        # Send for three times the timeout of a body. If the connection were reset meanwhile, the client could not read
        # the answer.
        for _ in range(30):
            wire.writer.write(more)
            await asyncio.sleep(0.02)
        response_head, _ = await wire.answer()
        assert response_head.startswith(f"HTTP/1.1 {status}"), response_head
        assert "connection: close" in response_head.lower()
        assert await wire.rest() == b""


async def test_a_client_that_still_sends_when_the_server_stops_gets_the_answer(platform: RunningPlatform) -> None:
    async with platform.listening() as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        # The body is so small that the connection would be kept.
        writer.write(head(PATHS[0], "Content-Length: 1000") + b" ")
        await asyncio.sleep(0.1)

        async def drip() -> None:
            for _ in range(30):
                writer.write(b" ")
                await asyncio.sleep(0.02)

        dripping = asyncio.create_task(drip())
    await dripping
    assert (await reader.read()).startswith(b"HTTP/1.1 401")
    writer.close()


async def test_a_body_in_pieces_is_read_to_its_end(url: str, key: str) -> None:
    body = json.dumps(BODY).encode()
    async with connected(url) as wire:
        wire.writer.write(head(PATHS[0], f"Content-Length: {len(body)}", key=key))
        for piece in (body[:1], body[1:20], body[20:]):
            wire.writer.write(piece)
            await asyncio.sleep(0.05)
        assert b"Hello there" in (await wire.answer())[1]


class Decoder:
    """Counts the calls of the engine's decoder."""

    def __init__(self) -> None:
        self.decoded: list[bytes] = []

    def decode(self, body: bytes) -> Any:
        self.decoded.append(body)
        return msgspec.json.decode(body)


@pytest.mark.parametrize("text", ["Hello there", "my card is 4111 1111 1111 1111"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_body_is_parsed_once_for_all_stages(
    url: str, key: str, monkeypatch: pytest.MonkeyPatch, text: str, stream: bool
) -> None:
    decoder = Decoder()
    monkeypatch.setattr(bodies, "_decoder", decoder)
    monkeypatch.setattr(json, "loads", decoder.decode)
    sent = {"model": "sandbox/echo", "stream": stream, "messages": [{"role": "user", "content": text}]}
    body = json.dumps(sent, indent=2).encode()
    async with connected(url, key) as wire:
        await wire.send(body=body, more="Connection: close\r\n")
        message = await wire.rest()
    assert (b"CREDIT_CARD" if "4111" in text else b"there") in message
    # The sandbox gets the body with its own name of the model.
    assert [item for item in decoder.decoded if b"sandbox/echo" in item] == [body]


async def test_a_stopping_server_does_not_wait_for_incomplete_bodies(
    platform: RunningPlatform, url: str, key: str
) -> None:
    calls = platform.host.calls
    async with connected(url) as wire:
        wire.writer.write(head(PATHS[0], "Content-Length: 1000", key=key) + b"{")
        await asyncio.sleep(0.1)
        assert calls.count == 0
        wire.writer.write(b" " * 999)
        assert (await wire.answer())[0].startswith("HTTP/1.1 400")
    assert calls.count == 0


async def test_wrong_credentials_are_counted_before_the_body_is_read(platform: RunningPlatform, url: str) -> None:
    async with connected(url) as wire:
        left = []
        for _ in range(2):
            wire.writer.write(head(PATHS[0], "Content-Length: 2") + b"{}")
            response_head = (await wire.answer())[0].lower()
            left.append(int(response_head.split("x-ratelimit-remaining: ")[1].split("\r\n")[0]))
    assert left[1] == left[0] - 1

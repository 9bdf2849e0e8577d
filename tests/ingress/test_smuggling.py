"""Requests that two servers in a row could read differently: refused, the connection closed, and nothing of what they
hide is served. By the lane, for its own paths and for those that it hands on."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.support.engine import completion
from tests.support.platform import RunningPlatform
from tests.support.smuggling import CHUNKED, CHUNKS, FRAMING, HEADS, HIDDEN, LENGTH, LINE, TABLE, raw
from tests.support.upstream import Connection, Upstream, upstream
from tests.support.wire import connected

#: One of the gateway's, one of administration's.
PATHS = ["/v1/chat/completions", "/api/auth/api-keys"]


@pytest.fixture(autouse=True)
def ingress(platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "ingress", "lean")


@pytest.fixture(scope="module")
async def provider() -> AsyncIterator[Upstream]:
    async def behave(connection: Connection) -> None:
        await connection.answer(completion("Hello"))

    async with upstream(behave) as provider:
        yield provider


@pytest.fixture(scope="module")
async def key(platform: RunningPlatform, provider: Upstream) -> str:
    tenant = await platform.new_tenant()
    await platform.add_provider(tenant.id, "sandbox", "openai_compatible", "echo", base_url=f"{provider.url}/v1")
    return await platform.new_key(tenant.user)


@pytest.fixture
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", TABLE)
async def test_what_two_servers_could_read_differently_is_400_and_the_end(
    url: str, key: str, provider: Upstream, path: str, name: str
) -> None:
    before = len(provider.requests)
    async with connected(url) as wire:
        wire.writer.write(raw(path, key, *TABLE[name]))
        head, body = await wire.answer()
        assert head.startswith("HTTP/1.1 400"), (head, body)
        assert "connection: close" in head.lower()
        assert await wire.rest() == b""
    assert len(provider.requests) == before


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", [*HEADS, *CHUNKS])
async def test_it_is_refused_byte_by_byte_too(url: str, key: str, provider: Upstream, path: str, name: str) -> None:
    before = len(provider.requests)
    async with connected(url) as wire:
        for byte in raw(path, key, *(HEADS | CHUNKS)[name]):
            wire.writer.write(bytes([byte]))
            await asyncio.sleep(0)
        try:
            head, _ = await wire.answer()
            assert head.startswith("HTTP/1.1 400"), head
            assert await wire.rest() == b""
        except ConnectionResetError:
            # What was on its way when it was refused.
            pass
    assert len(provider.requests) == before


@pytest.mark.parametrize("path", PATHS)
async def test_a_head_that_is_too_large_is_431_and_the_end(url: str, key: str, provider: Upstream, path: str) -> None:
    before = len(provider.requests)
    async with connected(url) as wire:
        wire.writer.write(raw(path, key, LINE, LENGTH + b"X-Large: " + b"a" * 70_000 + b"\r\n", b"hello"))
        assert (await wire.head()).startswith("HTTP/1.1 431")
    assert len(provider.requests) == before


@pytest.mark.parametrize("path", PATHS)
async def test_a_good_request_in_front_is_answered_first(url: str, key: str, provider: Upstream, path: str) -> None:
    before = len(provider.requests)
    async with connected(url) as wire:
        good = HIDDEN.replace(b"KEY", key.encode())
        wire.writer.write(good + raw(path, key, *FRAMING["a length and chunks"]))
        assert (await wire.answer())[0].startswith("HTTP/1.1 200")
        assert (await wire.answer())[0].startswith("HTTP/1.1 400")
        assert await wire.rest() == b""
    assert len(provider.requests) == before + 1


async def test_the_same_bytes_without_the_fault_are_served(url: str, key: str, provider: Upstream) -> None:
    """What the table counts on: it is the fault that is refused, and what is hidden would be served."""
    before = len(provider.requests)
    async with connected(url) as wire:
        for path in PATHS:
            wire.writer.write(raw(path, key, LINE, LENGTH, b"hello"))
            assert (await wire.answer())[0].startswith(("HTTP/1.1 400", "HTTP/1.1 422"))
            assert (await wire.answer())[0].startswith("HTTP/1.1 200")
            wire.writer.write(raw(path, key, LINE, CHUNKED, b"5\r\nhello\r\n0\r\n\r\n"))
            assert (await wire.answer())[0].startswith(("HTTP/1.1 400", "HTTP/1.1 422"))
            assert (await wire.answer())[0].startswith("HTTP/1.1 200")
    assert len(provider.requests) == before + 4

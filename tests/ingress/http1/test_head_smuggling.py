"""Requests that two consecutive servers could read differently are refused, the connection is closed, and the hidden
requests are not served. This applies to the paths of Gatehouse's own protocol and to those that it passes to
uvicorn."""

from collections.abc import AsyncIterator

import pytest
from tests.support.engine import completion
from tests.support.platform import RunningPlatform
from tests.support.smuggling import CHUNKED, FRAMING, HIDDEN, LENGTH, LINE, TABLE, answer_to, cut, raw
from tests.support.upstream import Connection, Upstream, upstream
from tests.support.wire import connected

from gatehouse.ingress.protocol import MAX_HEAD_BYTES

#: One path of the gateway, one of administration.
PATHS = ["/v1/chat/completions", "/api/auth/api-keys"]


@pytest.fixture(autouse=True)
def ingress() -> str:
    """Use only Gatehouse's own protocol, because uvicorn's parser accepts some of these requests."""
    return "lean"


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


@pytest.fixture(scope="module")
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(platform, "ingress", "lean")
        async with platform.listening() as url:
            yield url


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "in pieces"])
async def test_ambiguous_requests_are_refused_and_the_connection_is_closed(
    url: str, key: str, provider: Upstream, path: str, name: str, at_once: bool
) -> None:
    before = len(provider.requests)
    request_bytes = raw(path, key, *TABLE[name])
    # Send byte by byte, except large requests.
    text = await answer_to(url, *cut(request_bytes, len(request_bytes) if at_once else 1 + len(request_bytes) // 2_000))
    head, _, body = text.decode().partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 400 "), text
    assert "content-type: text/plain" in head.lower()
    assert "connection: close" in head.lower()
    # There is one answer and nothing after it.
    assert f"content-length: {len(body)}" in head.lower(), text
    assert len(provider.requests) == before


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("more", [0, 1])
async def test_a_head_is_limited_to_the_documented_size(
    url: str, key: str, provider: Upstream, path: str, more: int
) -> None:
    before = len(provider.requests)
    start = HIDDEN.replace(b"KEY", key.encode()).replace(b"/v1/chat/completions", path.encode())
    start, _, body = start.partition(b"\r\n\r\n")
    room = MAX_HEAD_BYTES - len(start) - len(b"\r\nX-Large: \r\n\r\n") + more
    async with connected(url) as wire:
        wire.writer.write(start + b"\r\nX-Large: " + b"a" * room + b"\r\n\r\n" + body)
        head, text = await wire.answer()
    refused = b"over 64 KiB" in text
    assert refused == bool(more), (head, text)
    assert len(provider.requests) == before + (path == PATHS[0] and not more)


@pytest.mark.parametrize("path", PATHS)
async def test_a_valid_request_before_the_fault_is_answered(url: str, key: str, provider: Upstream, path: str) -> None:
    before = len(provider.requests)
    async with connected(url) as wire:
        valid_request = HIDDEN.replace(b"KEY", key.encode())
        wire.writer.write(valid_request + raw(path, key, *FRAMING["a length and chunks"]))
        assert (await wire.answer())[0].startswith("HTTP/1.1 200")
        assert (await wire.answer())[0].startswith("HTTP/1.1 400")
        assert await wire.rest() == b""
    assert len(provider.requests) == before + 1


async def test_the_same_bytes_without_the_fault_are_served(url: str, key: str, provider: Upstream) -> None:
    """Check the assumption of the table: without the fault, the request and the hidden request are both served."""
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

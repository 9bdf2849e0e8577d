"""The platform's keys, fetched from a server that is not a platform or does not respond."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gatehouse.foundation.clock import SYSTEM_CLOCK
from gatehouse.foundation.egress.guard import EgressGuard
from gatehouse.foundation.outbound.aiohttp_client import AiohttpOutbound
from gatehouse.portal.platform_link.platform_keys import PlatformKeys, PlatformKeysUnavailable
from gatehouse.portal.settings import PortalSettings


@asynccontextmanager
async def answering(body: bytes, status: bytes = b"200 OK") -> AsyncIterator[tuple[str, list[bytes]]]:
    """Yields a server with the same response to all requests: its URL, and the request lines that it has received."""
    requests: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append((await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")[0])
        head = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        writer.write(head % (status, len(body)) + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", requests


@asynccontextmanager
async def keys_of(address: str, home: Path) -> AsyncIterator[PlatformKeys]:
    settings = PortalSettings.from_environment(
        {
            "GATEHOUSE_HOME": str(home),
            "PLATFORM_URL": address,
            "PLATFORM_CLIENT_ID": "7b0b8d3e-6f0e-4c0e-9d0a-2f3b1c4d5e6f",
            "PLATFORM_CLIENT_SECRET": "a secret of the portal's",
        }
    )
    outbound = AiohttpOutbound(10, guard=EgressGuard(settings.egress_allowlist))
    try:
        yield PlatformKeys(settings, outbound, SYSTEM_CLOCK)
    finally:
        await outbound.close()


async def test_after_a_failed_fetch_callers_do_not_fetch_again_immediately(tmp_path: Path) -> None:
    async with (
        answering(b"{}", b"503 Service Unavailable") as (address, request),
        keys_of(address, tmp_path) as keys,
    ):
        results = await asyncio.gather(
            *(keys.verify("x.y.z", audience="here") for _ in range(20)), return_exceptions=True
        )
        assert {type(item) for item in results} == {PlatformKeysUnavailable}
        assert len(request) == 2
        await asyncio.sleep(1.1)
        with pytest.raises(PlatformKeysUnavailable):
            await keys.verify("x.y.z", audience="here")
        assert len(request) == 4


@pytest.mark.parametrize("body", [b"{}", b"[]", b"null", b"7", b'{"keys": 7}', b'{"keys": [7, null]}'])
async def test_another_server_is_not_accepted_as_the_platform(body: bytes, tmp_path: Path) -> None:
    async with answering(body) as (address, _), keys_of(address, tmp_path) as keys:
        with pytest.raises(PlatformKeysUnavailable):
            await keys.verify("x.y.z", audience="here")

"""The environment's settings for calls to providers take effect."""

import asyncio
import contextlib

import pytest
from tests.support.platform import RunningPlatform
from tests.support.upstream import Connection, upstream

from gatehouse.foundation.outbound import NoConnectionFree, OutboundRequest
from gatehouse.foundation.outbound.carriers import Carrier
from gatehouse.foundation.settings import BadSettings, Settings


@pytest.mark.parametrize(
    ("environment", "connections_per_provider"),
    [
        ({}, 1000),
        ({"PROVIDER_MAX_CONNECTIONS": "1"}, 1),
        ({"PROVIDER_MAX_CONNECTIONS": "5"}, 3),
        ({"PROVIDER_MAX_CONNECTIONS_EACH": "2000"}, 2000),
        ({"PROVIDER_MAX_CONNECTIONS": "5", "PROVIDER_MAX_CONNECTIONS_EACH": "1"}, 1),
    ],
)
def test_a_providers_share_is_half_or_the_configured_number(
    environment: dict[str, str], connections_per_provider: int
) -> None:
    assert Settings.from_environment(environment).connections_per_provider == connections_per_provider


@pytest.mark.parametrize("value", ["0", "2001"])
def test_a_share_of_zero_or_more_than_all_is_refused_at_the_start(value: str) -> None:
    with pytest.raises(BadSettings, match="PROVIDER_MAX_CONNECTIONS_EACH"):
        Settings.from_environment({"PROVIDER_MAX_CONNECTIONS_EACH": value})


@pytest.mark.parametrize("carrier", ["lean", "aiohttp"])
async def test_a_worker_limits_the_connections_to_each_provider(platform: RunningPlatform, carrier: Carrier) -> None:
    settings = platform.installed.settings.model_copy(
        update={"outbound": carrier, "provider_max_connections": 2, "provider_max_connections_each": 1}
    )

    async def hang(connection: Connection) -> None:
        await asyncio.sleep(60)

    async def echo(connection: Connection) -> None:
        await connection.answer(connection.body)

    def call(url: str) -> OutboundRequest:
        return OutboundRequest(method="POST", url=url, headers={}, body=b"{}", connect_timeout=0.2)

    async with RunningPlatform.start(settings) as worker, upstream(hang) as hung, upstream(echo) as healthy:
        outbound = worker.host.ports.outbound
        hung_call = asyncio.ensure_future(outbound.send(call(hung.url)))
        await asyncio.sleep(0.1)
        with pytest.raises(NoConnectionFree):
            await outbound.send(call(hung.url))
        reply = await outbound.send(call(healthy.url))
        assert await reply.read(10) == b"{}"
        await reply.close()
        hung_call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await hung_call

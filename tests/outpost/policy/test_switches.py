"""Kill switches stop requests that an outpost has admitted: its own, and those of the platform in its bundle."""

import asyncio
from collections.abc import Iterator
from uuid import UUID

import pytest
from tests.support.fake_platform import TENANT, FakePlatform
from tests.support.outpost_server import OutpostServer
from tests.support.upstream import Connection, upstream

from gatehouse.policy.catalog import ModelRecord, ProviderConfig, ProviderRecord, TenantRecords

ECHO = UUID(int=23)


@pytest.fixture(scope="module")
def platform() -> Iterator[FakePlatform]:
    with FakePlatform() as running:
        yield running


def test_a_model_that_the_platform_has_switched_off_answers_nothing(platform: FakePlatform) -> None:
    server = OutpostServer(platform)  # type: ignore[arg-type]
    platform.send(platform.bundle(server.id, 10, switched_off=[ECHO]))
    with server as outpost:
        refused = outpost.ask(model="sandbox/echo")
        assert (refused.status_code, refused.json()["error"]["type"]) == (503, "provider_unavailable")
        # The provider's other model still works.
        with outpost.client() as client:
            answer = client.post(
                "/v1/chat/completions",
                json={
                    "model": "sandbox/stream-10000",
                    "max_tokens": 1,
                    "messages": [{"role": "user", "content": "Hello"}],
                },
            )
        assert answer.status_code == 200, answer.text


async def test_an_engaged_kill_switch_stops_a_request_that_waits_for_its_next_attempt(platform: FakePlatform) -> None:
    """The first attempt fails after the switch has been engaged, and no second attempt is made."""
    arrived, engaged = asyncio.Event(), asyncio.Event()

    async def behave(connection: Connection) -> None:
        arrived.set()
        await engaged.wait()
        await connection.answer(b'{"error": {"message": "broken"}}', status=500)

    async with upstream(behave) as provider:
        server = OutpostServer(platform, EGRESS_ALLOWLIST="127.0.0.0/8")  # type: ignore[arg-type]
        config = ProviderConfig(base_url=provider.url + "/v1", max_retries=2)
        policy = TenantRecords(
            tenant_id=TENANT, revision=0,
            providers=(ProviderRecord(id="slow", name="Slow", kind="openai_compatible", config=config),),
            models=(ModelRecord(id=UUID(int=31), provider="slow", model_id="one"),),
        )  # fmt: skip
        platform.send(platform.bundle(server.id, 10, policy=policy))
        with server as outpost, outpost.admin() as operator:
            pending_call = asyncio.create_task(asyncio.to_thread(outpost.ask, "Hello", "slow/one"))
            async with asyncio.timeout(60):
                await arrived.wait()
            answer = await asyncio.to_thread(operator.post, "/admin/api/override/kill-switch", json={"active": True})
            assert answer.status_code == 200
            engaged.set()
            refused = await pending_call
            attempts = [attempt["reason"] for attempt in refused.json()["error"]["attempts"]]
            assert attempts == ["http_500", "kill_switched"]
            assert len(provider.requests) == 1

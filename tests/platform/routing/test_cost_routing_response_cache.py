"""The response cache of routing policies on the platform, and its records."""

from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest
from tests.platform.test_metrics import figures
from tests.support.journal import Journal
from tests.support.platform import Person, RunningPlatform, Tenant
from tests.support.redis import RedisServer, redis_server

from gatehouse.foundation.settings import Settings

POLICIES = "/api/admin/cost-routing/policies"
SYSTEM = "/api/admin/system"


@pytest.fixture
async def sandbox(platform: RunningPlatform, tenant: Tenant) -> Tenant:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo", "status-503")
    return tenant


async def kept(tenant: Tenant, **more: Any) -> str:
    body = {"name": "kept", "strategy": "cost_optimized", "cache_ttl_seconds": 600, **more}
    answer = await tenant.admin.client.post(POLICIES, json=body)
    assert answer.status_code == 201, answer.text
    return f"{POLICIES}/{answer.json()['policy_id']}"


async def chat(person: Person, text: str = "hello", **more: Any) -> httpx2.Response:
    body = {"model": "sandbox/echo", "messages": [{"role": "user", "content": text}], **more}
    return await person.client.post("/v1/chat/completions", json=body)


def cache_header(answer: httpx2.Response) -> str | None:
    assert answer.status_code == 200, answer.text
    return answer.headers.get("X-Gateway-Cache")


async def test_colleagues_share_answers_until_the_policy_changes(sandbox: Tenant) -> None:
    assert cache_header(await chat(sandbox.user)) is None
    path = await kept(sandbox)
    first, second = await chat(sandbox.user), await chat(sandbox.admin)
    assert (cache_header(first), cache_header(second)) == ("miss", "hit")
    assert first.json() == second.json()
    assert float(second.headers["X-Cost-USD"]) == 0
    changed = await sandbox.admin.client.patch(path, json={"cache_ttl_seconds": 300})
    assert changed.json()["cache_ttl_seconds"] == 300
    assert cache_header(await chat(sandbox.user)) == "miss"
    await sandbox.admin.client.patch(path, json={"cache_ttl_seconds": None})
    assert cache_header(await chat(sandbox.user)) is None


async def test_a_client_can_refuse_cached_answers(sandbox: Tenant) -> None:
    await kept(sandbox)
    body = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "hello"}]}
    wishes: list[dict[str, str]] = [{}, {"Cache-Control": "no-cache"}, {"Cache-Control": "no-store"}, {}]
    answers = [await sandbox.user.client.post("/v1/chat/completions", json=body, headers=wish) for wish in wishes]
    assert [cache_header(answer) for answer in answers] == ["miss", "miss", None, "hit"]


async def test_another_organization_gets_its_own_answer(
    platform: RunningPlatform, sandbox: Tenant, other_tenant: Tenant
) -> None:
    await platform.add_provider(other_tenant.id, "sandbox", "sandbox", "echo")
    await kept(sandbox)
    await kept(other_tenant)
    assert [cache_header(await chat(person)) for person in (sandbox.user, other_tenant.user, sandbox.user)] == [
        "miss", "miss", "hit",
    ]  # fmt: skip


async def test_a_stock_client_reads_a_cached_stream(platform: RunningPlatform, sandbox: Tenant) -> None:
    await kept(sandbox)
    key = await platform.new_key(sandbox.user)
    async with platform.listening() as url, openai.AsyncOpenAI(api_key=key, base_url=f"{url}/v1") as client:
        texts = []
        for _ in range(2):
            stream = await client.chat.completions.create(
                model="sandbox/echo", messages=[{"role": "user", "content": "a stream, twice"}], stream=True
            )
            texts.append("".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]))
            cache = stream.response.headers["x-gateway-cache"]
    assert texts[0] == texts[1] != ""
    assert cache == "hit"


async def test_hits_are_recorded_and_counted(platform: RunningPlatform, sandbox: Tenant) -> None:
    await kept(sandbox)
    before = await figures(platform)
    for _ in range(4):
        await chat(sandbox.user)
    await Journal(platform.installed.url, platform.host.settings.gatehouse_home / "journal").drain()
    records = (await sandbox.admin.client.get("/api/v1/usage/records")).json()["records"]
    assert sorted((record["cost_usd"] == 0, record["input_tokens"]) for record in records)[1:] == [(True, 0)] * 3
    assert all((record["provider"], record["model_id"]) == ("sandbox", "echo") for record in records)
    events = await platform.audit(sandbox, "gateway.request")
    assert sorted(event["details"]["cache"] for event in events) == ["hit", "hit", "hit", "miss"]
    assert platform.sql("SELECT cache_hits, requests FROM routing_days WHERE tenant_id = %s", [sandbox.id]) == [(3, 4)]
    summary = (await sandbox.admin.client.get(f"{SYSTEM}/metrics-summary")).json()
    assert summary["cache_hit_rate"] == 0.75
    after = await figures(platform)
    for result, times in (("hit", 3), ("miss", 1)):
        name = f'service_response_cache_total{{result="{result}"}}'
        assert after[name] - before.get(name, 0) == times
    assert after["service_response_cache_bytes"] > 0
    assert not platform.breaks(sandbox)


async def test_a_hit_counts_against_budgets_of_requests(sandbox: Tenant) -> None:
    await kept(sandbox)
    body = {"scope_type": "tenant", "scope_id": str(sandbox.id), "period": "month", "limit_requests": 2}
    assert (await sandbox.admin.client.post("/api/admin/budgets", json=body)).status_code == 201
    assert [(await chat(sandbox.user)).status_code for _ in range(3)] == [200, 200, 429]


async def test_a_kill_switch_stops_hits_too(platform: RunningPlatform, sandbox: Tenant) -> None:
    await kept(sandbox)
    assert [cache_header(await chat(sandbox.user)) for _ in range(2)] == ["miss", "hit"]
    [(model,)] = platform.sql("SELECT id FROM model_configs WHERE tenant_id = %s AND model_id = 'echo'", [sandbox.id])
    switched = await sandbox.admin.client.post(
        f"/api/v1/admin/kill-switch/models/{model}/disable", json={"reason": "other"}
    )
    assert switched.status_code == 200, switched.text
    assert (await chat(sandbox.user)).status_code == 503


@pytest.mark.parametrize("seconds", [-1, 86_401, 1.5, "60"])
async def test_a_bad_time_names_the_field(sandbox: Tenant, seconds: Any) -> None:
    body = {"name": "kept", "strategy": "cost_optimized", "cache_ttl_seconds": seconds}
    answer = await sandbox.admin.client.post(POLICIES, json=body)
    assert answer.status_code == 422
    assert "cache_ttl_seconds" in answer.text


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


async def test_workers_share_answers_through_redis_and_continue_without_it(
    platform: RunningPlatform, sandbox: Tenant, settings: Settings, redis: RedisServer
) -> None:
    await kept(sandbox)
    shared = settings.model_copy(update={"redis_url": redis.url})
    async with RunningPlatform.start(shared) as one, RunningPlatform.start(shared) as other:
        token = sandbox.user.client.headers["authorization"].removeprefix("Bearer ")
        body = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "far and wide"}]}
        answers = [await worker.client(token).post("/v1/chat/completions", json=body) for worker in (one, other, other)]
        assert [cache_header(answer) for answer in answers] == ["miss", "hit", "hit"]
        assert answers[0].json() == answers[1].json()
        assert all(b"far and wide" not in (redis.client.get(name) or b"") for name in redis.client.keys("rc:*"))
        redis.kill()
        again = await other.client(token).post("/v1/chat/completions", json=body)
        assert cache_header(again) == "miss"

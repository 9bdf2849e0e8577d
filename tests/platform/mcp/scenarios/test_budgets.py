"""Calls of tools count against budgets and in metrics (docs/budgets.md, docs/mcp.md)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.mcp_servers import ALL, ScriptedServer, call, grant, recorded, register, scripted_server, send
from tests.support.platform import RunningPlatform, Tenant

BUDGETS = "/api/admin/budgets"


@pytest.fixture
async def upstream(tenant: Tenant) -> AsyncIterator[ScriptedServer]:
    async with scripted_server() as server:
        await grant(tenant, await register(tenant, server.url), tenant.user.id)
        yield server


async def limit(tenant: Tenant, **fields: Any) -> dict[str, Any]:
    body = {"scope_type": "user", "scope_id": str(tenant.user.id), "period": "month", "limit_requests": 3, **fields}
    answer = await tenant.admin.client.post(BUDGETS, json=body)
    assert answer.status_code == 201, answer.text
    budget: dict[str, Any] = answer.json()
    return budget


async def test_parallel_calls_never_exceed_a_limit_and_are_counted_in_the_ledger(
    platform: RunningPlatform, tenant: Tenant, upstream: ScriptedServer
) -> None:
    budget = await limit(tenant)
    client = tenant.user.client
    paths = ("weather", ALL)
    calls = [call(client, path, "echo" if path else "weather__echo") for path in paths * 5]
    answers = await asyncio.gather(*calls)
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [429] * 7
    assert len(upstream.calls()) == 3
    refused = next(answer for answer in answers if answer.status_code == 429)
    data = refused.json()["error"]["data"]
    assert (data["code"], data["tier"]) == ("quota_exceeded", "user:month")
    assert int(refused.headers["Retry-After"]) > 0
    answered = [answer for answer in answers if answer.status_code == 200]
    assert {answer.headers["X-Budget-Limit-Requests"] for answer in answered} == {"3"}
    # A list costs nothing.
    assert (await send(client, "weather", "tools/list")).status_code == 200
    events = await recorded(platform, tenant)
    assert sorted(str(event["reason"]) for event in events) == ["None"] * 3 + ["quota_exceeded"] * 7
    listed = (await tenant.admin.client.get(f"{BUDGETS}/{budget['id']}")).json()
    assert listed["current"]["spent_requests"] == 3


async def test_a_budget_of_money_does_not_refuse_calls(
    platform: RunningPlatform, tenant: Tenant, upstream: ScriptedServer
) -> None:
    await limit(tenant, limit_requests=None, limit_usd=0.01, limit_tokens=1)
    assert (await call(tenant.user.client, "weather", "echo")).status_code == 200


async def test_calls_are_counted_by_outcome(
    platform: RunningPlatform, tenant: Tenant, upstream: ScriptedServer
) -> None:
    async def figures() -> dict[str, float]:
        text = (await platform.anonymous.get("/metrics")).text
        lines = (line.rpartition(" ") for line in text.splitlines() if line.startswith("service_mcp_call"))
        return {name: float(value) for name, _, value in lines}

    await call(tenant.user.client, "weather", "echo")
    async with asyncio.timeout(60):
        while 'service_mcp_calls_total{outcome="success"}' not in (values := await figures()):
            await asyncio.sleep(0.1)
    before = values['service_mcp_calls_total{outcome="success"}']
    await call(tenant.user.client, "weather", "echo")
    await call(tenant.user.client, "weather", "other")
    async with asyncio.timeout(60):
        while (values := await figures())['service_mcp_calls_total{outcome="success"}'] <= before:
            await asyncio.sleep(0.1)
    assert values["service_mcp_call_duration_seconds_count"] >= 2

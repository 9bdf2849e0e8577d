"""Amounts stay consistent: under load with faults, the usage that providers reported, the records, the spending of
budgets and the analytics are equal, to the last digit."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any
from uuid import UUID

import aiohttp
import httpx2
import pytest
from tests.support.server import GatehouseServer
from tests.support.upstream import Connection, upstream

from gatehouse.platform.changes.change import DEFAULT_TENANT

pytestmark = pytest.mark.timeout(300)

PATH = "/api/chat/completions"
CALLERS = 16
SECONDS = 8.0
PRICES = (Decimal("0.00000317"), Decimal("0.0000113"))


class Provider:
    """A provider with random faults. It counts the usage in its complete answers."""

    def __init__(self) -> None:
        self._random = random.Random(4)
        self.reported_tokens = [0, 0]
        self.answers = 0

    async def __call__(self, connection: Connection) -> None:
        body = json.loads(connection.body)
        chance = self._random.random()
        await asyncio.sleep(self._random.random() * 0.03)
        if chance < 0.1:
            await connection.answer(b'{"error": {"message": "busy"}}', status=503)
        elif chance < 0.2:
            connection.writer.close()
        elif body.get("stream"):
            await self._stream(connection, leaves=chance > 0.85)
        elif chance < 0.25:
            await connection.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9999\r\n\r\n{")
            connection.writer.close()
        else:
            message = {"role": "assistant", "content": "word"}
            answer = {
                "id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": self._usage(),
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            }  # fmt: skip
            await connection.answer(json.dumps(answer).encode())

    async def _stream(self, connection: Connection, *, leaves: bool) -> None:
        await connection.begin_stream()
        for number in range(5):
            choice = {"index": 0, "delta": {"content": f"word {number} " * 20}, "finish_reason": None}
            await connection.chunk(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n")
            if leaves and number == 3:
                connection.writer.close()
                return
        last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        body = {"choices": [], "usage": self._usage()}
        for event in (last, body):
            await connection.chunk(b"data: " + json.dumps(event).encode() + b"\n\n")
        await connection.chunk(b"data: [DONE]\n\n")
        await connection.end_stream()

    def _usage(self) -> dict[str, int]:
        input_tokens, output_tokens = self._random.randint(1, 50), self._random.randint(1, 90)
        self.reported_tokens[0] += input_tokens
        self.reported_tokens[1] += output_tokens
        self.answers += 1
        return {
            "prompt_tokens": input_tokens,
            "completion_tokens": output_tokens,
            "total_tokens": input_tokens + output_tokens,
        }


@pytest.fixture
async def chancy(fleet: GatehouseServer) -> AsyncIterator[Provider]:
    behaviour = Provider()
    async with upstream(behaviour) as running:
        for name in ("chance", "second-chance"):
            fleet.add_provider(name, f"{running.url}/v1", ["m"], max_retries=1)
        fleet.sql(
            "UPDATE model_configs SET cost_per_input_token = %s, cost_per_output_token = %s, max_output_tokens = 200"
            " WHERE provider IN ('chance', 'second-chance')",
            PRICES,
        )
        fleet.touch("policy", DEFAULT_TENANT)
        await asyncio.to_thread(fleet.settled)
        yield behaviour


async def called(fleet: GatehouseServer, key: str, number: int, until: float) -> None:
    """A caller that sends requests without a pause."""
    loop = asyncio.get_running_loop()
    connector = aiohttp.TCPConnector(limit=1)
    async with aiohttp.ClientSession(connector=connector, headers={"Authorization": f"Bearer {key}"}) as session:
        turn = 0
        while loop.time() < until:
            turn += 1
            body: dict[str, Any] = {
                "model": "chance/m", "fallbacks": ["second-chance/m"], "stream": (turn + number) % 3 == 0,
                "messages": [{"role": "user", "content": "How deep is the sea? " * 10}],
            }  # fmt: skip
            async with session.post(fleet.url + PATH, json=body) as answer:
                await answer.read()


async def test_reported_usage_equals_records_spending_and_analytics(
    fleet: GatehouseServer, admin: httpx2.AsyncClient, chancy: Provider
) -> None:
    key = fleet.new_key()
    ((user_id,),) = fleet.sql("SELECT user_id FROM api_keys WHERE id = %s", [fleet.key_id(key)])
    budget = {"scope_type": "user", "scope_id": str(user_id), "period": "month", "limit_usd": 5, "limit_tokens": 10**8}
    created_budget = (await admin.post("/api/admin/budgets", json=budget)).json()
    until = asyncio.get_running_loop().time() + SECONDS
    await asyncio.gather(*(called(fleet, key, number, until) for number in range(CALLERS)))
    usage = await on_record(fleet, user_id)
    ((input_tokens, answered, count),) = fleet.sql(
        "SELECT sum(input_tokens), sum(output_tokens), count(*) FROM usage_records WHERE user_id = %s"
        " AND status = 'success'",
        [user_id],
    )
    assert ([input_tokens, answered], count) == (chancy.reported_tokens, chancy.answers)
    assert count > 50
    spent = (await admin.get(f"/api/admin/budgets/{created_budget['id']}")).json()["current"]
    assert spent["spent_requests"] == usage["requests"]
    assert spent["spent_tokens"] == usage["tokens"]
    assert Decimal(str(spent["spent_usd"])) == usage["cost"]
    ((analysed, requests),) = fleet.sql(
        "SELECT sum(cost_usd), sum(requests) FROM routing_days WHERE tenant_id = %s"
        " AND provider IN ('chance', 'second-chance')",
        [DEFAULT_TENANT],
    )
    assert (analysed, requests) == (usage["cost"], usage["requests"])
    # Finished requests have no reservations any more.
    async with asyncio.timeout(60):
        while True:
            ((granted, recorded),) = fleet.sql(
                "SELECT sum(granted_tokens), sum(recorded_tokens) FROM budget_leases WHERE budget_id = %s",
                [created_budget["id"]],
            )
            if granted == recorded:
                break
            await asyncio.sleep(0.2)


async def on_record(fleet: GatehouseServer, user_id: UUID) -> dict[str, Any]:
    """Wait until no more records arrive and return the sums of the charged ones."""
    before = None
    async with asyncio.timeout(60):
        while True:
            ((cost, tokens, requests, every),) = fleet.sql(
                "SELECT sum(cost_usd), sum(input_tokens + output_tokens + cached_tokens), count(cost_usd), count(*)"
                " FROM usage_records WHERE user_id = %s",
                [user_id],
            )
            if every and every == before:
                return {"cost": cost, "tokens": tokens, "requests": requests}
            before = every
            await asyncio.sleep(1.5)

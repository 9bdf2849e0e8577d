"""Model access over four workers with a stock client: a change is active on every worker when its answer arrives."""

import asyncio
from typing import Any

import httpx2
import openai
from tests.support.server import GatehouseServer

GROUPS = "/api/admin/groups"
MESSAGES: Any = [{"role": "user", "content": "hi"}]
#: Concurrent calls, each on its own connection, so that all workers get some.
CALLS = 24
ANSWERED, NOT_FOUND = (200, None), (404, "model_not_found")


async def statuses(fleet: GatehouseServer, key: str, model: str) -> set[tuple[int, str | None]]:
    """Return the statuses of a stock client's calls."""

    async def call() -> tuple[int, str | None]:
        # Uses the alias, because the fleet limits the other path.
        async with openai.AsyncOpenAI(base_url=f"{fleet.url}/api", api_key=key, max_retries=0) as client:
            try:
                await client.chat.completions.create(model=model, messages=MESSAGES)
            except openai.APIStatusError as error:
                return (error.status_code, error.code)
            return (200, None)

    return set(await asyncio.gather(*(call() for _ in range(CALLS))))


async def listed(fleet: GatehouseServer, key: str, model: str) -> set[bool]:
    """Return whether the lists of models that a stock client gets contain the model."""

    async def call() -> bool:
        async with openai.AsyncOpenAI(base_url=f"{fleet.url}/v1", api_key=key) as client:
            return model in {entry.id async for entry in client.models.list()}

    return set(await asyncio.gather(*(call() for _ in range(CALLS))))


async def test_grants_and_denials_are_in_force_on_every_worker_when_the_answer_arrives(
    fleet: GatehouseServer, admin: httpx2.AsyncClient
) -> None:
    model, key = "up/other-steady", fleet.new_key()
    ((user_id,),) = fleet.sql("SELECT user_id FROM api_keys WHERE id = %s", [fleet.key_id(key)])
    ((entry,),) = fleet.sql("SELECT id FROM model_configs WHERE provider = 'up' AND model_id = 'other-steady'")
    group = (await admin.post(GROUPS, json={"name": "model access"})).json()["id"]
    rules, catalog = f"{GROUPS}/{group}/model-access", f"/api/admin/models/catalog/{entry}"
    try:
        assert (await admin.post(f"{GROUPS}/{group}/members", json={"user_id": str(user_id)})).status_code == 201
        assert await statuses(fleet, key, model) == {ANSWERED}

        assert (await admin.post(rules, json={"model_id": model, "access_type": "DENY"})).status_code == 201
        assert await statuses(fleet, key, model) == {NOT_FOUND}
        assert await listed(fleet, key, model) == {False}
        assert await statuses(fleet, fleet.key, model) == {ANSWERED}

        assert (await admin.delete(f"{rules}/{model}")).status_code == 204
        assert await statuses(fleet, key, model) == {ANSWERED}

        assert (await admin.put(catalog, json={"access": "restricted"})).status_code == 200
        assert await statuses(fleet, key, model) == {NOT_FOUND}
        assert (await admin.post(rules, json={"model_id": model, "access_type": "ALLOW"})).status_code == 201
        assert await statuses(fleet, key, model) == {ANSWERED}
        assert await listed(fleet, key, model) == {True}
        assert await statuses(fleet, fleet.key, model) == {NOT_FOUND}

        assert (await admin.delete(f"{GROUPS}/{group}/members/{user_id}")).status_code == 204
        assert await statuses(fleet, key, model) == {NOT_FOUND}
    finally:
        await admin.put(catalog, json={"access": "open"})
        await admin.delete(f"{GROUPS}/{group}")

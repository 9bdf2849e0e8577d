"""A conversation whose worker was killed while it answered."""

import asyncio

import httpx2
from tests.platform.conversations.conftest import BASE, completion, contents, messages_of
from tests.support.server import GatehouseServer
from tests.support.upstream import Connection, upstream

TIMEOUT_SECONDS = 60.0


async def test_the_newest_question_can_be_replaced_after_its_worker_was_killed() -> None:
    reached = asyncio.Event()

    async def behave(connection: Connection) -> None:
        if b"never" in connection.body:
            reached.set()
            await asyncio.Event().wait()
        await connection.answer(completion("done"))

    async with upstream(behave) as provider:
        with GatehouseServer() as server:
            server.add_provider("own", provider.url, ["m"], max_retries=0)
            server.settled()
            headers = {"Authorization": f"Bearer {server.key}"}
            async with httpx2.AsyncClient(base_url=server.url, headers=headers, timeout=TIMEOUT_SECONDS) as client:
                path = f"{BASE}/{(await client.post(BASE, json={'model': 'own/m'})).raise_for_status().json()['id']}"
                posted = await client.post(f"{path}/messages", json={"content": "hello"})
                first = posted.raise_for_status().json()["user_message"]["id"]
                lost = asyncio.create_task(client.post(f"{path}/messages", json={"content": "never"}))
                await asyncio.wait_for(reached.wait(), TIMEOUT_SECONDS)
                (worker,) = server.workers
                worker.kill()
                await asyncio.wait({lost})
                assert isinstance(lost.exception(), httpx2.TransportError)
                body = {"content": "again", "replaces": first}
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    while True:
                        try:
                            answer = await client.post(f"{path}/messages", json=body)
                        except httpx2.TransportError:
                            # The next worker has not started yet.
                            await asyncio.sleep(0.1)
                            continue
                        break
                assert answer.status_code == 201, answer.text
                assert contents(await messages_of(client, path)) == [("user", "again"), ("assistant", "done")]

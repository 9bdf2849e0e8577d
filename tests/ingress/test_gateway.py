"""The gateway as an ASGI application: a server that stops, and model names in other scripts."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from tests.support.engine import completion
from tests.support.platform import RunningPlatform
from tests.support.upstream import Connection, upstream


async def test_a_stream_that_the_server_cuts_off_ends_in_an_error_event(platform: RunningPlatform) -> None:
    tenant = await platform.new_tenant()
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "stream-50", max_retries=0)
    key = await platform.new_key(tenant.user)
    body = json.dumps(
        {"model": "sandbox/stream-50", "stream": True, "messages": [{"role": "user", "content": "Hello"}]}
    ).encode()
    scope: dict[str, Any] = {
        "type": "http", "method": "POST", "path": "/v1/chat/completions", "query_string": b"", "http_version": "1.1",
        "headers": [(b"authorization", b"Bearer " + key.encode())], "client": ("127.0.0.1", 1), "scheme": "http",
    }  # fmt: skip
    requests = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[dict[str, Any]] = []
    streaming = asyncio.Event()

    async def receive() -> Any:
        if requests:
            return requests.pop()
        return await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)
        if len(sent) == 3:
            streaming.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(platform.app(scope, receive, send))
    await asyncio.wait_for(streaming.wait(), 5)
    task.cancel("the server stops")
    with pytest.raises(asyncio.CancelledError):
        await task
    last = sent[-1]["body"].decode()
    assert last.startswith("event: error")
    assert json.loads(last.split("data: ")[1])["error"]["code"] == "server_stopping"


async def test_a_model_named_in_another_script_answers(platform: RunningPlatform) -> None:
    async def behave(connection: Connection) -> None:
        await connection.answer(completion("Hello"))

    tenant = await platform.new_tenant()
    async with upstream(behave) as provider, platform.listening() as url:
        await platform.add_provider(tenant.id, "own", "openai_compatible", "модель", base_url=f"{provider.url}/v1")
        key = await platform.new_key(tenant.user)
        body = {"model": "own/модель", "messages": [{"role": "user", "content": "Hi"}]}
        async with (
            aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session,
            session.post(f"{url}/v1/chat/completions", json=body) as answer,
        ):
            assert answer.status == 200, await answer.text()
            assert answer.headers["X-Gateway-Model"] == "??????"

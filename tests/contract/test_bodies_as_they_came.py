"""The client's own bytes are sent to the provider by a running server that inspects them, unless the body was
changed."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import openai
import pytest
from tests.engine.providers.wires import OPENAI_REPLY, answering
from tests.support.platform import RunningPlatform, Tenant
from tests.support.upstream import Upstream, upstream

BODY = rb'{ "model": "m-1", "messages": [ {"role": "user", "content": "caf\u00e9 \/ tea"} ],  "temperature": 0.50 }'


@pytest.fixture(scope="module")
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


@pytest.fixture
async def provider(platform: RunningPlatform, tenant: Tenant) -> AsyncIterator[Upstream]:
    async with upstream(answering(OPENAI_REPLY)) as server:
        await platform.add_provider(tenant.id, "p", "openai_compatible", "m-1", base_url=f"{server.url}/v1")
        yield server


@pytest.fixture
async def key(platform: RunningPlatform, tenant: Tenant) -> str:
    return await platform.new_key(tenant.user)


@pytest.mark.parametrize(
    ("came", "goes"),
    [
        (BODY, BODY),
        (
            BODY.replace(b"caf", b"4111 1111 1111 1111, caf"),
            '{"model":"m-1","messages":[{"role":"user","content":"[CREDIT_CARD_1], café / tea"}],"temperature":0.5}',
        ),
        (
            BODY.replace(b'"m-1"', b'"p/m-1"'),
            '{"model":"m-1","messages":[{"role":"user","content":"café / tea"}],"temperature":0.5}',
        ),
    ],
    ids=["unchanged", "redacted", "another name of the model"],
)
async def test_a_changed_body_is_rewritten(
    url: str, key: str, provider: Upstream, came: bytes, goes: bytes | str
) -> None:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{url}/v1/chat/completions", data=came) as answer,
    ):
        assert answer.status == 200, await answer.text()
    assert provider.requests[0].body == (goes.encode() if isinstance(goes, str) else goes)


async def test_a_duplicate_field_is_refused_by_name_and_not_sent(url: str, key: str, provider: Upstream) -> None:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    body = BODY.replace(b'"m-1",', b'"m-1", "user": "one", "user": "two",')
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{url}/v1/chat/completions", data=body) as answer,
    ):
        assert answer.status == 400
        error = (await answer.json())["error"]
    assert (error["param"], error["message"]) == ("user", "`user` occurs twice in one object.")
    assert not provider.requests


async def test_a_stock_clients_body_reaches_the_provider_as_the_client_sent_it(
    url: str, key: str, provider: Upstream
) -> None:
    sent: list[bytes] = []

    async def note(request: Any) -> None:
        sent.append(request.content)

    http = openai.DefaultAsyncHttpxClient(event_hooks={"request": [note]})
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, http_client=http) as client:
        await client.chat.completions.create(
            model="m-1", messages=[{"role": "user", "content": 'naïve "quotes"\n'}], temperature=0.2, seed=2**70
        )
    assert [request.body for request in provider.requests] == sent

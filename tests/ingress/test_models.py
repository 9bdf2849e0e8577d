"""Anthropic's list of models: its pages, and its errors."""

from typing import Any

import anthropic
import pytest
from tests.support.platform import RunningPlatform

MODELS = ["a", "b", "c", "d", "e"]
IDS = [f"sandbox/{name}" for name in MODELS]
ANTHROPIC = {"anthropic-version": "2023-06-01"}


@pytest.fixture(scope="module")
async def key(platform: RunningPlatform) -> str:
    tenant = await platform.new_tenant()
    await platform.add_provider(tenant.id, "sandbox", "sandbox", *MODELS)
    return await platform.new_key(tenant.user)


async def page(client: Any, **parameters: Any) -> tuple[list[str], bool]:
    answer = await client.get("/v1/models", params=parameters, headers=ANTHROPIC)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    ids = [model["id"] for model in body["data"]]
    assert (body["first_id"], body["last_id"]) == ((ids[0], ids[-1]) if ids else (None, None))
    return ids, body["has_more"]


async def test_pages_in_both_directions(platform: RunningPlatform, key: str) -> None:
    client = platform.client(key)
    listed, has_more = await page(client)
    assert (sorted(listed), has_more) == (IDS, False)
    assert await page(client, limit=2) == (listed[:2], True)
    assert await page(client, limit=2, after_id=listed[1]) == (listed[2:4], True)
    assert await page(client, limit=2, after_id=listed[3]) == (listed[4:], False)
    assert await page(client, limit=5, after_id=listed[4]) == ([], False)
    assert await page(client, limit=2, before_id=listed[4]) == (listed[2:4], True)
    assert await page(client, limit=2, before_id=listed[2]) == (listed[:2], False)


@pytest.mark.parametrize(
    ("parameters", "param"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "1001"}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"limit": "9" * 5000}, "limit"),
        ({"after_id": "sandbox/z"}, "after_id"),
        ({"before_id": "z"}, "before_id"),
        ({"after_id": "sandbox/a", "before_id": "sandbox/b"}, "before_id"),
    ],
)
async def test_bad_parameters_are_named(
    platform: RunningPlatform, key: str, parameters: dict[str, str], param: str
) -> None:
    answer = await platform.client(key).get("/v1/models", params=parameters, headers=ANTHROPIC)
    assert answer.status_code == 400
    assert (answer.json()["type"], answer.json()["error"]["param"]) == ("error", param)


async def test_openais_list_has_no_pages(platform: RunningPlatform, key: str) -> None:
    answer = await platform.client(key).get("/v1/models", params={"limit": 2})
    assert len(answer.json()["data"]) == 5


async def test_openais_list_is_searched(platform: RunningPlatform, key: str) -> None:
    client = platform.client(key)
    for parameters, ids, total in [
        ({"search": ""}, IDS, 5),
        ({"search": "", "limit": 2}, IDS[:2], 5),
        ({"search": "X/C"}, ["sandbox/c"], 1),
        ({"search": "nothing"}, [], 0),
    ]:
        answer = await client.get("/v1/models", params=parameters)
        assert [model["id"] for model in answer.json()["data"]] == ids
        assert answer.headers["x-total-count"] == str(total)
    for parameters, param in [({"search": "", "limit": "0"}, "limit"), ({"search": "a" * 256}, "search")]:
        answer = await client.get("/v1/models", params=parameters)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


async def test_anthropics_client_follows_the_pages(platform: RunningPlatform, key: str) -> None:
    async with platform.listening() as url, anthropic.AsyncAnthropic(base_url=url, api_key=key, max_retries=0) as stock:
        listed = [model.id async for model in stock.models.list(limit=2)]
        assert sorted(listed) == IDS
        assert (await stock.models.retrieve("sandbox/a")).id == "sandbox/a"


async def test_the_root_answers_a_head_request(platform: RunningPlatform) -> None:
    """Some clients send this request to check whether the server is reachable."""
    answer = await platform.anonymous.request("HEAD", "/")
    assert (answer.status_code, answer.content) == (200, b"")

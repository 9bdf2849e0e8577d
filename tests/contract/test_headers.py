"""Headers that every answer has, whichever part of the server sends it."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
from tests.support.platform import RunningPlatform, Tenant

LIMITS = {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"}


@pytest.fixture(scope="module")
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


@pytest.fixture(scope="module")
async def caller(platform: RunningPlatform) -> Tenant:
    return await platform.new_tenant()


@pytest.mark.parametrize(
    "body",
    [b"{}", b"{", b'{"text": 5}', b'{"text": "' + b"x" * 2_000_000 + b'"}'],
    ids=["no text", "no JSON", "a number", "too long"],
)
async def test_a_refused_scan_shows_the_limit_that_it_counted_in(
    platform: RunningPlatform, caller: Tenant, url: str, body: bytes
) -> None:
    headers = {"Authorization": f"Bearer {await platform.new_key(caller.admin)}", "Content-Type": "application/json"}
    async with aiohttp.ClientSession() as client, client.post(f"{url}/v1/scan", data=body, headers=headers) as answer:
        assert answer.status == 400
        assert {name.lower() for name in answer.headers} >= LIMITS


@pytest.mark.parametrize("path", ["/v1/models", "/v1/nowhere", "/api/admin/groups", "/api/health/live", "/nowhere"])
async def test_browsers_must_not_guess_the_type_of_json(platform: RunningPlatform, caller: Tenant, path: str) -> None:
    for client in (caller.admin.client, platform.anonymous):
        answer = await client.get(path)
        assert answer.headers["content-type"].startswith("application/json")
        assert answer.headers["x-content-type-options"] == "nosniff", answer.status_code


async def test_an_answer_without_content_has_no_type(caller: Tenant) -> None:
    group = (await caller.admin.client.post("/api/admin/groups", json={"name": "short-lived"})).json()
    answer = await caller.admin.client.delete(f"/api/admin/groups/{group['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert "content-type" not in answer.headers


async def test_dry_runs_of_rules_are_ten_a_minute_for_administrators_too(caller: Tenant) -> None:
    answers = [await caller.admin.client.post("/api/admin/dlp-rules/test", json={"text": "x"}) for _ in range(11)]
    assert [answer.headers["X-RateLimit-Limit"] for answer in answers] == ["10"] * 11
    assert [answer.status_code == 429 for answer in answers] == [False] * 10 + [True]

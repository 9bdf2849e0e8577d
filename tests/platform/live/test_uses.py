"""The last use of API keys, as stored in their rows (docs/authentication.md, "API keys")."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from uuid import UUID

import httpx2
import psycopg
import pytest
from tests.support.clock import HandClock
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.platform.live.uses import RecentUses, UseWriter

CHAT = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "hi"}]}
CALLS: dict[str, Callable[[httpx2.AsyncClient], Awaitable[httpx2.Response]]] = {
    "administration": lambda client: client.get("/api/admin/groups"),
    "models": lambda client: client.get("/v1/models"),
    "scan": lambda client: client.post("/v1/scan", json={"text": "hello"}),
    "preferences": lambda client: client.get("/api/users/me/preferences"),
    "chat": lambda client: client.post("/v1/chat/completions", json=CHAT),
}


@pytest.mark.parametrize("call", CALLS)
async def test_every_authenticated_call_counts_as_a_use(platform: RunningPlatform, tenant: Tenant, call: str) -> None:
    client = platform.client(await platform.new_key(tenant.admin))
    (key,) = (await tenant.admin.client.get("/api/auth/api-keys")).json()
    assert key["last_used"] is None
    before = platform.sql("SELECT now()")[0][0]
    assert (await CALLS[call](client)).status_code < 500
    await platform.host.uses.flush()
    for path in ("/api/auth/api-keys", "/api/admin/api-keys"):
        (listed,) = (await tenant.admin.client.get(path)).json()
        assert datetime.fromisoformat(listed["last_used"]) >= before.replace(microsecond=0)


async def test_a_refused_call_does_not_count_as_a_use(platform: RunningPlatform, tenant: Tenant) -> None:
    client = platform.client(await platform.new_key(tenant.admin))
    (key,) = (await tenant.admin.client.get("/api/auth/api-keys")).json()
    await tenant.admin.client.patch(f"/api/auth/api-keys/{key['id']}", json={"is_enabled": False})
    assert (await client.get("/v1/models")).status_code == 401
    await platform.host.uses.flush()
    assert platform.sql("SELECT last_used FROM api_keys WHERE id = %s", [key["id"]]) == [(None,)]


async def test_a_row_is_written_once_a_minute_and_ends_with_the_last_use(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    recent, clock, key_id = RecentUses(), HandClock(), await _new_key_id(platform, tenant)
    writer = UseWriter(platform.host.database, recent, clock)
    for seconds, shown in [(0, 0), (30, 0), (29, 0), (2, 59)]:
        clock.move(seconds)
        if clock.passed < 60:
            recent.api_keys[key_id] = clock.now()
        await writer.flush()
        assert _last_used(platform, key_id) == clock.start + shown
    assert recent.api_keys == {}


async def test_the_latest_use_of_two_workers_is_kept(platform: RunningPlatform, tenant: Tenant) -> None:
    key_id, clock = await _new_key_id(platform, tenant), HandClock()
    for seconds_ago in (5.0, 50.0):
        recent = RecentUses()
        recent.api_keys[key_id] = clock.now() - seconds_ago
        await UseWriter(platform.host.database, recent, clock).flush()
    assert _last_used(platform, key_id) == clock.now() - 5.0


async def test_a_row_that_is_being_changed_is_written_later(platform: RunningPlatform, tenant: Tenant) -> None:
    key_id, clock, recent = await _new_key_id(platform, tenant), HandClock(), RecentUses()
    writer = UseWriter(platform.host.database, recent, clock)
    recent.api_keys[key_id] = clock.now()
    with psycopg.connect(platform.installed.owner_url) as changing:
        changing.execute("SELECT FROM api_keys WHERE id = %s FOR UPDATE", [key_id])
        await writer.flush()
    assert _last_used(platform, key_id) is None
    await writer.flush()
    assert _last_used(platform, key_id) == clock.now()


async def test_uses_of_a_deleted_key_are_discarded(platform: RunningPlatform, tenant: Tenant) -> None:
    key_id, clock, recent = await _new_key_id(platform, tenant), HandClock(), RecentUses()
    writer = UseWriter(platform.host.database, recent, clock)
    recent.api_keys[key_id] = clock.now()
    platform.sql("DELETE FROM api_keys WHERE id = %s", [key_id])
    await writer.flush()
    clock.move(601)
    await writer.flush()
    assert recent.api_keys == {}


async def test_a_worker_writes_remaining_uses_when_it_stops(platform: RunningPlatform, tenant: Tenant) -> None:
    key = await platform.new_key(tenant.user)
    async with RunningPlatform.start(platform.installed.settings) as another:
        assert (await another.client(key).get("/v1/models")).status_code == 200
    assert platform.sql("SELECT last_used FROM api_keys WHERE user_id = %s", [tenant.user.id])[0][0] is not None


async def _new_key_id(platform: RunningPlatform, tenant: Tenant) -> UUID:
    await platform.new_key(tenant.user)
    key_id: UUID = platform.sql("SELECT id FROM api_keys WHERE user_id = %s", [tenant.user.id])[0][0]
    return key_id


def _last_used(platform: RunningPlatform, key_id: object) -> float | None:
    seconds: float | None = platform.sql(
        "SELECT EXTRACT(EPOCH FROM last_used)::float8 FROM api_keys WHERE id = %s", [key_id]
    )[0][0]
    return seconds

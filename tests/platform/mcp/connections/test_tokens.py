"""The renewal of users' tokens, and their removal (docs/mcp.md)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from tests.platform.mcp.connections.conftest import Browser
from tests.support.mcp_accounts import OWN, AccountServer, browser_of, connect, registered, user_oauth
from tests.support.mcp_servers import BASE, call, grant
from tests.support.members import Member, member
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.settings import Settings


@pytest.fixture
async def server(platform: RunningPlatform, tenant: Tenant, upstream: AccountServer) -> dict[str, Any]:
    return await registered(platform, tenant, upstream)


@pytest.fixture
async def ada(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, server: dict[str, Any], browser: Browser
) -> Member:
    """A user who has connected the account `ada`."""
    who = await member(platform, tenant)
    await connect(upstream, await browser(who), "ada")
    return who


@pytest.fixture(scope="module")
async def second_worker(settings: Settings, platform: RunningPlatform) -> AsyncIterator[RunningPlatform]:
    public = settings.model_copy(update={"public_url": "https://gatehouse.test"})
    async with RunningPlatform.start(public) as running:
        yield running


def make_due(platform: RunningPlatform, who: Member, expires: str = "now()") -> None:
    """Let the token be due, and expired unless `expires` says otherwise, and let all workers read it again."""
    ((server_id,),) = platform.sql(
        f"UPDATE mcp_connections SET renew_at = now(), expires_at = {expires} WHERE user_id = %s RETURNING server_id",
        [who.id],
    )
    platform.touch("mcp_connection", f"{server_id}/{who.id}")


def renewals(upstream: AccountServer) -> int:
    return sum(form["grant_type"] == "refresh_token" for form in upstream.token_requests)


async def outcome(who: Member) -> tuple[int, str | None]:
    answer = await call(who.client, "weather", "echo")
    return answer.status_code, answer.json().get("error", {}).get("data", {}).get("code")


async def test_two_workers_renew_a_token_once_although_its_refresh_token_is_valid_once(
    platform: RunningPlatform, second_worker: RunningPlatform, upstream: AccountServer, ada: Member
) -> None:
    make_due(platform, ada)
    await platform.refresh()
    await second_worker.refresh()
    token = ada.client.headers["Authorization"].removeprefix("Bearer ")
    other = second_worker.client(token)
    answers = await asyncio.gather(*(call(client, "weather", "echo") for client in (ada.client, other) * 5))
    assert {answer.status_code for answer in answers} == {200}
    assert renewals(upstream) == 1
    make_due(platform, ada)
    await platform.refresh()
    assert await outcome(ada) == (200, None)
    assert renewals(upstream) == 2


async def test_a_renewal_that_another_worker_began_is_awaited_or_the_valid_token_used(
    platform: RunningPlatform, upstream: AccountServer, ada: Member
) -> None:
    make_due(platform, ada, "now() + interval '1 hour'")
    platform.sql("UPDATE mcp_connections SET renewing_until = now() + interval '1 minute' WHERE user_id = %s", [ada.id])
    await platform.refresh()
    assert await outcome(ada) == (200, None)
    assert renewals(upstream) == 0


async def test_a_revoked_refresh_token_ends_the_connection(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, ada: Member, browser: Browser
) -> None:
    upstream.refresh.clear()
    make_due(platform, ada)
    await platform.refresh()
    assert await outcome(ada) == (403, "mcp_connection_required")
    (listed,) = (await ada.client.get(OWN)).json()["mcp_connections"]
    assert listed["status"] == "ended"
    (event,) = await platform.audit(tenant, "mcp_connection.ended")
    assert event["details"]["user_id"] == str(ada.id)
    assert await outcome(ada) == (403, "mcp_connection_required")
    assert renewals(upstream) == 1
    await connect(upstream, await browser(ada), "ada")
    assert await outcome(ada) == (200, None)


@pytest.mark.parametrize("status", [401, 429, 500])
async def test_a_failure_of_the_token_endpoint_does_not_end_the_connection(
    status: int, platform: RunningPlatform, upstream: AccountServer, ada: Member
) -> None:
    upstream.respond = lambda form: web.json_response({"error": "invalid_client"}, status=status)
    make_due(platform, ada)
    await platform.refresh()
    assert await outcome(ada) == (503, "mcp_tokens_unavailable")
    upstream.respond = lambda form: None
    assert await outcome(ada) == (200, None)


async def test_a_token_without_a_refresh_token_is_used_until_it_expires(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, server: dict[str, Any], browser: Browser
) -> None:
    upstream.has_refresh_tokens, upstream.lifetime_seconds = False, None
    ben = await member(platform, tenant)
    await connect(upstream, await browser(ben), "ben")
    assert await outcome(ben) == (200, None)
    make_due(platform, ben)
    await platform.refresh()
    assert await outcome(ben) == (403, "mcp_connection_required")
    assert renewals(upstream) == 0


async def test_a_user_disconnects(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, server: dict[str, Any], ada: Member
) -> None:
    assert await outcome(ada) == (200, None)
    assert (await ada.client.delete(f"{OWN}/{server['id']}")).status_code == 204
    assert await outcome(ada) == (403, "mcp_connection_required")
    (event,) = await platform.audit(tenant, "mcp_connection.deleted")
    assert (event["actor_id"], event["details"]["user_id"]) == (str(ada.id), str(ada.id))
    missing = await ada.client.delete(f"{OWN}/{server['id']}")
    assert (missing.status_code, missing.json()["detail"]) == (404, "Connection not found")
    assert (await ada.client.delete(f"{OWN}/none")).status_code == 404


async def test_administrators_see_who_is_connected_without_tokens_and_disconnect(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, upstream: AccountServer, server: dict[str, Any],
    ada: Member,
) -> None:  # fmt: skip
    path = f"{BASE}/{server['id']}/connections"
    listed = (await tenant.auditor.client.get(path)).json()
    assert listed["total"] == 2
    row = next(one for one in listed["mcp_connections"] if one["user_id"] == str(ada.id))
    assert (row["email"], row["status"]) == (ada.email, "connected")
    assert set(row) == {
        "id", "server_id", "user_id", "email", "status", "scope", "connected_at", "expires_at",
    }  # fmt: skip
    for client, status in ((ada.client, 403), (tenant.auditor.client, 403), (platform.anonymous, 401)):
        assert (await client.delete(f"{path}/{row['id']}")).status_code == status
    assert (await ada.client.get(path)).status_code == 403
    assert (await other_tenant.admin.client.get(path)).status_code == 404
    assert (await other_tenant.admin.client.delete(f"{path}/{row['id']}")).status_code == 404
    assert (await tenant.admin.client.delete(f"{path}/{row['id']}")).status_code == 204
    assert (await tenant.admin.client.delete(f"{path}/{row['id']}")).status_code == 404
    assert await outcome(ada) == (403, "mcp_connection_required")


async def test_a_connection_to_a_server_that_cannot_be_used_is_listed_and_removed(
    tenant: Tenant, server: dict[str, Any], ada: Member
) -> None:
    path = f"{BASE}/{server['id']}"

    async def shown() -> list[tuple[str, bool, str]]:
        rows = (await ada.client.get(OWN)).json()["mcp_connections"]
        return [(row["server"], row["available"], row["status"]) for row in rows]

    assert await shown() == [("weather", True, "connected")]
    await tenant.admin.client.patch(path, json={"enabled": False})
    assert await shown() == [("weather", False, "connected")]
    await tenant.admin.client.patch(path, json={"enabled": True, "access": "restricted"})
    assert await shown() == [("weather", False, "connected")]
    # A rule may allow only an API key of the user, who then connects an account for it.
    created = await ada.client.post("/api/auth/api-keys", json={"description": "of an agent"})
    await grant(tenant, server, created.json()["id"], subject_type="api_key")
    assert await shown() == [("weather", True, "connected")]
    await tenant.admin.client.patch(path, json={"enabled": False})
    assert (await ada.client.delete(f"{OWN}/{server['id']}")).status_code == 204
    assert await shown() == []


async def test_an_administrator_sees_a_connection_before_the_tools_are_read(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer
) -> None:
    body = {"name": "unread", "url": upstream.url, "user_oauth": user_oauth(upstream.origin)}
    created = await tenant.admin.client.post(BASE, json=body)
    assert created.status_code == 201, created.text
    boss = await member(platform, tenant, role="admin")
    visitor = await browser_of(platform, boss)
    await connect(upstream, visitor, "boss", "unread")
    await visitor.client.aclose()
    (row,) = (await boss.client.get(OWN)).json()["mcp_connections"]
    assert (row["server"], row["available"], row["status"]) == ("unread", True, "connected")
    assert row["server_id"] == created.json()["id"]
    assert (await tenant.admin.client.get(OWN)).json()["mcp_connections"] == []


async def test_the_event_of_a_removed_server_has_the_number_of_connections(
    platform: RunningPlatform, tenant: Tenant, server: dict[str, Any], ada: Member
) -> None:
    assert (await tenant.admin.client.delete(f"{BASE}/{server['id']}")).status_code == 204
    (event,) = await platform.audit(tenant, "mcp_server.deleted")
    assert event["details"] == {"name": "weather", "removed_connections": 2}


@pytest.mark.parametrize("change", ["deactivate", "delete"])
async def test_tokens_end_with_the_user(
    change: str, platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, ada: Member
) -> None:
    path = f"/api/admin/users/{ada.id}"
    if change == "deactivate":
        answer = await tenant.admin.client.patch(path, json={"is_active": False})
    else:
        answer = await tenant.admin.client.delete(path)
    assert answer.status_code in {200, 204}, answer.text
    assert platform.sql("SELECT count(*) FROM mcp_connections WHERE user_id = %s", [ada.id]) == [(0,)]
    (event,) = await platform.audit(tenant, "mcp_connection.deleted")
    assert (event["resource_type"], event["details"]) == ("mcp_server", {"name": "weather", "user_id": str(ada.id)})
    if change == "deactivate":
        await tenant.admin.client.patch(path, json={"is_active": True})
        key = await platform.new_key(tenant.user)
        assert key
        assert (await call(ada.client, "weather", "echo")).status_code in {401, 403}


async def test_a_refused_token_is_renewed_for_the_next_call(
    platform: RunningPlatform, upstream: AccountServer, ada: Member
) -> None:
    assert await outcome(ada) == (200, None)
    upstream.access = {token: account for token, account in upstream.access.items() if account != "ada"}
    # A token younger than a minute is not renewed, so this one is made older.
    entry = platform.host.user_tokens._entries
    for cached in entry.values():
        cached.token._obtained_at -= 120
    assert await outcome(ada) == (502, "mcp_server_failed")
    assert await outcome(ada) == (200, None)
    assert renewals(upstream) == 1


async def test_machines_have_no_account(platform: RunningPlatform, tenant: Tenant, ada: Member) -> None:
    machine = await platform.new_m2m(tenant.id, "mcp:call")
    answer = await call(machine, "weather", "echo")
    assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (403, "mcp_user_required")
    # The table of access says so. A user without a connection can connect, so the table does not concern connections.
    (server,) = (await tenant.admin.client.get(BASE)).json()["mcp_servers"]
    (client_id,) = platform.sql("SELECT client_id FROM oauth_clients WHERE tenant_id = %s", [tenant.id])[0]
    for kind, caller, obstacle in (("oauth_client", client_id, "needs_user"), ("user", tenant.user.id, None)):
        query = {"caller_type": kind, "caller_id": str(caller)}
        matrix = (await tenant.admin.client.get(f"{BASE}/{server['id']}/access/matrix", params=query)).json()
        assert [(row["can_call"], row["obstacle"]) for row in matrix["tools"]] == [(obstacle is None, obstacle)]

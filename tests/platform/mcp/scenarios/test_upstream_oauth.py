"""The gateway as an OAuth client of MCP servers (docs/mcp.md)."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.mcp_servers import (
    BASE,
    ScriptedServer,
    TokenEndpoint,
    call,
    grant,
    refresh,
    register,
    scripted_server,
    token_endpoint,
)
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.ids import new_id

SECRET = "Wolper tinger"


@pytest.fixture
async def endpoint() -> AsyncIterator[TokenEndpoint]:
    async with token_endpoint() as endpoint:
        yield endpoint


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedServer]:
    async with scripted_server() as server:
        yield server


def oauth(endpoint: TokenEndpoint, **fields: Any) -> dict[str, Any]:
    return {"token_url": endpoint.url, "client_id": "gate:house", "client_secret": SECRET, **fields}


async def registered(
    tenant: Tenant, upstream: ScriptedServer, endpoint: TokenEndpoint, **fields: Any
) -> dict[str, Any]:
    server = await register(tenant, upstream.url, oauth=oauth(endpoint, **fields))
    await grant(tenant, server, tenant.user.id)
    return server


def sent_tokens(upstream: ScriptedServer) -> list[str | None]:
    """Return the credentials of all calls."""
    return [headers.get("authorization") for message, headers in upstream.seen if message["method"] == "tools/call"]


async def reason(tenant: Tenant) -> tuple[int, str]:
    answer = await call(tenant.user.client, "weather", "echo")
    return answer.status_code, answer.json()["error"]["data"]["reason"]


async def test_all_calls_share_one_token(tenant: Tenant, upstream: ScriptedServer, endpoint: TokenEndpoint) -> None:
    await registered(tenant, upstream, endpoint, scope="tools:call other")
    answers = await asyncio.gather(*(call(tenant.user.client, "weather", "echo") for _ in range(5)))
    assert {answer.status_code for answer in answers} == {200}
    # The refresh has fetched the first token.
    assert sent_tokens(upstream) == ["Bearer token-2"] * 5
    assert len(endpoint.seen) == 2
    form, headers = endpoint.seen[-1]
    assert form == {"grant_type": "client_credentials", "scope": "tools:call other", "resource": upstream.url}
    assert headers["authorization"] == f"Basic {b64encode(b'gate%3Ahouse:Wolper%20tinger').decode()}"


async def test_the_secret_can_be_sent_in_the_form_and_the_resource_left_out(
    tenant: Tenant, upstream: ScriptedServer, endpoint: TokenEndpoint
) -> None:
    await registered(tenant, upstream, endpoint, client_authentication="client_secret_post", sends_resource=False)
    form, headers = endpoint.seen[-1]
    assert form == {"grant_type": "client_credentials", "client_id": "gate:house", "client_secret": SECRET}
    assert "authorization" not in headers


async def test_a_token_that_expires_at_once_is_not_used(
    tenant: Tenant, upstream: ScriptedServer, endpoint: TokenEndpoint
) -> None:
    await registered(tenant, upstream, endpoint)
    # A lifetime below the shortest usable one: each call would need a token of its own, so it is refused.
    endpoint.lifetime_seconds = 20
    assert await reason(tenant) == (502, "no_access_token")
    assert sent_tokens(upstream) == []


async def test_without_a_token_nothing_is_sent_and_the_error_has_no_secret(
    tenant: Tenant, upstream: ScriptedServer, endpoint: TokenEndpoint
) -> None:
    server = await registered(tenant, upstream, endpoint)
    endpoint.status = 401
    answer = await call(tenant.user.client, "weather", "echo")
    assert (answer.status_code, answer.json()["error"]["data"]["reason"]) == (502, "client_refused")
    assert SECRET not in answer.text
    assert sent_tokens(upstream) == []
    answer = await tenant.admin.client.post(f"{BASE}/{server['id']}/refresh")
    assert (answer.status_code, "refuses the gateway's client" in answer.text) == (502, True)


async def test_a_new_secret_is_used_at_once(tenant: Tenant, upstream: ScriptedServer, endpoint: TokenEndpoint) -> None:
    server = await registered(tenant, upstream, endpoint)
    assert (await call(tenant.user.client, "weather", "echo")).status_code == 200
    body = {"oauth": oauth(endpoint, client_secret="other")}
    assert (await tenant.admin.client.patch(f"{BASE}/{server['id']}", json=body)).status_code == 200
    assert (await call(tenant.user.client, "weather", "echo")).status_code == 200
    assert sent_tokens(upstream) == ["Bearer token-2", "Bearer token-3"]
    assert endpoint.seen[-1][1]["authorization"] == f"Basic {b64encode(b'gate%3Ahouse:other').decode()}"


async def test_organizations_share_no_token(
    platform: RunningPlatform,
    tenant: Tenant,
    other_tenant: Tenant,
    upstream: ScriptedServer,
    endpoint: TokenEndpoint,
) -> None:
    for owner in (tenant, other_tenant):
        await registered(owner, upstream, endpoint)
        await platform.refresh()
        assert (await call(owner.user.client, "weather", "echo")).status_code == 200
    assert sent_tokens(upstream) == ["Bearer token-2", "Bearer token-4"]


async def test_the_secret_is_sealed_and_never_shown(
    platform: RunningPlatform, tenant: Tenant, upstream: ScriptedServer, endpoint: TokenEndpoint
) -> None:
    server = await registered(tenant, upstream, endpoint, scope="tools:call")
    shown = {
        "token_url": endpoint.url,
        "client_id": "gate:house",
        "scope": "tools:call",
        "client_authentication": "client_secret_basic",
        "sends_resource": True,
    }
    answer = await tenant.auditor.client.get(f"{BASE}/{server['id']}")
    assert (answer.json()["oauth"], answer.json()["header_name"]) == (shown, None)
    (event,) = await platform.audit(tenant, "mcp_server.created")
    assert event["details"]["oauth"] == shown
    (row,) = platform.sql("SELECT oauth, sealed_client_secret FROM mcp_servers WHERE id = %s", [server["id"]])
    assert SECRET not in str(row)
    assert row[1]
    answer = await tenant.admin.client.patch(f"{BASE}/{server['id']}", json={"oauth": None})
    assert (answer.status_code, answer.json()["oauth"]) == (200, None)
    (row,) = platform.sql("SELECT oauth, sealed_client_secret FROM mcp_servers WHERE id = %s", [server["id"]])
    assert row == (None, None)
    assert (await call(tenant.user.client, "weather", "echo")).status_code == 200
    assert sent_tokens(upstream) == [None]


async def test_the_client_cannot_be_used_for_another_host_or_beside_a_header(
    tenant: Tenant, upstream: ScriptedServer, endpoint: TokenEndpoint
) -> None:
    server = await registered(tenant, upstream, endpoint)
    path, header = f"{BASE}/{server['id']}", {"name": "Authorization", "value": "x"}
    for body, field in (
        ({"url": "http://127.0.0.1:9/mcp"}, "url"),
        ({"header": header}, "oauth"),
        ({"oauth": oauth(endpoint, token_url="http://169.254.169.254/token")}, "oauth.token_url"),
        ({"oauth": oauth(endpoint, token_url="https://8.8.8.8/token#x")}, "oauth.token_url"),
        ({"oauth": oauth(endpoint, client_secret="")}, "oauth.client_secret"),
        ({"oauth": {"token_url": endpoint.url, "client_id": "x"}}, "oauth.client_secret"),
        ({"oauth": oauth(endpoint, scope='a "b"')}, "oauth.scope"),
        ({"oauth": oauth(endpoint, client_authentication="none")}, "oauth.client_authentication"),
    ):
        answer = await tenant.admin.client.patch(path, json=body)
        places = [".".join(map(str, fault["loc"][1:])) for fault in answer.json()["detail"]]
        assert (answer.status_code, places) == (422, [field]), body
    body = {"name": f"x{new_id().hex[:8]}", "url": upstream.url, "header": header, "oauth": oauth(endpoint)}
    assert (await tenant.admin.client.post(BASE, json=body)).status_code == 422
    body = {"header": header, "oauth": None}
    assert (await tenant.admin.client.patch(path, json=body)).status_code == 200
    await refresh(tenant, server["id"])

"""The tokens of removed connections are revoked at the authorization server, whoever removes the connection."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.platform.mcp.connections.conftest import Browser
from tests.support.mcp_accounts import OWN, AccountServer, begin, come_back, connect, registered, user_oauth
from tests.support.mcp_servers import BASE
from tests.support.members import Member, member
from tests.support.platform import RunningPlatform, Tenant
from tests.support.tools import tools_of

from gatehouse.platform.mcp.connections import revocations

WAITING = "SELECT count(*) FROM mcp_revocations WHERE tenant_id = %s"


@pytest.fixture
async def server(platform: RunningPlatform, tenant: Tenant, upstream: AccountServer) -> dict[str, Any]:
    return await registered(platform, tenant, upstream)


@pytest.fixture
async def ada(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, server: dict[str, Any], browser: Browser
) -> Member:
    user = await member(platform, tenant)
    await connect(upstream, await browser(user), "ada")
    return user


def tokens_of(upstream: AccountServer, account: str) -> list[str]:
    """The refresh token and the access token of an account, in the order of the requests."""
    return [token for tokens in (upstream.refresh, upstream.access) for token, of in tokens.items() if of == account]


async def run_job(platform: RunningPlatform) -> None:
    await revocations.revoke_due(tools_of(platform.host))


def make_due(platform: RunningPlatform, tenant: Tenant) -> None:
    platform.sql("UPDATE mcp_revocations SET due_at = now() WHERE tenant_id = %s", [tenant.id])


Removing = Callable[[Tenant, Member, dict[str, Any], AccountServer, Browser], Awaitable[int]]


async def by_the_user(tenant: Tenant, ada: Member, server: dict[str, Any], upstream: AccountServer, b: Browser) -> int:
    return (await ada.client.delete(f"{OWN}/{server['id']}")).status_code


async def by_an_admin(tenant: Tenant, ada: Member, server: dict[str, Any], upstream: AccountServer, b: Browser) -> int:
    path = f"{BASE}/{server['id']}/connections"
    listed = (await tenant.admin.client.get(path)).json()["mcp_connections"]
    (row,) = (one for one in listed if one["user_id"] == str(ada.id))
    return (await tenant.admin.client.delete(f"{path}/{row['id']}")).status_code


async def by_another_consent(
    tenant: Tenant, ada: Member, server: dict[str, Any], upstream: AccountServer, browser: Browser
) -> int:
    await connect(upstream, await browser(ada), "eve")
    return 204


async def by_deactivation(tenant: Tenant, ada: Member, server: dict[str, Any], up: AccountServer, b: Browser) -> int:
    return (await tenant.admin.client.patch(f"/api/admin/users/{ada.id}", json={"is_active": False})).status_code


async def by_deletion(tenant: Tenant, ada: Member, server: dict[str, Any], upstream: AccountServer, b: Browser) -> int:
    return (await tenant.admin.client.delete(f"/api/admin/users/{ada.id}")).status_code


async def by_another_client(tenant: Tenant, ada: Member, server: dict[str, Any], up: AccountServer, b: Browser) -> int:
    body = {"user_oauth": user_oauth(up.origin, client_id="another", client_secret="another")}
    return (await tenant.admin.client.patch(f"{BASE}/{server['id']}", json=body)).status_code


async def with_the_server(tenant: Tenant, ada: Member, server: dict[str, Any], up: AccountServer, b: Browser) -> int:
    return (await tenant.admin.client.delete(f"{BASE}/{server['id']}")).status_code


@pytest.mark.parametrize(
    "remove",
    [
        by_the_user, by_an_admin, by_another_consent, by_deactivation, by_deletion, by_another_client, with_the_server,
    ],
)  # fmt: skip
async def test_the_tokens_of_a_removed_connection_are_revoked(
    remove: Removing, platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, server: dict[str, Any],
    ada: Member, browser: Browser,
) -> None:  # fmt: skip
    tokens = tokens_of(upstream, "ada")
    assert len(tokens) == 2
    assert await remove(tenant, ada, server, upstream, browser) in {200, 204}
    await run_job(platform)
    # Where the server has changed or is gone, the administrator's own connection ends too.
    revoked = [form for form in upstream.revoked if form["token"] in tokens]
    assert [form["token"] for form in revoked] == tokens
    assert [form["token_type_hint"] for form in revoked] == ["refresh_token", "access_token"]
    # The client to which the tokens were issued has authenticated.
    assert {upstream.revoking_clients[form["token"]] for form in revoked} == {upstream.basic}
    assert platform.sql(WAITING, [tenant.id]) == [(0,)]
    assert not [form for form in upstream.revoked if form["token"].startswith("eve")]


async def test_a_failed_revocation_is_repeated_with_pauses_and_a_bound(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, server: dict[str, Any], ada: Member
) -> None:
    upstream.revocation_status = 503
    assert (await ada.client.delete(f"{OWN}/{server['id']}")).status_code == 204
    await run_job(platform)
    await run_job(platform)
    # The second run comes before the pause has ended.
    assert len(upstream.revoked) == 1
    for attempts in range(2, revocations.MAX_ATTEMPTS + 1):
        assert platform.sql(WAITING, [tenant.id]) == [(1,)]
        make_due(platform, tenant)
        await run_job(platform)
        assert len(upstream.revoked) == attempts
    assert platform.sql(WAITING, [tenant.id]) == [(0,)]
    (event,) = await platform.audit(tenant, "mcp_connection.not_revoked")
    assert (event["outcome"], event["reason"], event["details"]["name"]) == ("failure", "again", "weather")
    assert not [token for token in tokens_of(upstream, "ada") if token in str(event)]


async def test_a_revocation_succeeds_after_an_outage(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, server: dict[str, Any], ada: Member
) -> None:
    upstream.revocation_status = 503
    assert (await ada.client.delete(f"{OWN}/{server['id']}")).status_code == 204
    await run_job(platform)
    upstream.revocation_status = 200
    make_due(platform, tenant)
    await run_job(platform)
    assert len(upstream.revoked) == 3
    assert platform.sql(WAITING, [tenant.id]) == [(0,)]
    assert await platform.audit(tenant, "mcp_connection.not_revoked") == []


async def test_a_revocation_is_not_repeated_if_the_user_has_connected_again(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, server: dict[str, Any], ada: Member,
    browser: Browser,
) -> None:  # fmt: skip
    upstream.revocation_status = 503
    assert (await ada.client.delete(f"{OWN}/{server['id']}")).status_code == 204
    await run_job(platform)
    await connect(upstream, await browser(ada), "eve")
    upstream.revocation_status = 200
    make_due(platform, tenant)
    await run_job(platform)
    assert len(upstream.revoked) == 1
    assert platform.sql(WAITING, [tenant.id]) == [(0,)]
    (event,) = await platform.audit(tenant, "mcp_connection.not_revoked")
    assert event["reason"] == "connected_again"


async def test_a_revocation_is_not_sent_if_the_user_has_connected_again_before_it(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, server: dict[str, Any], ada: Member,
    browser: Browser,
) -> None:  # fmt: skip
    assert (await ada.client.delete(f"{OWN}/{server['id']}")).status_code == 204
    await connect(upstream, await browser(ada), "ada")
    await run_job(platform)
    assert upstream.revoked == []
    assert platform.sql(WAITING, [tenant.id]) == [(0,)]
    (event,) = await platform.audit(tenant, "mcp_connection.not_revoked")
    assert event["reason"] == "connected_again"


async def test_the_tokens_of_a_replaced_connection_are_sent_once(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, ada: Member, browser: Browser
) -> None:
    await connect(upstream, await browser(ada), "eve")
    upstream.revocation_status = 503
    await run_job(platform)
    assert [form["token"] for form in upstream.revoked] == tokens_of(upstream, "ada")[:1]
    upstream.revocation_status = 200
    make_due(platform, tenant)
    await run_job(platform)
    assert len(upstream.revoked) == 1
    (event,) = await platform.audit(tenant, "mcp_connection.not_revoked")
    assert event["reason"] == "connected_again"


async def another_client(tenant: Tenant, server: dict[str, Any], user: Member, up: AccountServer) -> None:
    body = {"user_oauth": user_oauth(up.origin, client_id="another", client_secret="another")}
    assert (await tenant.admin.client.patch(f"{BASE}/{server['id']}", json=body)).status_code == 200


async def removal(tenant: Tenant, server: dict[str, Any], user: Member, up: AccountServer) -> None:
    assert (await tenant.admin.client.delete(f"{BASE}/{server['id']}")).status_code == 204


async def deactivation(tenant: Tenant, server: dict[str, Any], user: Member, up: AccountServer) -> None:
    answer = await tenant.admin.client.patch(f"/api/admin/users/{user.id}", json={"is_active": False})
    assert answer.status_code == 200


@pytest.mark.parametrize("refuse", [another_client, removal, deactivation])
async def test_tokens_that_arrive_for_a_refused_consent_are_revoked(
    refuse: Callable[[Tenant, dict[str, Any], Member, AccountServer], Awaitable[None]],
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, server: dict[str, Any], browser: Browser,
) -> None:  # fmt: skip
    """The server or the user changes while the authorization server issues the tokens."""
    user = await member(platform, tenant)
    visitor = await browser(user)
    answer = upstream.consent(await begin(visitor))
    upstream.codes[answer["code"]]["account"] = "late"

    async def change() -> None:
        await refuse(tenant, server, user, upstream)

    upstream.before_tokens = change
    assert await come_back(visitor, answer) == 400
    issued = tokens_of(upstream, "late")
    assert len(issued) == 2
    await run_job(platform)
    assert [form["token"] for form in upstream.revoked if form["token"] in issued] == issued
    # The client to which the tokens were issued has authenticated.
    assert {upstream.revoking_clients[token] for token in issued} == {upstream.basic}
    assert platform.sql(WAITING, [tenant.id]) == [(0,)]
    assert len(await platform.audit(tenant, "mcp_connection.failed")) == 1


async def test_a_refused_revocation_is_not_repeated(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, server: dict[str, Any], ada: Member
) -> None:
    upstream.revocation_status = 401
    assert (await ada.client.delete(f"{OWN}/{server['id']}")).status_code == 204
    await run_job(platform)
    assert len(upstream.revoked) == 1
    assert platform.sql(WAITING, [tenant.id]) == [(0,)]
    (event,) = await platform.audit(tenant, "mcp_connection.not_revoked")
    assert event["reason"] == "refused"


async def test_an_organization_has_a_limited_number_of_waiting_revocations(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, server: dict[str, Any], ada: Member
) -> None:
    platform.sql(
        "INSERT INTO mcp_revocations (tenant_id, server_id, user_id, server, server_url, user_oauth, revocation_url,"
        " sealed_tokens, due_at) SELECT %s, %s, %s, 'x', 'x', '{}', 'x', 'x', now() + interval '1 hour'"
        " FROM generate_series(1, 10000)",
        [tenant.id, server["id"], ada.id],
    )
    assert (await ada.client.delete(f"{OWN}/{server['id']}")).status_code == 204
    assert platform.sql(WAITING, [tenant.id]) == [(10_000,)]
    platform.sql("DELETE FROM mcp_revocations WHERE tenant_id = %s", [tenant.id])

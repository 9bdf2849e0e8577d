"""Credentials that have become invalid are refused by every operation."""

from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import uuid4

import httpx2
import pytest
from tests.support.operations import GUARDED, SCIM, filled
from tests.support.platform import PASSWORD, Person, RunningPlatform, Tenant

Kill = Callable[[RunningPlatform, Tenant], Awaitable[httpx2.AsyncClient]]


async def keyed(platform: RunningPlatform, person: Person) -> tuple[httpx2.AsyncClient, str]:
    """A client with a new key, and the key's id."""
    client = platform.client(await platform.new_key(person))
    return client, (await person.client.get("/api/auth/api-keys")).json()[0]["id"]


async def deleted_key(platform: RunningPlatform, tenant: Tenant) -> httpx2.AsyncClient:
    client, key_id = await keyed(platform, tenant.admin)
    await good(client)
    assert (await tenant.admin.client.delete(f"/api/auth/api-keys/{key_id}")).status_code == 204
    return client


async def disabled_key(platform: RunningPlatform, tenant: Tenant) -> httpx2.AsyncClient:
    client, key_id = await keyed(platform, tenant.admin)
    await good(client)
    assert (
        await tenant.admin.client.patch(f"/api/auth/api-keys/{key_id}", json={"is_enabled": False})
    ).status_code == 200
    return client


async def expired_key(platform: RunningPlatform, tenant: Tenant) -> httpx2.AsyncClient:
    client, key_id = await keyed(platform, tenant.admin)
    await good(client)
    platform.sql("UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE id = %s", [key_id])
    platform.touch("api_key", key_id)
    await platform.refresh()
    return client


async def key_of_a_deactivated_user(platform: RunningPlatform, tenant: Tenant) -> httpx2.AsyncClient:
    person = await platform.new_person(tenant.id, "admin")
    client, _ = await keyed(platform, person)
    await good(client)
    await deactivate(tenant, person)
    return client


async def key_of_a_deleted_user(platform: RunningPlatform, tenant: Tenant) -> httpx2.AsyncClient:
    person = await platform.new_person(tenant.id, "admin")
    client, _ = await keyed(platform, person)
    await good(client)
    assert (await tenant.admin.client.delete(f"/api/admin/users/{person.id}")).status_code == 204
    return client


async def key_of_a_deleted_organization(platform: RunningPlatform, tenant: Tenant) -> httpx2.AsyncClient:
    gone = await platform.new_tenant()
    client, _ = await keyed(platform, gone.admin)
    await good(client)
    await delete(platform, gone)
    return client


async def ended_session(platform: RunningPlatform, tenant: Tenant) -> httpx2.AsyncClient:
    person = await platform.new_person(tenant.id, "admin")
    await good(person.client)
    assert (await person.client.post("/api/auth/logout")).status_code == 204
    return person.client


async def session_before_a_new_password(platform: RunningPlatform, tenant: Tenant) -> httpx2.AsyncClient:
    admin, email = tenant.admin.client, f"ada-{uuid4().hex}@example.test"
    created_user = (
        await admin.post("/api/admin/users", json={"email": email, "password": PASSWORD, "role": "admin"})
    ).json()
    signed_in = await platform.anonymous.post("/api/auth/login", json={"email": email, "password": PASSWORD})
    client = platform.client(signed_in.json()["access_token"])
    await good(client)
    reset = (await admin.post(f"/api/admin/users/{created_user['id']}/password-reset")).json()
    body = {"token": reset["token"], "password": f"another {PASSWORD}"}
    assert (await platform.anonymous.post("/api/auth/password/reset", json=body)).is_success
    return client


async def session_of_a_deactivated_user(platform: RunningPlatform, tenant: Tenant) -> httpx2.AsyncClient:
    person = await platform.new_person(tenant.id, "admin")
    await good(person.client)
    await deactivate(tenant, person)
    return person.client


async def session_of_a_deleted_organization(platform: RunningPlatform, tenant: Tenant) -> httpx2.AsyncClient:
    gone = await platform.new_tenant()
    await good(gone.admin.client)
    await delete(platform, gone)
    return gone.admin.client


async def expired_token(platform: RunningPlatform, tenant: Tenant) -> httpx2.AsyncClient:
    person = tenant.admin
    claims = {"sub": str(person.id), "tid": str(tenant.id), "sid": str(person.session_id)}
    await good(platform.client(platform.signed(claims, lifetime=900)))
    return platform.client(platform.signed(claims, lifetime=-1))


async def machine(platform: RunningPlatform, tenant: Tenant) -> tuple[httpx2.AsyncClient, str]:
    """Create an OAuth client. Return a client with a token of it, and its id."""
    body = {"name": f"m-{uuid4().hex}", "scopes": ["admin:read", "admin:write", "api:read"]}
    oauth_client = (await tenant.admin.client.post("/api/admin/oauth-clients/", json=body)).json()
    form = {
        "grant_type": "client_credentials",
        "client_id": oauth_client["client_id"],
        "client_secret": oauth_client["client_secret"],
    }
    issued = (await platform.anonymous.post("/oauth/token", data=form)).json()
    client = platform.client(issued["access_token"])
    await good(client)
    return client, oauth_client["client_id"]


async def disabled_client(platform: RunningPlatform, tenant: Tenant) -> httpx2.AsyncClient:
    client, client_id = await machine(platform, tenant)
    answer = await tenant.admin.client.patch(f"/api/admin/oauth-clients/{client_id}", json={"enabled": False})
    assert answer.status_code == 200
    return client


async def deleted_client(platform: RunningPlatform, tenant: Tenant) -> httpx2.AsyncClient:
    client, client_id = await machine(platform, tenant)
    assert (await tenant.admin.client.delete(f"/api/admin/oauth-clients/{client_id}")).is_success
    return client


async def client_of_a_deleted_organization(platform: RunningPlatform, tenant: Tenant) -> httpx2.AsyncClient:
    gone = await platform.new_tenant()
    client, _ = await machine(platform, gone)
    await delete(platform, gone)
    return client


DEAD: list[Kill] = [
    deleted_key, disabled_key, expired_key, key_of_a_deactivated_user, key_of_a_deleted_user,
    key_of_a_deleted_organization, ended_session, session_before_a_new_password, session_of_a_deactivated_user,
    session_of_a_deleted_organization, expired_token, disabled_client, deleted_client,
    client_of_a_deleted_organization,
]  # fmt: skip


async def good(client: httpx2.AsyncClient) -> None:
    """Check that the credential is valid at the gateway and in administration."""
    for path in ("/v1/models", "/api/admin/users"):
        answer = await client.get(path)
        assert answer.status_code == 200, answer.text


async def deactivate(tenant: Tenant, person: Person) -> None:
    answer = await tenant.admin.client.patch(f"/api/admin/users/{person.id}", json={"is_active": False})
    assert answer.status_code == 200, answer.text


async def delete(platform: RunningPlatform, tenant: Tenant) -> None:
    operator = await platform.operator()
    assert (await operator.client.delete(f"/v1/platform/tenants/{tenant.id}")).status_code == 204


@pytest.fixture(scope="module", params=enumerate(DEAD), ids=lambda item: item[1].__name__)
async def dead(
    request: pytest.FixtureRequest, platform: RunningPlatform, somebody: Tenant
) -> AsyncIterator[httpx2.AsyncClient]:
    number, kill = request.param
    # There is no wait and no `refresh` after the revocation, because it is active when its answer arrives.
    killed = await kill(platform, somebody)
    # Each client has its own address, so that rate limits by address do not interfere.
    transport = httpx2.ASGITransport(app=platform.app, client=(f"198.51.100.{number}", 1))
    async with httpx2.AsyncClient(transport=transport, base_url=killed.base_url, headers=killed.headers) as client:
        yield client


async def test_an_invalid_credential_is_refused_everywhere(dead: httpx2.AsyncClient) -> None:
    for method, path in GUARDED:
        answer = await dead.request(method, filled(path))
        assert answer.status_code == 401, (method, path, answer.status_code, answer.text)


@pytest.mark.parametrize("end", ["removed", "expired", "of a deleted organization"])
async def test_an_expired_scim_token_is_refused_everywhere(platform: RunningPlatform, end: str) -> None:
    tenant = await platform.new_tenant()
    made = (await tenant.admin.client.post("/api/admin/scim/token", json={"description": "x"})).json()
    directory = platform.client(made["token"])
    assert (await directory.get("/api/scim/v2/Users")).status_code == 200
    if end == "removed":
        assert (await tenant.admin.client.delete(f"/api/admin/scim/tokens/{made['token_id']}")).status_code == 204
    elif end == "expired":
        platform.sql("UPDATE scim_tokens SET expires_at = now() - interval '1 s' WHERE id = %s", [made["token_id"]])
        platform.touch("scim_token", made["token_id"])
        await platform.refresh()
    else:
        await delete(platform, tenant)
    for method, path in SCIM:
        assert (await directory.request(method, filled(path))).status_code == 401, (method, path)

"""SCIM tokens (docs/scim.md)."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.platform.access.scim.conftest import BASE, Directory, directory_of
from tests.support.platform import RunningPlatform, Tenant

TOKEN = "/api/admin/scim/token"
TOKENS = "/api/admin/scim/tokens"


async def test_a_token_is_shown_once_and_stored_as_a_digest(platform: RunningPlatform, tenant: Tenant) -> None:
    until = (datetime.now(UTC) + timedelta(days=30)).isoformat()
    answer = await tenant.admin.client.post(TOKEN, json={"description": "Entra ID", "expires_at": until})
    assert answer.status_code == 201
    created = answer.json()
    assert created["token"].startswith("scim_")
    assert created["note"]
    listed = (await tenant.admin.client.get(TOKENS)).json()
    assert listed == {"tokens": [{name: value for name, value in created.items() if name not in {"token", "note"}}]}
    assert set(listed["tokens"][0]) == {"token_id", "description", "created_at", "last_used_at", "expires_at"}
    stored = platform.sql("SELECT * FROM scim_tokens WHERE id = %s", [created["token_id"]])
    assert created["token"] not in str(stored)


async def test_creation_and_removal_are_in_the_audit_chain(
    platform: RunningPlatform, tenant: Tenant, directory: Directory
) -> None:
    await tenant.admin.client.delete(f"{TOKENS}/{directory.token_id}")
    for action in ("scim_token.created", "scim_token.deleted"):
        (event,) = await platform.audit(tenant, action)
        assert (event["actor_id"], event["resource_id"]) == (str(tenant.admin.id), directory.token_id)
        assert directory.token not in str(event)


async def test_a_removed_token_is_refused_at_once(tenant: Tenant, directory: Directory) -> None:
    await directory.call("GET", "/Users")
    assert (await tenant.admin.client.delete(f"{TOKENS}/{directory.token_id}")).status_code == 204
    refused = await directory.call("GET", "/Users", expect=401)
    assert refused["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
    assert refused["status"] == "401"
    assert (await tenant.admin.client.delete(f"{TOKENS}/{directory.token_id}")).status_code == 404


async def test_an_expired_token_is_refused(platform: RunningPlatform, directory: Directory) -> None:
    platform.sql("UPDATE scim_tokens SET expires_at = now() - interval '1 second' WHERE id = %s", [directory.token_id])
    platform.touch("scim_token", directory.token_id)
    await platform.refresh()
    await directory.call("GET", "/Users", expect=401)


async def test_a_token_of_a_deleted_organization_is_refused(
    platform: RunningPlatform, tenant: Tenant, directory: Directory
) -> None:
    platform.sql("UPDATE tenants SET deleted_at = now() WHERE id = %s", [tenant.id])
    platform.touch("tenant", tenant.id)
    await platform.refresh()
    await directory.call("GET", "/Users", expect=401)


@pytest.mark.parametrize(
    "path", ["/v1/models", "/api/admin/users", "/api/admin/scim/tokens", "/api/auth/api-keys", "/v1/audit/events"]
)
async def test_a_token_is_valid_only_for_provisioning(directory: Directory, path: str) -> None:
    assert (await directory.client.get(path)).status_code == 401


async def test_only_a_scim_token_is_valid_for_provisioning(platform: RunningPlatform, tenant: Tenant) -> None:
    key = platform.client(await platform.new_key(tenant.admin))
    machine = await platform.new_m2m(tenant.id, "admin:read", "admin:write")
    for client in (platform.anonymous, tenant.admin.client, key, machine, platform.client("scim_" + "x" * 43)):
        answer = await client.get(f"{BASE}/Users")
        assert (answer.status_code, answer.headers["content-type"]) == (401, "application/scim+json")
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_only_administrators_create_and_remove_tokens(tenant: Tenant, directory: Directory) -> None:
    body = {"description": "x"}
    assert (await tenant.auditor.client.get(TOKENS)).status_code == 200
    assert (await tenant.user.client.get(TOKENS)).status_code == 403
    for person in (tenant.auditor, tenant.user):
        assert (await person.client.post(TOKEN, json=body)).status_code == 403
        assert (await person.client.delete(f"{TOKENS}/{directory.token_id}")).status_code == 403


async def test_another_organizations_token_is_not_found(
    platform: RunningPlatform, directory: Directory, other_tenant: Tenant
) -> None:
    answer = await other_tenant.admin.client.delete(f"{TOKENS}/{directory.token_id}")
    assert answer.status_code == 404
    assert (await other_tenant.admin.client.get(TOKENS)).json() == {"tokens": []}
    await directory.call("GET", "/Users")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "description"),
        ({"description": ""}, "description"),
        ({"description": "x", "expires_at": "soon"}, "expires_at"),
        ({"description": "x", "expires_at": "2040-01-01T00:00:00"}, "expires_at"),
        ({"description": "x", "expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({"description": "x", "expires": None}, "expires"),
    ],
)
async def test_a_bad_body_is_422_and_names_the_field(tenant: Tenant, body: dict[str, object], field: str) -> None:
    answer = await tenant.admin.client.post(TOKEN, json=body)
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"][-1] == field


async def test_the_time_of_use_is_written_once_a_minute(platform: RunningPlatform, tenant: Tenant) -> None:
    directory = await directory_of(platform, tenant)
    query = "SELECT last_used_at FROM scim_tokens WHERE id = %s"
    await directory.call("GET", "/Users")
    await platform.host.uses.flush()
    (first,) = platform.sql(query, [directory.token_id])
    assert first[0] is not None
    await directory.call("GET", "/Users")
    await platform.host.uses.flush()
    assert platform.sql(query, [directory.token_id]) == [first]


async def test_a_token_has_its_own_rate_limit(platform: RunningPlatform, directory: Directory) -> None:
    """Entra ID requires at least 25 requests per second."""
    answer = await directory.client.get(f"{BASE}/Users")
    assert answer.headers["x-ratelimit-limit"] == "5000"
    again = await directory.client.get(f"{BASE}/Users")
    assert int(again.headers["x-ratelimit-remaining"]) == int(answer.headers["x-ratelimit-remaining"]) - 1

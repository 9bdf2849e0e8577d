"""Service accounts: users without a password, whose keys administrators create (docs/authentication.md, Service
accounts)."""

from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.support.platform import RunningPlatform, Tenant

USERS = "/api/admin/users"
KEYS = "/api/admin/api-keys"
NEW = {"description": "nightly"}
USER_SCOPES = ("api:read", "api:write", "chat:write")


async def account(tenant: Tenant, role: str = "user") -> dict[str, Any]:
    body = {"email": f"bot-{uuid4().hex[:10]}@example.test", "kind": "service", "role": role}
    answer = await tenant.admin.client.post(USERS, json=body)
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()
    return created


def keys_of(user_id: object) -> str:
    return f"{USERS}/{user_id}/api-keys"


async def key_of(platform: RunningPlatform, tenant: Tenant, created: dict[str, Any]) -> httpx2.AsyncClient:
    answer = await tenant.admin.client.post(keys_of(created["id"]), json=NEW)
    assert answer.status_code == 201, answer.text
    return platform.client(answer.json()["api_key"])


async def test_an_administrator_creates_a_service_accounts_key(platform: RunningPlatform, tenant: Tenant) -> None:
    created = await account(tenant)
    answer = await tenant.admin.client.post(keys_of(created["id"]), json={**NEW, "expires_in_days": 30})
    assert answer.status_code == 201, answer.text
    key = answer.json()
    assert (key["user_id"], key["description"], key["is_enabled"]) == (created["id"], "nightly", True)
    assert (await platform.client(key["api_key"]).get("/v1/models")).status_code == 200
    listed = (await tenant.auditor.client.get(KEYS)).json()
    assert listed == [{name: value for name, value in key.items() if name != "api_key"}]
    (event,) = await platform.audit(tenant, "api_key.created")
    assert (event["actor_id"], event["details"]["user_id"]) == (str(tenant.admin.id), created["id"])
    assert key["api_key"] not in str(event)
    assert (await tenant.admin.client.delete(f"{KEYS}/{key['id']}")).status_code == 204
    assert (await platform.client(key["api_key"]).get("/v1/models")).status_code == 401


async def test_administrators_and_auditors_list_a_users_keys(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    created = await account(tenant)
    await platform.new_key(tenant.user)
    ids = [(await tenant.admin.client.post(keys_of(created["id"]), json=NEW)).json()["id"] for _ in range(2)]
    listed = await tenant.auditor.client.get(keys_of(created["id"]))
    assert [key["id"] for key in listed.json()] == ids[::-1]
    assert "api_key" not in listed.json()[0]
    for client, status in ((platform.anonymous, 401), (tenant.user.client, 403), (other_tenant.admin.client, 404)):
        assert (await client.get(keys_of(created["id"]))).status_code == status


async def test_a_key_has_the_accounts_current_rights(platform: RunningPlatform, tenant: Tenant) -> None:
    created = await account(tenant, "auditor")
    key = await key_of(platform, tenant, created)
    assert (await key.get(USERS)).status_code == 200
    assert (await key.post(USERS, json={"email": "x@example.test"})).status_code == 403
    await tenant.admin.client.patch(f"{USERS}/{created['id']}", json={"role": "user"})
    assert (await key.get(USERS)).status_code == 403


@pytest.mark.parametrize("verb", ["deactivate", "delete"])
async def test_a_service_accounts_keys_end_with_the_account(
    platform: RunningPlatform, tenant: Tenant, verb: str
) -> None:
    created = await account(tenant)
    key = await key_of(platform, tenant, created)
    path = f"{USERS}/{created['id']}"
    if verb == "delete":
        assert (await tenant.admin.client.delete(path)).status_code == 204
        assert (await tenant.admin.client.get(KEYS)).json() == []
    else:
        assert (await tenant.admin.client.patch(path, json={"is_active": False})).status_code == 200
    assert (await key.get("/v1/models")).status_code == 401


async def test_an_administrator_cannot_create_keys_of_a_person(tenant: Tenant) -> None:
    answer = await tenant.admin.client.post(keys_of(tenant.user.id), json=NEW)
    assert (answer.status_code, answer.json()) == (
        409, {"detail": "Administrators can create keys only for service accounts. Users create their own keys."},
    )  # fmt: skip


async def test_a_machine_cannot_create_a_key_with_more_rights_than_its_own(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    machine = await platform.new_m2m(tenant.id, "admin:write", *USER_SCOPES)
    reading_machine = await platform.new_m2m(tenant.id, "admin:write", "api:read")
    user, admin = await account(tenant), await account(tenant, "admin")
    assert (await machine.post(keys_of(admin["id"]), json=NEW)).status_code == 403
    assert (await reading_machine.post(keys_of(user["id"]), json=NEW)).status_code == 403
    assert (await machine.post(keys_of(user["id"]), json=NEW)).status_code == 201


async def test_only_administrators_of_the_organization_have_access(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    path = keys_of((await account(tenant))["id"])
    for client, status in (
        (platform.anonymous, 401),
        (tenant.user.client, 403),
        (tenant.auditor.client, 403),
        (await platform.new_m2m(tenant.id, "admin:read", *USER_SCOPES), 403),
        (other_tenant.admin.client, 404),
    ):
        assert (await client.post(path, json=NEW)).status_code == status


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "description"), ({**NEW, "expires_in_days": 0}, "expires_in_days"), ({**NEW, "scopes": []}, "scopes")],
)
async def test_a_bad_field_is_named(tenant: Tenant, body: dict[str, object], field: str) -> None:
    answer = await tenant.admin.client.post(keys_of((await account(tenant))["id"]), json=body)
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", field])


async def test_step_up_is_required_if_the_policy_requires_it(platform: RunningPlatform, tenant: Tenant) -> None:
    path = keys_of((await account(tenant))["id"])
    await platform.require_mfa(tenant.id)
    answer = await tenant.admin.client.post(path, json=NEW)
    assert (answer.status_code, answer.json()["error"]) == (403, "mfa_required")

"""The operator's administration of tenants (docs/reference/platform-tenants.md)."""

from time import time
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.secrets import tokens
from gatehouse.platform.changes.change import DEFAULT_TENANT

BASE = "/v1/platform/tenants"


def new(**more: Any) -> dict[str, Any]:
    return {"slug": f"s-{uuid4().hex[:10]}", "name": "Analytical Engines", **more}


async def test_the_portals_client_creates_a_tenant_with_its_first_admin(platform: RunningPlatform) -> None:
    portal = await platform.new_m2m(None, "admin:write")
    email = f"ada-{uuid4().hex[:8]}@example.test"
    expected = new(id=str(uuid4()), plan="business", owner={"email": email, "display_name": "Ada"})
    answer = await portal.post(BASE, json=expected)
    assert answer.status_code == 201, answer.text
    created = answer.json()
    assert {name: created[name] for name in ("id", "slug", "name", "plan")} == {
        name: expected[name] for name in ("id", "slug", "name", "plan")
    }
    assert (created["monthly_request_limit"], created["custom_rate_limit_rpm"]) == (1_000_000, None)
    ((role, operator, tenant_id),) = platform.sql(
        "SELECT role, operator, tenant_id FROM users WHERE email = %s", [email]
    )
    assert (role, operator, str(tenant_id)) == ("admin", False, expected["id"])
    joined = await platform.anonymous.post(
        "/api/auth/register",
        json={
            "invitation_token": created["owner"]["invitation_token"],
            "email": email,
            "password": "a long enough one",
        },
    )
    assert joined.status_code == 201, joined.text
    session = await platform.anonymous.post(
        "/api/auth/login", json={"email": email, "password": "a long enough one", "tenant": expected["slug"]}
    )
    listed = await platform.client(session.json()["access_token"]).get("/api/admin/users")
    assert [user["email"] for user in listed.json()["items"]] == [email]


async def test_the_creation_is_audited_for_the_operator_and_the_owner_is_audited_for_the_tenant(
    platform: RunningPlatform,
) -> None:
    operator = await platform.operator()
    created = (await operator.client.post(BASE, json=new(owner={"email": f"{uuid4().hex}@example.test"}))).json()
    event = (await platform.audit(DEFAULT_TENANT, "tenant.created"))[-1]
    assert (event["resource_id"], event["actor_id"]) == (created["id"], str(operator.id))
    assert created["owner"]["invitation_token"] not in str(event)
    (own,) = await platform.audit(created["id"], "user.created")
    assert own["resource_id"] == created["owner"]["id"]


async def test_a_slug_or_id_is_never_reused(platform: RunningPlatform) -> None:
    portal = await platform.new_m2m(None, "admin:write")
    first = new()
    created = (await portal.post(BASE, json=first)).json()
    assert (await portal.post(BASE, json=first)).status_code == 409
    assert (await portal.post(BASE, json=new(id=created["id"]))).status_code == 409
    assert (await portal.delete(f"{BASE}/{created['id']}")).status_code == 204
    assert (await portal.post(BASE, json=first)).status_code == 409


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"slug": "Upper"}, "slug"),
        ({"slug": "-x"}, "slug"),
        ({"name": ""}, "name"),
        ({"plan": "free"}, "plan"),
        ({"id": "x"}, "id"),
        ({"owner": {"email": "nobody"}}, "owner.email"),
        ({"surprise": 1}, "surprise"),
    ],
)
async def test_a_bad_field_is_named(platform: RunningPlatform, body: dict[str, Any], field: str) -> None:
    portal = await platform.new_m2m(None, "admin:write")
    answer = await portal.post(BASE, json={**new(), **body})
    assert answer.status_code == 422
    assert [".".join(fault["loc"][1:]) for fault in answer.json()["detail"]] == [field]


async def test_an_entitlement_takes_effect_at_once(platform: RunningPlatform, tenant: Tenant) -> None:
    portal = await platform.new_m2m(None, "admin:write")
    path = f"{BASE}/{tenant.id}/entitlements"
    answer = await portal.patch(path, json={"custom_rate_limit_rpm": 7})
    assert (answer.status_code, answer.json()["custom_rate_limit_rpm"]) == (200, 7)
    assert (await tenant.user.client.get("/v1/models")).headers["X-RateLimit-Limit"] == "7"
    await portal.patch(path, json={"custom_rate_limit_rpm": None})
    assert (await tenant.user.client.get("/v1/models")).headers["X-RateLimit-Limit"] != "7"
    changed = [
        event["details"]
        for event in await platform.audit(DEFAULT_TENANT, "tenant.entitlements_changed")
        if event["resource_id"] == str(tenant.id)
    ]
    assert changed == [{"custom_rate_limit_rpm": 7}, {"custom_rate_limit_rpm": None}]


async def test_a_new_plan_sets_its_monthly_limit_unless_the_request_contains_one(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    portal = await platform.new_m2m(None, "admin:write")
    path = f"{BASE}/{tenant.id}/entitlements"
    starter = (await portal.patch(path, json={"plan": "starter"})).json()
    assert (starter["plan"], starter["monthly_request_limit"]) == ("starter", 10_000)
    own = (await portal.patch(path, json={"plan": "business", "monthly_request_limit": 5})).json()
    assert (own["plan"], own["monthly_request_limit"]) == ("business", 5)
    same = (await portal.patch(path, json={"plan": "business", "scan_rate_limit_rpm": 60})).json()
    assert (same["monthly_request_limit"], same["scan_rate_limit_rpm"]) == (5, 60)
    for bad in ({"plan": None}, {"plan": "free"}, {"custom_rate_limit_rpm": 0}, {"monthly_request_limit": "5"}):
        assert (await portal.patch(path, json=bad)).status_code == 422


async def test_users_keys_and_clients_of_a_deleted_tenant_are_refused_at_once(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    portal = await platform.new_m2m(None, "admin:write")
    key = platform.client(await platform.new_key(tenant.user))
    machine = await platform.new_m2m(tenant.id, "admin:read", "api:read")
    for client in (key, machine, tenant.admin.client):
        assert (await client.get("/v1/models")).status_code == 200
    assert (await portal.delete(f"{BASE}/{tenant.id}")).status_code == 204
    for client in (key, machine, tenant.admin.client):
        assert (await client.get("/v1/models")).status_code == 401
    assert (await portal.delete(f"{BASE}/{tenant.id}")).status_code == 404
    assert (await portal.patch(f"{BASE}/{tenant.id}/entitlements", json={"plan": "starter"})).status_code == 404
    assert len(platform.sql("SELECT 1 FROM users WHERE tenant_id = %s", [tenant.id])) == 3
    deleted = [event["resource_id"] for event in await platform.audit(DEFAULT_TENANT, "tenant.deleted")]
    assert deleted.count(str(tenant.id)) == 1


async def test_the_operators_tenant_cannot_be_deleted(platform: RunningPlatform) -> None:
    operator = await platform.operator()
    assert (await operator.client.delete(f"{BASE}/{DEFAULT_TENANT}")).status_code == 409


async def test_only_operators_and_the_portal_manage_tenants(platform: RunningPlatform, tenant: Tenant) -> None:
    reader = await platform.new_m2m(None, "admin:read")
    own = await platform.new_m2m(tenant.id, "admin:write")
    for client in (tenant.admin.client, tenant.auditor.client, reader, own):
        assert (await client.post(BASE, json=new())).status_code == 403
        assert (await client.patch(f"{BASE}/{tenant.id}/entitlements", json={"plan": "starter"})).status_code == 403
        assert (await client.patch(f"{BASE}/{tenant.id}", json={"name": "Theirs"})).status_code == 403
        assert (await client.patch(f"{BASE}/{uuid4()}", json={"name": ""})).status_code == 403
        assert (await client.delete(f"{BASE}/{tenant.id}")).status_code == 403
        # The check of permissions precedes 404 and 422, so that unauthorized callers learn nothing.
        assert (await client.delete(f"{BASE}/{uuid4()}")).status_code == 403
        assert (await client.post(BASE, json={})).status_code == 403
    assert (await platform.anonymous.post(BASE, json=new())).status_code == 401
    assert (await platform.anonymous.patch(f"{BASE}/{tenant.id}", json={"name": "Theirs"})).status_code == 401


async def test_an_operators_key_has_only_its_scopes(platform: RunningPlatform) -> None:
    operator = await platform.operator()
    client = platform.client(await platform.new_key(operator))
    platform.sql("UPDATE api_keys SET scopes = '[\"api:read\"]' WHERE user_id = %s", [operator.id])
    ((key_id,),) = platform.sql("SELECT id FROM api_keys WHERE user_id = %s", [operator.id])
    platform.touch("api_key", key_id)
    await platform.refresh()
    assert (await client.post(BASE, json=new())).status_code == 403


async def test_an_operator_needs_a_second_factor_if_the_policy_requires_one(platform: RunningPlatform) -> None:
    """The response may contain the token with which the first administrator of an organization sets a password."""
    operator = await platform.operator()
    fresh = await platform.new_person(DEFAULT_TENANT, "admin", operator=True, mfa_at=time())
    await platform.require_mfa(DEFAULT_TENANT)
    try:
        platform.touch("tenant", DEFAULT_TENANT)
        await platform.refresh()
        refused = await operator.client.post(BASE, json=new())
        assert (refused.status_code, refused.json()["error"]) == (403, "mfa_required")
        assert (await fresh.client.post(BASE, json=new())).status_code == 201
    finally:
        platform.sql("UPDATE tenants SET mfa_policy = '{}' WHERE id = %s", [DEFAULT_TENANT])
        platform.touch("tenant", DEFAULT_TENANT)
        await platform.refresh()


async def test_an_unknown_tenant_is_404(platform: RunningPlatform) -> None:
    portal = await platform.new_m2m(None, "admin:write")
    assert (await portal.patch(f"{BASE}/{uuid4()}/entitlements", json={"plan": "starter"})).status_code == 404


def _key() -> tuple[str, dict[str, str]]:
    """Return a key that the portal created, and the fields of the request that registers it."""
    key = tokens.mint_api_key()
    return key.plaintext, {"key_prefix": key.shown, "key_sha256": key.digest.hex()}


async def _create_tenant(portal: Any) -> str:
    tenant_id: str = (await portal.post(BASE, json=new())).json()["id"]
    return tenant_id


async def test_the_portal_sends_only_the_hash_of_the_owners_key(platform: RunningPlatform) -> None:
    portal = await platform.new_m2m(None, "admin:write")
    tenant_id, email, (key, result) = await _create_tenant(portal), f"ada-{uuid4().hex[:8]}@example.test", _key()
    answer = await portal.put(f"{BASE}/{tenant_id}/owner", json={"email": email, **result})
    assert answer.status_code == 200, answer.text
    listed = await platform.client(key).get("/api/admin/users")
    assert [(user["id"], user["email"], user["role"]) for user in listed.json()["items"]] == [
        (answer.json()["user_id"], email, "admin")
    ]
    ((prefix,),) = platform.sql("SELECT key_prefix FROM api_keys WHERE id = %s", [answer.json()["key_id"]])
    assert prefix == key[:8]


async def test_registering_the_owner_again_changes_nothing(platform: RunningPlatform) -> None:
    portal = await platform.new_m2m(None, "admin:write")
    tenant_id, (_, result) = await _create_tenant(portal), _key()
    body = {"email": f"ada-{uuid4().hex[:8]}@example.test", **result}
    first = await portal.put(f"{BASE}/{tenant_id}/owner", json=body)
    again = await portal.put(f"{BASE}/{tenant_id}/owner", json=body)
    assert (again.status_code, again.json()) == (200, first.json())
    assert platform.sql("SELECT count(*) FROM users WHERE tenant_id = %s", [tenant_id]) == [(1,)]
    events = [(await platform.audit(UUID(tenant_id), action)) for action in ("user.created", "api_key.created")]
    assert [len(event) for event in events] == [1, 1]


async def test_an_owner_without_an_address_is_a_service_account(platform: RunningPlatform) -> None:
    portal = await platform.new_m2m(None, "admin:write")
    tenant_id, (key, result) = await _create_tenant(portal), _key()
    assert (await portal.put(f"{BASE}/{tenant_id}/owner", json=result)).status_code == 200
    assert platform.sql("SELECT kind, role FROM users WHERE tenant_id = %s", [tenant_id]) == [("service", "admin")]
    assert (await platform.client(key).get("/api/admin/users")).status_code == 200


async def test_a_user_without_the_admin_role_cannot_become_owner(platform: RunningPlatform, tenant: Tenant) -> None:
    portal = await platform.new_m2m(None, "admin:write")
    key, result = _key()
    answer = await portal.put(f"{BASE}/{tenant.id}/owner", json={"email": tenant.user.email, **result})
    assert (answer.status_code, answer.json()["detail"].partition(":")[0]) == (409, "email")
    assert (await platform.client(key).get("/v1/models")).status_code == 401


async def test_a_key_of_another_organization_is_refused(platform: RunningPlatform) -> None:
    portal = await platform.new_m2m(None, "admin:write")
    _, result = _key()
    assert (await portal.put(f"{BASE}/{await _create_tenant(portal)}/owner", json=result)).status_code == 200
    assert (await portal.put(f"{BASE}/{await _create_tenant(portal)}/owner", json=result)).status_code == 409


async def test_only_the_portals_client_registers_owners(platform: RunningPlatform, tenant: Tenant) -> None:
    _, result = _key()
    path = f"{BASE}/{tenant.id}/owner"
    assert (await platform.anonymous.put(path, json=result)).status_code == 401
    for client in (tenant.admin.client, await platform.new_m2m(tenant.id, "admin:write")):
        assert (await client.put(path, json=result)).status_code == 403
    portal = await platform.new_m2m(None, "admin:write")
    assert (await portal.put(f"{BASE}/{uuid4()}/owner", json=result)).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [({"key_sha256": "x"}, "key_sha256"), ({"key_prefix": "sk"}, "key_prefix"), ({"email": "x"}, "email")],
)
async def test_a_bad_field_of_an_owner_is_named(
    platform: RunningPlatform, tenant: Tenant, body: dict[str, Any], field: str
) -> None:
    portal = await platform.new_m2m(None, "admin:write")
    answer = await portal.put(f"{BASE}/{tenant.id}/owner", json={**_key()[1], **body})
    assert (answer.status_code, answer.json()["detail"][0]["loc"][-1]) == (422, field)


async def test_changes_of_name_and_contact_are_in_the_organizations_audit_chain(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    portal = await platform.new_m2m(None, "admin:write")
    path = f"{BASE}/{tenant.id}"
    before = (await portal.patch(path, json={})).json()
    sent = {"name": "Difference Engines", "contact_email": "charles@example.test"}
    for _ in range(2):
        answer = await portal.patch(path, json=sent)
        assert answer.status_code == 200, answer.text
        assert answer.json().items() >= sent.items()
    settings = (await tenant.admin.client.get("/api/v1/admin/org/settings")).json()
    assert (settings["display_name"], settings["contact_email"]) == ("Difference Engines", "charles@example.test")
    (event,) = await platform.audit(tenant, "organization.changed")
    assert event["details"] == {
        "display_name": "Difference Engines", "contact_email": "charles@example.test",
        "before": {"display_name": before["name"], "contact_email": None},
    }  # fmt: skip
    assert (await portal.patch(path, json={"contact_email": None})).json()["contact_email"] is None
    for bad in ({"name": ""}, {"name": None}, {"contact_email": "nobody"}, {"slug": "other"}):
        refused = await portal.patch(path, json=bad)
        assert refused.status_code == 422
        assert refused.json()["detail"][0]["loc"][-1] == next(iter(bad))
    assert (await portal.patch(f"{BASE}/{uuid4()}", json=sent)).status_code == 404


async def test_scans_have_their_own_rate_limit_if_one_is_set(platform: RunningPlatform, tenant: Tenant) -> None:
    portal = await platform.new_m2m(None, "admin:write")
    machine = await platform.new_m2m(tenant.id, "dlp:read", "chat:write", "api:read")
    path = f"{BASE}/{tenant.id}/entitlements"
    answer = await portal.patch(path, json={"scan_rate_limit_rpm": 2})
    assert (answer.status_code, answer.json()["scan_rate_limit_rpm"]) == (200, 2)
    for client in (tenant.user.client, machine):
        answers = [await client.post("/v1/scan", json={"text": "hello"}) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429], answers[0].text
        assert answers[-1].headers["X-RateLimit-Limit"] == "2"
        assert (await client.get("/v1/models")).status_code == 200
    assert (await portal.patch(path, json={"scan_rate_limit_rpm": 0})).status_code == 422
    await portal.patch(path, json={"scan_rate_limit_rpm": None})
    assert (await tenant.user.client.post("/v1/scan", json={"text": "hello"})).status_code == 200

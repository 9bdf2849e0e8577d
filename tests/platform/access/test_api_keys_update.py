"""Changes of API keys: description, expiry and scopes (docs/authentication.md, API keys)."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from tests.support.platform import RunningPlatform, Tenant

BASE = "/api/auth/api-keys"
ADMIN = "/api/admin/api-keys"
CHAT = {"model": "none/none", "messages": [{"role": "user", "content": "hi"}]}
SECONDS_PER_DAY = 86_400


async def created(tenant: Tenant, **fields: Any) -> dict[str, Any]:
    answer = await tenant.user.client.post(BASE, json={"description": "nightly", "expires_in_days": 30, **fields})
    assert answer.status_code == 201, answer.text
    key: dict[str, Any] = answer.json()
    return key


def scoping(platform: RunningPlatform, tenant: Tenant, is_on: str) -> None:
    platform.sql(
        "UPDATE tenants SET feature_flags = jsonb_build_object('api_key_scoping', %s::boolean) WHERE id = %s",
        [is_on, tenant.id],
    )


@pytest.mark.parametrize(("who", "base"), [("user", BASE), ("admin", BASE), ("admin", ADMIN)])
async def test_description_and_expiry_change_and_the_key_stays(
    platform: RunningPlatform, tenant: Tenant, who: str, base: str
) -> None:
    key = await created(tenant)
    client = getattr(tenant, who).client
    path = f"{base}/{key['id']}"
    renamed = await client.patch(path, json={"description": "weekly"})
    assert (renamed.status_code, renamed.json()["description"]) == (200, "weekly")
    assert renamed.json()["expires_at"] == key["expires_at"]
    extended = (await client.patch(path, json={"expires_in_days": 90})).json()
    days = (datetime.fromisoformat(extended["expires_at"]) - datetime.now(UTC)).total_seconds() / SECONDS_PER_DAY
    assert 89.9 < days <= 90
    assert extended["description"] == "weekly"
    assert (await client.patch(path, json={"expires_in_days": None})).json()["expires_at"] is None
    assert (await platform.client(key["api_key"]).get("/v1/models")).status_code == 200
    details = [event["details"] for event in await platform.audit(tenant, "api_key.updated")]
    assert details[0] == {"description": "weekly"}
    assert [set(changed) for changed in details[1:]] == [{"expires_at"}] * 2


async def test_a_new_expiry_makes_an_expired_key_valid_at_once(platform: RunningPlatform, tenant: Tenant) -> None:
    key = await created(tenant)
    platform.sql("UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE id = %s", [key["id"]])
    platform.touch("api_key", key["id"])
    await platform.refresh()
    client = platform.client(key["api_key"])
    assert (await client.get("/v1/models")).status_code == 401
    renewed = await tenant.user.client.patch(f"{BASE}/{key['id']}", json={"expires_in_days": 1})
    assert (renewed.status_code, renewed.json()["status"]) == (200, "active")
    assert (await client.get("/v1/models")).status_code == 200


async def test_scopes_apply_at_once_and_need_the_feature_flag(platform: RunningPlatform, tenant: Tenant) -> None:
    key = await created(tenant)
    path = f"{BASE}/{key['id']}"
    refused = await tenant.user.client.patch(path, json={"scopes": ["api:read"]})
    assert (refused.status_code, refused.json()["detail"][0]["loc"]) == (422, ["body", "scopes"])
    scoping(platform, tenant, "true")
    limited = await tenant.user.client.patch(path, json={"scopes": ["api:read"]})
    assert (limited.status_code, limited.json()["scopes"]) == (200, ["api:read"])
    client = platform.client(key["api_key"])
    assert (await client.post("/v1/chat/completions", json=CHAT)).status_code == 403
    scoping(platform, tenant, "false")
    # The whole answer can be written back without the flag: the list has not changed.
    same = await tenant.user.client.patch(path, json={"scopes": ["api:read"], "description": "limited"})
    assert (same.status_code, same.json()["description"]) == (200, "limited")
    free = await tenant.user.client.patch(path, json={"scopes": None})
    assert (free.status_code, free.json()["scopes"]) == (200, None)
    assert (await client.post("/v1/chat/completions", json=CHAT)).status_code != 403


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"description": ""}, "description"),
        ({"description": None}, "description"),
        ({"description": "x" * 256}, "description"),
        ({"expires_in_days": 0}, "expires_in_days"),
        ({"expires_in_days": 3651}, "expires_in_days"),
        ({"is_enabled": None}, "is_enabled"),
        ({"surprise": 1}, "surprise"),
    ],
)
async def test_a_field_that_creation_refuses_is_named(tenant: Tenant, body: dict[str, object], field: str) -> None:
    key = await created(tenant)
    answer = await tenant.user.client.patch(f"{BASE}/{key['id']}", json=body)
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", field])
    (listed,) = (await tenant.user.client.get(BASE)).json()
    assert listed["description"] == "nightly"


async def test_changes_need_a_second_factor_unless_they_only_disable(platform: RunningPlatform, tenant: Tenant) -> None:
    key = await created(tenant)
    await platform.require_mfa(tenant.id)
    platform.touch("tenant", tenant.id)
    await platform.refresh()
    path = f"{BASE}/{key['id']}"
    bodies: tuple[dict[str, object], ...] = (
        {"description": "weekly"}, {"expires_in_days": 90}, {"scopes": ["api:read"]},
        {"is_enabled": False, "expires_in_days": None},
    )  # fmt: skip
    for body in bodies:
        refused = await tenant.user.client.patch(path, json=body)
        assert (refused.status_code, refused.json()["error"]) == (403, "mfa_required"), body
    off = await tenant.user.client.patch(path, json={"is_enabled": False, "description": "nightly"})
    assert (off.status_code, off.json()["is_enabled"]) == (200, False)
    assert off.json()["expires_at"] == key["expires_at"]


async def test_a_key_with_scopes_cannot_widen_or_renew_keys(platform: RunningPlatform, tenant: Tenant) -> None:
    scoping(platform, tenant, "true")
    client = platform.client(await platform.new_key(tenant.admin, scopes=["admin:read", "admin:write"]))
    of_user = await created(tenant)
    (own,) = (await client.get(ADMIN, params={"user_id": str(tenant.admin.id)})).json()
    for key in (own, of_user):
        for body in ({"scopes": None, "description": "x"}, {"expires_in_days": 3650}):
            refused = await client.patch(f"{ADMIN}/{key['id']}", json=body)
            assert refused.status_code == 403, (key["description"], body)
    assert (await client.patch(f"{ADMIN}/{of_user['id']}", json={"is_enabled": False})).status_code == 200
    assert (await client.get(f"{ADMIN}/{own['id']}")).json()["scopes"] == ["admin:read", "admin:write"]


async def test_nobody_else_changes_a_key(platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant) -> None:
    key = await created(tenant)
    for client, base, key_id, status in (
        (tenant.auditor.client, BASE, key["id"], 404),
        (tenant.auditor.client, ADMIN, key["id"], 403),
        (other_tenant.admin.client, BASE, key["id"], 404),
        (other_tenant.admin.client, ADMIN, key["id"], 404),
        (tenant.user.client, BASE, uuid4(), 404),
        (platform.client(key["api_key"]), BASE, key["id"], 403),
    ):
        answer = await client.patch(f"{base}/{key_id}", json={"description": "mine"})
        assert answer.status_code == status, (base, key_id)
    (listed,) = (await tenant.user.client.get(BASE)).json()
    assert listed["description"] == "nightly"

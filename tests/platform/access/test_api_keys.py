"""API keys (docs/authentication.md, API keys)."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from tests.support.api_keys import looks_like_api_key
from tests.support.platform import RunningPlatform, Tenant

BASE = "/api/auth/api-keys"
ADMIN = "/api/admin/api-keys"
CHAT = {"model": "none/none", "messages": [{"role": "user", "content": "hi"}]}


async def test_a_key_is_shown_once_and_stored_as_a_digest(platform: RunningPlatform, tenant: Tenant) -> None:
    answer = await tenant.user.client.post(BASE, json={"description": "nightly", "expires_in_days": 30})
    assert answer.status_code == 201
    created = answer.json()
    assert looks_like_api_key(created["api_key"])
    assert created["key_prefix"] == created["api_key"][:8]
    assert (created["description"], created["is_enabled"], created["last_used"]) == ("nightly", True, None)
    days = (datetime.fromisoformat(created["expires_at"]) - datetime.now(UTC)).total_seconds() / 86_400
    assert 29.9 < days <= 30
    listed = await tenant.user.client.get(BASE)
    assert listed.json() == [{name: value for name, value in created.items() if name != "api_key"}]
    stored = platform.sql("SELECT * FROM api_keys WHERE id = %s", [created["id"]])
    assert created["api_key"] not in str(stored)


async def test_creation_is_in_the_audit_chain_without_the_key(platform: RunningPlatform, tenant: Tenant) -> None:
    key = await platform.new_key(tenant.user)
    (event,) = await platform.audit(tenant, "api_key.created")
    assert event["actor_id"] == str(tenant.user.id)
    assert event["actor_type"] == "user"
    assert key not in str(event)


async def test_a_key_has_the_rights_of_its_user(platform: RunningPlatform, tenant: Tenant) -> None:
    user_client = platform.client(await platform.new_key(tenant.user))
    admin_client = platform.client(await platform.new_key(tenant.admin))
    assert (await user_client.get(ADMIN)).status_code == 403
    assert (await admin_client.get(ADMIN)).status_code == 200


async def test_a_key_cannot_create_keys(platform: RunningPlatform, tenant: Tenant) -> None:
    client = platform.client(await platform.new_key(tenant.admin))
    assert (await client.post(BASE, json={"description": "another"})).status_code == 403


@pytest.mark.parametrize("header", ["Authorization", "X-API-Key"])
async def test_a_key_is_accepted_in_either_header(platform: RunningPlatform, tenant: Tenant, header: str) -> None:
    key = await platform.new_key(tenant.user)
    value = f"Bearer {key}" if header == "Authorization" else key
    answer = await platform.anonymous.get("/v1/models", headers={header: value})
    assert answer.status_code == 200


async def test_a_disabled_key_is_refused_at_once_and_can_be_enabled_again(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    created = (await tenant.user.client.post(BASE, json={"description": "x"})).json()
    client = platform.client(created["api_key"])
    off = await tenant.user.client.patch(f"{BASE}/{created['id']}", json={"is_enabled": False})
    assert (off.status_code, off.json()["is_enabled"]) == (200, False)
    refused = await client.get("/v1/models")
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")
    await tenant.user.client.patch(f"{BASE}/{created['id']}", json={"is_enabled": True})
    assert (await client.get("/v1/models")).status_code == 200
    assert [event["details"]["is_enabled"] for event in await platform.audit(tenant, "api_key.updated")] == [
        False,
        True,
    ]


async def test_an_expired_key_is_refused_even_if_it_is_enabled(platform: RunningPlatform, tenant: Tenant) -> None:
    created = (await tenant.user.client.post(BASE, json={"description": "x", "expires_in_days": 1})).json()
    platform.sql("UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE id = %s", [created["id"]])
    platform.touch("api_key", created["id"])
    await platform.refresh()
    refused = await platform.client(created["api_key"]).get("/v1/models")
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "expired_api_key")


async def test_a_deleted_key_is_refused_and_not_listed(platform: RunningPlatform, tenant: Tenant) -> None:
    created = (await tenant.user.client.post(BASE, json={"description": "x"})).json()
    assert (await tenant.user.client.delete(f"{BASE}/{created['id']}")).status_code == 204
    assert (await platform.client(created["api_key"]).get("/v1/models")).status_code == 401
    assert (await tenant.user.client.get(BASE)).json() == []
    assert len(await platform.audit(tenant, "api_key.deleted")) == 1


async def test_an_admin_sees_and_deletes_any_key_of_the_organization(platform: RunningPlatform, tenant: Tenant) -> None:
    created = (await tenant.user.client.post(BASE, json={"description": "x"})).json()
    listed = (await tenant.admin.client.get(ADMIN)).json()
    assert [(key["id"], key["user_id"]) for key in listed] == [(created["id"], str(tenant.user.id))]
    assert (await tenant.admin.client.delete(f"{ADMIN}/{created['id']}")).status_code == 204
    assert (await platform.client(created["api_key"]).get("/v1/models")).status_code == 401


async def test_administrators_and_auditors_read_one_key(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    await platform.new_key(tenant.user)
    (listed,) = (await tenant.admin.client.get(ADMIN)).json()
    path = f"{ADMIN}/{listed['id']}"
    for client in (tenant.admin.client, tenant.auditor.client):
        assert (await client.get(path)).json() == listed
    for client, where, status in (
        (platform.anonymous, path, 401),
        (tenant.user.client, path, 403),
        (other_tenant.admin.client, path, 404),
        (tenant.admin.client, f"{ADMIN}/{uuid4()}", 404),
        (tenant.admin.client, f"{ADMIN}/nonsense", 404),
    ):
        assert (await client.get(where)).status_code == status


async def test_an_auditor_reads_but_changes_nothing(tenant: Tenant) -> None:
    created = (await tenant.user.client.post(BASE, json={"description": "x"})).json()
    assert (await tenant.auditor.client.get(ADMIN)).status_code == 200
    assert (await tenant.auditor.client.delete(f"{ADMIN}/{created['id']}")).status_code == 403


async def test_keys_of_other_users_and_other_organizations_are_not_found(tenant: Tenant, other_tenant: Tenant) -> None:
    mine = (await tenant.user.client.post(BASE, json={"description": "x"})).json()["id"]
    for client, path in [
        (tenant.auditor.client, f"{BASE}/{mine}"),
        (other_tenant.user.client, f"{BASE}/{mine}"),
        (other_tenant.admin.client, f"{ADMIN}/{mine}"),
        (tenant.user.client, f"{BASE}/{uuid4()}"),
    ]:
        answer = await client.delete(path)
        assert (answer.status_code, answer.json()) == (404, {"detail": "API key not found"})
    assert len((await tenant.user.client.get(BASE)).json()) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "description"),
        ({"description": ""}, "description"),
        ({"description": "x" * 256}, "description"),
        ({"description": 5}, "description"),
        ({"description": "x", "expires_in_days": 0}, "expires_in_days"),
        ({"description": "x", "expires_in_days": 3651}, "expires_in_days"),
        ({"description": "x", "expires_in_days": True}, "expires_in_days"),
        ({"description": "x", "expires_in_days": "7"}, "expires_in_days"),
        ({"description": "x", "surprise": 1}, "surprise"),
    ],
)
async def test_a_bad_field_is_named(tenant: Tenant, body: dict[str, object], field: str) -> None:
    answer = await tenant.user.client.post(BASE, json=body)
    assert answer.status_code == 422
    assert [fault["loc"] for fault in answer.json()["detail"]] == [["body", field]]


async def test_scopes_of_keys_apply_with_the_feature_flag(platform: RunningPlatform, tenant: Tenant) -> None:
    body = {"description": "x", "scopes": ["api:read"]}
    assert (await tenant.user.client.post(BASE, json=body)).status_code == 422
    platform.sql("UPDATE tenants SET feature_flags = '{\"api_key_scoping\": true}' WHERE id = %s", [tenant.id])
    client = platform.client(await platform.new_key(tenant.user, scopes=["api:read"]))
    assert (await client.get("/v1/models")).status_code == 200
    assert (await client.post("/v1/chat/completions", json=CHAT)).status_code == 403


async def test_enabling_a_key_needs_a_second_factor_and_disabling_it_does_not(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    created = (await tenant.user.client.post(BASE, json={"description": "x"})).json()
    await platform.require_mfa(tenant.id)
    platform.touch("tenant", tenant.id)
    await platform.refresh()
    for who, base in ((tenant.user, BASE), (tenant.admin, ADMIN)):
        path = f"{base}/{created['id']}"
        assert (await who.client.patch(path, json={"is_enabled": False})).status_code == 200
        refused = await who.client.patch(path, json={"is_enabled": True})
        assert (refused.status_code, refused.json()["error"]) == (403, "mfa_required")
        assert platform.sql("SELECT is_enabled FROM api_keys WHERE id = %s", [created["id"]]) == [(False,)]
    fresh = await platform.new_person(tenant.id, "admin", mfa_at=datetime.now(UTC).timestamp())
    enabled = await fresh.client.patch(f"{ADMIN}/{created['id']}", json={"is_enabled": True})
    assert (enabled.status_code, enabled.json()["is_enabled"]) == (200, True)
    machine = await platform.new_m2m(tenant.id, "admin:write")
    assert (await machine.patch(f"{ADMIN}/{created['id']}", json={"is_enabled": True})).status_code == 200


async def test_lists_contain_the_scopes_of_a_key_and_the_user_who_disabled_it(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    platform.sql("UPDATE tenants SET feature_flags = '{\"api_key_scoping\": true}' WHERE id = %s", [tenant.id])
    body = {"description": "x", "scopes": ["chat:write", "api:read"]}
    created = (await tenant.user.client.post(BASE, json=body)).json()
    assert (created["scopes"], created["disabled_by"], created["status"]) == (
        ["api:read", "chat:write"],
        None,
        "active",
    )
    for client, base in ((tenant.user.client, BASE), (tenant.admin.client, ADMIN)):
        (listed,) = (await client.get(base)).json()
        assert listed["scopes"] == ["api:read", "chat:write"]
    off = (await tenant.user.client.patch(f"{BASE}/{created['id']}", json={"is_enabled": False})).json()
    assert (off["disabled_by"], off["status"]) == ("owner", "disabled")
    on = (await tenant.user.client.patch(f"{BASE}/{created['id']}", json={"is_enabled": True})).json()
    assert (on["disabled_by"], on["status"]) == (None, "active")


@pytest.mark.parametrize("base", [BASE, ADMIN])
async def test_only_an_administrator_enables_a_key_that_an_administrator_disabled(
    platform: RunningPlatform, tenant: Tenant, base: str
) -> None:
    created = (await tenant.user.client.post(BASE, json={"description": "x"})).json()
    off = await tenant.admin.client.patch(f"{base}/{created['id']}", json={"is_enabled": False})
    assert (off.status_code, off.json()["disabled_by"]) == (200, "administrator")
    own = f"{BASE}/{created['id']}"
    # An owner who disables the key again still cannot enable it.
    again = await tenant.user.client.patch(own, json={"is_enabled": False})
    assert (again.status_code, again.json()["disabled_by"]) == (200, "administrator")
    refused = await tenant.user.client.patch(own, json={"is_enabled": True})
    assert (refused.status_code, refused.json()["error"]) == (403, "disabled_by_administrator")
    assert (await platform.client(created["api_key"]).get("/v1/models")).status_code == 401
    on = await tenant.admin.client.patch(f"{base}/{created['id']}", json={"is_enabled": True})
    assert (on.status_code, on.json()["disabled_by"]) == (200, None)
    assert (await platform.client(created["api_key"]).get("/v1/models")).status_code == 200


async def test_a_key_that_a_machine_disables_counts_as_disabled_by_an_administrator(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    created = (await tenant.user.client.post(BASE, json={"description": "x"})).json()
    machine = await platform.new_m2m(tenant.id, "admin:write")
    off = await machine.patch(f"{ADMIN}/{created['id']}", json={"is_enabled": False})
    assert off.json()["disabled_by"] == "administrator"
    refused = await tenant.user.client.patch(f"{BASE}/{created['id']}", json={"is_enabled": True})
    assert refused.status_code == 403


async def test_an_administrator_removes_another_users_key_at_the_users_path(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    created = (await tenant.user.client.post(BASE, json={"description": "x"})).json()
    path = f"{BASE}/{created['id']}"
    assert (await other_tenant.admin.client.delete(path)).status_code == 404
    assert (await tenant.auditor.client.patch(path, json={"is_enabled": False})).status_code == 404
    assert (await tenant.admin.client.delete(path)).status_code == 204
    assert (await platform.client(created["api_key"]).get("/v1/models")).status_code == 401


async def test_keys_of_an_inactive_user_are_shown_as_suspended(platform: RunningPlatform, tenant: Tenant) -> None:
    await platform.new_key(tenant.user)
    user = f"/api/admin/users/{tenant.user.id}"
    await tenant.admin.client.patch(user, json={"is_active": False})
    for path in (ADMIN, f"{user}/api-keys"):
        (listed,) = (await tenant.admin.client.get(path)).json()
        assert (listed["is_enabled"], listed["status"]) == (True, "suspended")
    await tenant.admin.client.patch(user, json={"is_active": True})
    assert (await tenant.admin.client.get(ADMIN)).json()[0]["status"] == "active"


async def test_the_administrators_list_is_bounded_and_filtered(platform: RunningPlatform, tenant: Tenant) -> None:
    for person in (tenant.user, tenant.user, tenant.auditor):
        await platform.new_key(person)
    newest = (await tenant.admin.client.get(ADMIN)).json()
    part = await tenant.admin.client.get(ADMIN, params={"limit": 1, "offset": 1})
    assert (part.json(), part.headers["x-total-count"]) == ([newest[1]], "3")
    await tenant.admin.client.patch(f"{ADMIN}/{newest[0]['id']}", json={"is_enabled": False})
    for parameters, indices in (
        ({"user_id": str(tenant.user.id)}, (1, 2)),
        ({"enabled": "false"}, (0,)),
        ({"enabled": "true", "user_id": str(tenant.auditor.id)}, ()),
    ):
        listed = await tenant.admin.client.get(ADMIN, params=parameters)
        assert [key["id"] for key in listed.json()] == [newest[index]["id"] for index in indices]
        assert listed.headers["x-total-count"] == str(len(indices))
    refused = await tenant.admin.client.get(ADMIN, params={"limit": 501})
    assert (refused.status_code, refused.json()["detail"][0]["loc"]) == (422, ["query", "limit"])


async def test_a_machine_cannot_create_a_persons_key(platform: RunningPlatform, tenant: Tenant) -> None:
    """The machine's credential is valid, but of the wrong kind (docs/authentication.md)."""
    machine = await platform.new_m2m(tenant.id, "admin:write")
    assert (await machine.post(BASE, json={"description": "x"})).status_code == 403


# lists ---------------------------------------------------------------------------------------------------------------


async def create_keys(platform: RunningPlatform, tenant: Tenant) -> None:
    """Create three keys of the user and one of the administrator, each with another expiry and last use."""
    for minute, (person, description, days) in enumerate(
        (
            (tenant.user, "Nightly evaluation", 30),
            (tenant.user, "build 100%", None),
            (tenant.user, "accounting", 7),
            (tenant.admin, "Nightly backup", 90),
        )
    ):
        await platform.new_key(person, description=description, expires_in_days=days)
        used = f"now() - interval '{minute} days'" if days else "NULL"
        platform.sql(
            f"UPDATE api_keys SET last_used = {used}, created_at = now() + interval '{minute} minutes'"
            " WHERE tenant_id = %s AND description = %s",
            [tenant.id, description],
        )


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ({}, ["Nightly backup", "accounting", "build 100%", "Nightly evaluation"]),
        ({"sort": "created_at", "limit": 2}, ["Nightly evaluation", "build 100%"]),
        ({"sort": "created_at", "limit": 2, "offset": 2}, ["accounting", "Nightly backup"]),
        ({"sort": "description"}, ["accounting", "build 100%", "Nightly backup", "Nightly evaluation"]),
        ({"sort": "-description", "limit": 1}, ["Nightly evaluation"]),
        ({"sort": "expires_at"}, ["accounting", "Nightly evaluation", "Nightly backup", "build 100%"]),
        ({"sort": "-expires_at", "limit": 1}, ["build 100%"]),
        ({"sort": "-last_used"}, ["Nightly evaluation", "accounting", "Nightly backup", "build 100%"]),
        ({"sort": "last_used", "limit": 1}, ["build 100%"]),
        ({"search": "NIGHTLY"}, ["Nightly backup", "Nightly evaluation"]),
        ({"search": "ni"}, ["Nightly backup", "Nightly evaluation"]),
        ({"search": "0%"}, ["build 100%"]),
        ({"search": "100%"}, ["build 100%"]),
        ({"search": "gk_"}, ["Nightly backup", "accounting", "build 100%", "Nightly evaluation"]),
        ({"search": "nobody's"}, []),
    ],
)
async def test_the_list_of_keys_is_paged_searched_and_sorted(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, parameters: dict[str, Any], names: list[str]
) -> None:
    await create_keys(platform, tenant)
    await create_keys(platform, other_tenant)
    listed = await tenant.auditor.client.get(ADMIN, params=parameters)
    assert [key["description"] for key in listed.json()] == names
    if not {"limit", "offset"} & parameters.keys():
        assert listed.headers["x-total-count"] == str(len(names))


async def test_keys_are_sorted_by_their_owners_and_found_by_them(platform: RunningPlatform, tenant: Tenant) -> None:
    await create_keys(platform, tenant)
    platform.sql("UPDATE users SET display_name = 'Ada Lovelace' WHERE id = %s", [tenant.user.id])
    platform.sql("UPDATE users SET display_name = 'grace hopper' WHERE id = %s", [tenant.admin.id])
    by_owner = (await tenant.admin.client.get(ADMIN, params={"sort": "owner"})).json()
    assert [key["user_name"] for key in by_owner] == ["Ada Lovelace"] * 3 + ["grace hopper"]
    backwards = (await tenant.admin.client.get(ADMIN, params={"sort": "-owner"})).json()
    assert [key["id"] for key in backwards] == [key["id"] for key in reversed(by_owner)]
    for search in ("lovelace", "lo"):
        of_ada = await tenant.admin.client.get(ADMIN, params={"search": search, "sort": "owner"})
        assert {key["user_id"] for key in of_ada.json()} == {str(tenant.user.id)}
        assert of_ada.headers["x-total-count"] == "3"
    assert (
        await tenant.admin.client.get(ADMIN, params={"search": "Hopper", "user_id": str(tenant.user.id)})
    ).json() == []


async def test_a_search_with_many_matches_selects_the_same_keys(platform: RunningPlatform, tenant: Tenant) -> None:
    await create_keys(platform, tenant)
    platform.sql(
        "INSERT INTO api_keys (id, tenant_id, user_id, key_prefix, digest, description)"
        " SELECT gen_random_uuid(), %s, %s, 'gk_many', sha256((%s || n)::bytea), 'Bulk ' || n"
        " FROM generate_series(1, 1200) n",
        [tenant.id, tenant.user.id, str(tenant.id)],
    )
    many = await tenant.admin.client.get(ADMIN, params={"search": "bulk", "sort": "description", "limit": 3})
    assert [key["description"] for key in many.json()] == ["Bulk 1", "Bulk 10", "Bulk 100"]
    assert many.headers["x-total-count"] == "1200"
    counted = await tenant.admin.client.get(ADMIN, params={"search": "bulk", "max_total": 1000, "offset": 1190})
    assert (counted.headers["x-total-count"], len(counted.json())) == ("1000", 10)
    few = await tenant.admin.client.get(ADMIN, params={"search": "bulk 119", "max_total": 1000})
    assert few.headers["x-total-count"] == "11"


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [(ADMIN, "sort", "digest"), (ADMIN, "max_total", "0"), (ADMIN, "search", "x" * 256), (BASE, "sort", "owner")],
)
async def test_an_invalid_parameter_of_a_list_of_keys_is_named(
    tenant: Tenant, path: str, name: str, value: str
) -> None:
    refused = await tenant.admin.client.get(path, params={name: value})
    assert (refused.status_code, refused.json()["detail"][0]["loc"]) == (422, ["query", name])


async def test_ones_own_keys_are_paged_searched_and_sorted(platform: RunningPlatform, tenant: Tenant) -> None:
    await create_keys(platform, tenant)

    async def own(**parameters: Any) -> tuple[list[str], str]:
        listed = await tenant.user.client.get(BASE, params=parameters)
        return [key["description"] for key in listed.json()], listed.headers["x-total-count"]

    assert await own() == (["accounting", "build 100%", "Nightly evaluation"], "3")
    assert await own(sort="expires_at", limit=1, offset=1) == (["Nightly evaluation"], "3")
    assert await own(search="NIGHT") == (["Nightly evaluation"], "1")
    assert await own(search=tenant.user.client.headers["authorization"][:5]) == ([], "0")
    assert await own(enabled=False) == ([], "0")

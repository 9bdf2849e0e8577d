"""`ETag` and `If-Match`: two concurrent changes of a row never overwrite each other unnoticed."""

import asyncio
from typing import Any

import pytest
from tests.support.platform import RunningPlatform, Tenant

GROUPS = "/api/admin/groups"


@pytest.fixture
async def path(tenant: Tenant) -> str:
    group = (await tenant.admin.client.post(GROUPS, json={"name": "Payments"})).json()
    return f"{GROUPS}/{group['id']}"


async def test_a_row_has_a_version_that_every_change_replaces(tenant: Tenant, path: str) -> None:
    first = (await tenant.auditor.client.get(path)).headers["ETag"]
    assert (await tenant.admin.client.get(path)).headers["ETag"] == first
    changed = await tenant.admin.client.put(path, json={"description": "x"}, headers={"If-Match": first})
    assert changed.status_code == 200
    assert changed.headers["ETag"] != first
    assert (await tenant.admin.client.get(path)).headers["ETag"] == changed.headers["ETag"]


async def test_exactly_one_of_two_concurrent_changes_of_a_version_is_made(
    platform: RunningPlatform, tenant: Tenant, path: str
) -> None:
    for round_ in range(5):
        version = (await tenant.admin.client.get(path)).headers["ETag"]
        names = [f"{round_} {who}" for who in "ab"]
        answers = await asyncio.gather(
            *(tenant.admin.client.put(path, json={"name": name}, headers={"If-Match": version}) for name in names)
        )
        assert sorted(answer.status_code for answer in answers) == [200, 412]
        (made,) = [answer.json()["name"] for answer in answers if answer.status_code == 200]
        assert (await tenant.admin.client.get(path)).json()["name"] == made
    assert len(await platform.audit(tenant, "group.updated")) == 5


async def test_two_concurrent_changes_without_a_version_are_both_made(tenant: Tenant, path: str) -> None:
    await asyncio.gather(
        tenant.admin.client.put(path, json={"name": "Other"}),
        tenant.admin.client.put(path, json={"description": "Handles card data"}),
    )
    group = (await tenant.admin.client.get(path)).json()
    assert (group["name"], group["description"]) == ("Other", "Handles card data")


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_a_request_with_a_stale_version_changes_and_announces_nothing(
    platform: RunningPlatform, tenant: Tenant, path: str, method: str
) -> None:
    stale = (await tenant.admin.client.get(path)).headers["ETag"]
    now = (await tenant.admin.client.put(path, json={"description": "x"})).headers["ETag"]
    answer = await tenant.admin.client.request(method, path, json={"name": "y"}, headers={"If-Match": stale})
    assert (answer.status_code, "Read it again" in answer.json()["detail"]) == (412, True)
    assert (await tenant.admin.client.get(path)).headers["ETag"] == now
    assert len(await platform.audit(tenant, "group.updated")) == 1
    assert await platform.audit(tenant, "group.deleted") == []


@pytest.mark.parametrize("form", ["{}", "W/{}", '"another", {}', "*"])
async def test_the_version_may_be_in_a_list_weak_or_a_wildcard(tenant: Tenant, path: str, form: str) -> None:
    version = (await tenant.admin.client.get(path)).headers["ETag"]
    headers = {"If-Match": form.format(version)}
    assert (await tenant.admin.client.put(path, json={"description": "x"}, headers=headers)).status_code == 200


@pytest.mark.parametrize("form", ["nonsense", '""', '"another"', ""])
async def test_a_value_that_is_no_version_of_the_row_is_412(tenant: Tenant, path: str, form: str) -> None:
    answer = await tenant.admin.client.put(path, json={}, headers={"If-Match": form})
    assert answer.status_code == 412


async def test_if_match_never_matches_a_row_without_versions(tenant: Tenant) -> None:
    suppressions = "/api/admin/dlp-rules/suppressions"
    body = {"pattern_id": "email", "reason": "a test"}
    created = await tenant.admin.client.post(suppressions, json=body)
    assert created.status_code == 201, created.text
    path = f"{suppressions}/{created.json()['id']}"
    assert (await tenant.admin.client.delete(path, headers={"If-Match": '"x"'})).status_code == 412
    assert (await tenant.admin.client.delete(path)).status_code == 204


async def test_a_keys_version_changes_with_its_fields_but_not_with_its_use(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    await platform.new_key(tenant.user)
    (key,) = (await tenant.user.client.get("/api/auth/api-keys")).json()
    own, shown = f"/api/auth/api-keys/{key['id']}", f"/api/admin/api-keys/{key['id']}"
    version = (await tenant.admin.client.get(shown)).headers["ETag"]
    platform.sql("UPDATE api_keys SET last_used = now() WHERE id = %s", [key["id"]])
    assert (await tenant.admin.client.get(shown)).headers["ETag"] == version

    renamed = await tenant.user.client.patch(own, json={"description": "x"}, headers={"If-Match": version})
    assert renamed.status_code == 200
    assert renamed.json()["updated_at"] > key["updated_at"]
    for path in (own, shown):
        stale = await tenant.admin.client.patch(path, json={"is_enabled": False}, headers={"If-Match": version})
        assert stale.status_code == 412
        assert (await tenant.admin.client.delete(path, headers={"If-Match": version})).status_code == 412
    off = await tenant.admin.client.patch(
        shown, json={"is_enabled": False}, headers={"If-Match": renamed.headers["ETag"]}
    )
    assert (off.status_code, off.json()["description"]) == (200, "x")
    assert off.headers["ETag"] == (await tenant.admin.client.get(shown)).headers["ETag"] != renamed.headers["ETag"]


async def test_another_organizations_row_is_404_whatever_the_version(
    other_tenant: Tenant, tenant: Tenant, path: str
) -> None:
    version = (await tenant.admin.client.get(path)).headers["ETag"]
    answer = await other_tenant.admin.client.put(path, json={}, headers={"If-Match": version})
    assert answer.status_code == 404


async def test_a_sign_in_does_not_move_a_users_version(platform: RunningPlatform, tenant: Tenant) -> None:
    path = f"/api/admin/users/{tenant.user.id}"
    version = (await tenant.admin.client.get(path)).headers["ETag"]
    platform.sql("UPDATE users SET last_login_at = now() WHERE id = %s", [tenant.user.id])
    body: dict[str, Any] = {"display_name": "Ada"}
    assert (await tenant.admin.client.patch(path, json=body, headers={"If-Match": version})).status_code == 200


async def test_another_users_row_is_404_whatever_the_version(platform: RunningPlatform, tenant: Tenant) -> None:
    await platform.new_key(tenant.user)
    (key,) = (await tenant.user.client.get("/api/auth/api-keys")).json()
    own = f"/api/auth/api-keys/{key['id']}"
    answer = await tenant.auditor.client.patch(own, json={"is_enabled": False}, headers={"If-Match": '"x"'})
    assert (answer.status_code, "ETag" in answer.headers) == (404, False)


async def test_resources_with_their_own_loader_have_versions(platform: RunningPlatform, tenant: Tenant) -> None:
    admin = tenant.admin.client
    client = (await admin.post("/api/admin/oauth-clients/", json={"name": "a machine"})).json()["client_id"]
    await platform.add_provider(tenant.id, "acme", "openai_compatible", base_url="http://acme.test/v1")
    for shown, method, path, body in [
        (f"/api/admin/oauth-clients/{client}", "PUT", f"/api/admin/oauth-clients/{client}", {"name": "x"}),
        ("/api/admin/providers/acme", "PATCH", "/api/admin/providers/acme/config", {"timeout_ms": 1000}),
    ]:
        named = {"If-Match": (await admin.get(shown)).headers["ETag"]}
        assert (await admin.request(method, path, json=body, headers=named)).status_code == 200
        assert (await admin.request(method, path, json=body, headers=named)).status_code == 412


async def test_a_groups_version_covers_its_overrides(tenant: Tenant, path: str) -> None:
    named = {"If-Match": (await tenant.admin.client.get(path)).headers["ETag"]}
    overrides = [{"entity_type": "credit_card", "action": "BLOCK"}]
    assert (await tenant.admin.client.put(f"{path}/dlp", json=overrides, headers=named)).status_code == 200
    assert (await tenant.admin.client.put(f"{path}/dlp", json=[], headers=named)).status_code == 412

"""The endpoints of OAuth clients (docs/authentication.md, OAuth clients)."""

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.secrets import tokens
from gatehouse.platform.changes.change import DEFAULT_TENANT

BASE = "/api/admin/oauth-clients"
FIELDS = {
    "id", "client_id", "name", "scopes", "tenant_id", "created_by", "enabled", "rate_limit_tier",
    "token_lifetime_seconds", "created_at", "updated_at", "last_used", "redirect_uris", "user_scopes",
    "public",
}  # fmt: skip


async def create_client(client: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await client.post(f"{BASE}/", json={"name": "a machine", **body})
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()
    return created


async def request_token(
    platform: RunningPlatform, created: dict[str, Any], secret: str | None = None
) -> httpx2.Response:
    """Return the response to a token request of this client."""
    form = {
        "grant_type": "client_credentials",
        "client_id": created["client_id"],
        "client_secret": secret or created["client_secret"],
    }
    return await platform.anonymous.post("/oauth/token", data=form)


async def machine(platform: RunningPlatform, created: dict[str, Any]) -> httpx2.AsyncClient:
    """Return an HTTP client with a token of this client."""
    answer = await request_token(platform, created)
    assert answer.status_code == 200, answer.text
    return platform.client(answer.json()["access_token"])


# creation -----------------------------------------------------------------------------------------------------------


async def test_a_client_is_created_with_its_secret_shown_once(platform: RunningPlatform, tenant: Tenant) -> None:
    created = await create_client(tenant.admin.client)
    assert created.keys() == FIELDS | {"client_secret"}
    assert created["id"] != created["client_id"]
    assert (created["scopes"], created["enabled"], created["last_used"]) == ([], True, None)
    assert (created["rate_limit_tier"], created["token_lifetime_seconds"]) == ("standard", 3600)
    assert (created["tenant_id"], created["created_by"]) == (str(tenant.id), str(tenant.admin.id))
    shown = (await tenant.admin.client.get(f"{BASE}/{created['client_id']}")).json()
    assert shown == {name: created[name] for name in FIELDS}
    ((digest, *_rest),) = platform.sql("SELECT secret_digest FROM oauth_clients WHERE id = %s", [created["id"]])
    assert bytes(digest) == tokens.digest(created["client_secret"])


async def test_all_fields_can_be_set(tenant: Tenant) -> None:
    body = {
        "name": "reports", "scopes": ["chat:write", "api:read", "chat:write"], "tenant_id": str(tenant.id),
        "rate_limit_tier": "unlimited", "token_lifetime_seconds": 86400,
    }  # fmt: skip
    created = await create_client(tenant.admin.client, **body)
    assert {name: created[name] for name in body} == {**body, "scopes": ["chat:write", "api:read"]}


async def test_creation_is_in_the_audit_chain_without_the_secret(platform: RunningPlatform, tenant: Tenant) -> None:
    created = await create_client(tenant.admin.client, scopes=["chat:write"])
    (event,) = await platform.audit(tenant, "oauth_client.created")
    assert (event["actor_id"], event["resource_id"]) == (str(tenant.admin.id), created["client_id"])
    assert event["details"]["scopes"] == ["chat:write"]
    assert created["client_secret"] not in str(event)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "   "}, "name"),
        ({"name": "x" * 256}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"name": 5}, "name"),
        ({"name": "x", "scopes": "chat:write"}, "scopes"),
        ({"name": "x", "tenant_id": "not an id"}, "tenant_id"),
        ({"name": "x", "token_lifetime_seconds": 0}, "token_lifetime_seconds"),
        ({"name": "x", "token_lifetime_seconds": 86401}, "token_lifetime_seconds"),
        ({"name": "x", "token_lifetime_seconds": "60"}, "token_lifetime_seconds"),
        ({"name": "x", "enabled": False}, "enabled"),
        ({"name": "x", "client_secret": "mine"}, "client_secret"),
    ],
)
async def test_a_bad_field_is_named(tenant: Tenant, body: dict[str, object], field: str) -> None:
    answer = await tenant.admin.client.post(f"{BASE}/", json=body)
    assert answer.status_code == 422
    assert {fault["loc"][1] for fault in answer.json()["detail"]} == {field}


async def test_a_bad_tier_is_refused_with_the_list_of_tiers(tenant: Tenant) -> None:
    created = await create_client(tenant.admin.client)
    for answer in (
        await tenant.admin.client.post(f"{BASE}/", json={"name": "x", "rate_limit_tier": "gold"}),
        await tenant.admin.client.put(f"{BASE}/{created['client_id']}", json={"rate_limit_tier": "gold"}),
    ):
        assert answer.status_code == 422
        (fault,) = answer.json()["detail"]
        assert all(tier in fault["msg"] for tier in ("standard", "premium", "unlimited"))


async def test_an_unknown_scope_is_refused(tenant: Tenant) -> None:
    answer = await tenant.admin.client.post(f"{BASE}/", json={"name": "x", "scopes": ["chat:write", "root"]})
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", "scopes", 1])


# permissions --------------------------------------------------------------------------------------------------------


async def test_only_administrators_manage_clients(platform: RunningPlatform, tenant: Tenant) -> None:
    created = await create_client(tenant.admin.client)
    client_path = f"{BASE}/{created['client_id']}"
    calls = [
        ("POST", f"{BASE}/", {"name": "x"}), ("GET", f"{BASE}/", None), ("GET", client_path, None),
        ("PUT", client_path, {}), ("PATCH", client_path, {}),
        ("DELETE", client_path, None), ("POST", f"{client_path}/rotate-secret", None),
    ]  # fmt: skip
    for method, path, body in calls:
        assert (await platform.anonymous.request(method, path, json=body)).status_code == 401
        assert (await tenant.user.client.request(method, path, json=body)).status_code == 403
        reads = method == "GET"
        assert (await tenant.auditor.client.request(method, path, json=body)).status_code == (200 if reads else 403)
    assert (await tenant.admin.client.get(client_path)).json()["enabled"] is True


@pytest.mark.parametrize(("scope", "reads", "writes"), [("admin:write", 200, 201), ("admin:read", 200, 403)])
async def test_a_machine_needs_the_scope(
    platform: RunningPlatform, tenant: Tenant, scope: str, reads: int, writes: int
) -> None:
    client = await platform.new_m2m(tenant.id, scope)
    assert (await client.get(f"{BASE}/")).status_code == reads
    assert (await client.post(f"{BASE}/", json={"name": "x"})).status_code == writes


async def test_another_organizations_client_is_not_found(tenant: Tenant, other_tenant: Tenant) -> None:
    created = await create_client(tenant.admin.client)
    for path in (f"{BASE}/{created['client_id']}", f"{BASE}/{uuid4()}", f"{BASE}/{created['id']}"):
        for method, suffix, body in [
            ("GET", "", None),
            ("PUT", "", {}),
            ("PATCH", "", {}),
            ("DELETE", "", None),
            ("POST", "/rotate-secret", None),
        ]:
            answer = await other_tenant.admin.client.request(method, path + suffix, json=body)
            assert (answer.status_code, answer.json()) == (404, {"detail": "OAuth client not found"})
    assert (await other_tenant.admin.client.get(f"{BASE}/")).json() == []
    assert (await tenant.admin.client.get(f"{BASE}/{created['client_id']}")).json()["enabled"] is True


async def test_a_client_cannot_be_created_in_another_organization(tenant: Tenant, other_tenant: Tenant) -> None:
    foreign = str(other_tenant.id)
    answer = await tenant.admin.client.post(f"{BASE}/", json={"name": "x", "tenant_id": foreign})
    assert (answer.status_code, answer.json()) == (404, {"detail": "Organization not found"})
    assert (await tenant.admin.client.get(f"{BASE}/", params={"tenant_id": foreign})).status_code == 404
    assert (await other_tenant.admin.client.get(f"{BASE}/")).json() == []


# operators and platform-wide clients ----------------------------------------------------------------------------------


async def test_only_an_operator_creates_platform_wide_clients(platform: RunningPlatform, tenant: Tenant) -> None:
    refused = await tenant.admin.client.post(f"{BASE}/", json={"name": "x", "tenant_id": None})
    assert refused.status_code == 403
    operator = await platform.operator()
    created = await create_client(operator.client, tenant_id=None, scopes=["admin:write"])
    assert created["tenant_id"] is None
    assert (await create_client(operator.client))["tenant_id"] == str(DEFAULT_TENANT)


async def test_only_operators_see_platform_wide_clients(platform: RunningPlatform, tenant: Tenant) -> None:
    operator = await platform.operator()
    created = await create_client(operator.client, tenant_id=None, scopes=["admin:write", "admin:read"])
    path = f"{BASE}/{created['client_id']}"
    ordinary = await platform.new_person(DEFAULT_TENANT, "admin")
    own_machine = await machine(platform, created)
    for client in (tenant.admin.client, ordinary.client, own_machine):
        assert (await client.get(path)).status_code == 404
        assert (await client.delete(path)).status_code == 404
        listed = (await client.get(f"{BASE}/", params={"limit": 500})).json()
        assert created["client_id"] not in {row["client_id"] for row in listed}
    listed = (await operator.client.get(f"{BASE}/", params={"limit": 500})).json()
    assert created["client_id"] in {row["client_id"] for row in listed}
    assert {row["tenant_id"] for row in listed} <= {None, str(DEFAULT_TENANT)}


async def test_an_operator_works_in_any_organization(platform: RunningPlatform, tenant: Tenant) -> None:
    operator = await platform.operator()
    created = await create_client(operator.client, tenant_id=str(tenant.id))
    listed = (await operator.client.get(f"{BASE}/", params={"tenant_id": str(tenant.id)})).json()
    assert [row["client_id"] for row in listed["items"]] == [created["client_id"]]
    assert (await operator.client.get(f"{BASE}/{created['client_id']}")).status_code == 200
    nobody = {"name": "x", "tenant_id": str(uuid4())}
    assert (await operator.client.post(f"{BASE}/", json=nobody)).status_code == 404
    assert len((await tenant.admin.client.get(f"{BASE}/")).json()) == 1


async def test_the_platform_wide_client_manages_organizations_clients(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    portal = await platform.new_m2m(None, "admin:write", "chat:write")
    created = await create_client(portal, tenant_id=str(tenant.id), scopes=["chat:write"])
    assert (created["tenant_id"], created["created_by"]) == (str(tenant.id), None)
    assert (await portal.get(f"{BASE}/")).json() == []
    assert len((await portal.get(f"{BASE}/", params={"tenant_id": str(tenant.id)})).json()["items"]) == 1
    assert (await portal.delete(f"{BASE}/{created['client_id']}")).status_code == 204
    for body in ({"name": "x"}, {"name": "x", "tenant_id": None}):
        assert (await portal.post(f"{BASE}/", json=body)).status_code == 403


async def test_operators_changes_of_clients_are_in_the_organizations_own_chain(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    operator = await platform.operator()
    created = await create_client(operator.client, tenant_id=str(tenant.id))
    path = f"{BASE}/{created['client_id']}"
    assert (await operator.client.patch(path, json={"enabled": False})).status_code == 200
    assert (await operator.client.post(f"{path}/rotate-secret")).status_code == 200
    assert (await operator.client.delete(path)).status_code == 204
    for action in ("created", "updated", "secret_rotated", "deleted"):
        (event,) = await platform.audit(tenant, f"oauth_client.{action}")
        assert (event["resource_id"], event["actor_id"]) == (created["client_id"], str(operator.id))
    changes = (await tenant.admin.client.get("/api/v1/admin/kill-switch/propagation")).json()["changes"]
    assert created["client_id"] in {target for change in changes for target in change["targets"]}


# no escalation of rights --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body", [{"scopes": ["admin:write", "dlp:read"]}, {"rate_limit_tier": "premium"}, {"rate_limit_tier": "unlimited"}]
)
async def test_a_machine_cannot_create_a_client_with_more_rights(
    platform: RunningPlatform, tenant: Tenant, body: dict[str, Any]
) -> None:
    client = await platform.new_m2m(tenant.id, "admin:write", "chat:write")
    answer = await client.post(f"{BASE}/", json={"name": "x", **body})
    assert answer.status_code == 403
    assert (await client.post(f"{BASE}/", json={"name": "x", "scopes": ["chat:write"]})).status_code == 201


async def test_a_machine_cannot_raise_its_own_rights_or_those_of_another_client(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    own = await create_client(tenant.admin.client, scopes=["admin:write"])
    client = await machine(platform, own)
    other = await create_client(tenant.admin.client, scopes=["chat:write"])
    for target in (own, other):
        path = f"{BASE}/{target['client_id']}"
        for body in ({"scopes": ["admin:write", "dlp:read"]}, {"rate_limit_tier": "premium"}):
            assert (await client.patch(path, json=body)).status_code == 403
    shown = (await tenant.admin.client.get(f"{BASE}/{own['client_id']}")).json()
    assert (shown["scopes"], shown["rate_limit_tier"]) == (["admin:write"], "standard")


async def test_a_machine_cannot_take_over_a_client_with_more_rights(platform: RunningPlatform, tenant: Tenant) -> None:
    """With a new secret of the other client, or after enabling it, the machine would have the rights of that client."""
    stronger = await create_client(tenant.admin.client, scopes=["admin:write", "dlp:read"])
    faster = await create_client(tenant.admin.client, scopes=["admin:write"], rate_limit_tier="unlimited")
    client = await platform.new_m2m(tenant.id, "admin:write")
    for target in (stronger, faster):
        path = f"{BASE}/{target['client_id']}"
        assert (await client.post(f"{path}/rotate-secret")).status_code == 403
        assert (await client.patch(path, json={"enabled": False})).status_code == 200
        assert (await client.patch(path, json={"enabled": True})).status_code == 403
    own = await create_client(tenant.admin.client, scopes=["admin:write"])
    assert (await client.post(f"{BASE}/{own['client_id']}/rotate-secret")).status_code == 200


async def test_a_token_with_fewer_scopes_has_only_those_rights(platform: RunningPlatform, tenant: Tenant) -> None:
    own = await create_client(tenant.admin.client, scopes=["admin:write", "dlp:read"])
    form = {"grant_type": "client_credentials", "scope": "admin:write"}
    answer = await platform.anonymous.post("/oauth/token", data=form, auth=(own["client_id"], own["client_secret"]))
    client = platform.client(answer.json()["access_token"])
    assert (await client.post(f"{BASE}/", json={"name": "x", "scopes": ["dlp:read"]})).status_code == 403
    assert (await client.post(f"{BASE}/{own['client_id']}/rotate-secret")).status_code == 403


# lists --------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def client_ids(tenant: Tenant) -> list[str]:
    """Public ids of three clients, newest first."""
    return [(await create_client(tenant.admin.client, name=f"machine {n}"))["client_id"] for n in range(3)][::-1]


@pytest.mark.parametrize(
    ("query", "headers", "expected"),
    [
        ("", {}, [0, 1, 2]),
        ("limit=2", {}, [0, 1]),
        ("limit=2&offset=1", {}, [1, 2]),
        ("offset=3", {}, []),
        ("", {"X-API-Variant": "c"}, [0, 1, 2]),
        ("enabled=true", {"X-API-Variant": "a"}, [0, 1, 2]),
    ],
)
async def test_variant_a_lists_an_array_newest_first(
    tenant: Tenant, client_ids: list[str], query: str, headers: dict[str, str], expected: list[int]
) -> None:
    answer = await tenant.admin.client.get(f"{BASE}/?{query}", headers=headers)
    assert [row["client_id"] for row in answer.json()] == [client_ids[index] for index in expected]
    assert all(row.keys() == FIELDS for row in answer.json())


@pytest.mark.parametrize(
    ("query", "headers", "expected", "page", "size"),
    [
        ("page=1", {}, [0, 1, 2], 1, 20),
        ("page_size=2", {}, [0, 1], 1, 2),
        ("page=2&page_size=2", {}, [2], 2, 2),
        ("page=9", {}, [], 9, 20),
        ("", {"X-API-Variant": "b"}, [0, 1, 2], 1, 20),
        ("enabled=true", {}, [0, 1, 2], 1, 20),
    ],
)
async def test_variant_b_lists_pages(
    tenant: Tenant,
    client_ids: list[str],
    query: str,
    headers: dict[str, str],
    expected: list[int],
    page: int,
    size: int,
) -> None:
    answer = await tenant.admin.client.get(f"{BASE}/?{query}", headers=headers)
    body = answer.json()
    assert [row["client_id"] for row in body.pop("items")] == [client_ids[index] for index in expected]
    assert body == {"total": 3, "page": page, "page_size": size}
    assert answer.headers["X-API-Variant"] == "b"


async def test_filters_narrow_the_pages_and_their_total(tenant: Tenant, client_ids: list[str]) -> None:
    await tenant.admin.client.patch(f"{BASE}/{client_ids[1]}", json={"enabled": False})
    for value, total in (("true", 2), ("false", 1)):
        body = (await tenant.admin.client.get(f"{BASE}/", params={"enabled": value, "page_size": 1})).json()
        assert (body["total"], len(body["items"])) == (total, 1)
    listed = await tenant.admin.client.get(f"{BASE}/", params={"tenant_id": str(tenant.id)})
    assert listed.json()["total"] == 3


@pytest.mark.parametrize("query", ["limit=0", "limit=501", "offset=-1", "page=0", "page_size=201", "enabled=perhaps"])
async def test_a_parameter_out_of_bounds_is_named(tenant: Tenant, query: str) -> None:
    answer = await tenant.admin.client.get(f"{BASE}/?{query}")
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["query", query.partition("=")[0]]


# changes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_put_and_patch_change_only_the_named_fields(
    platform: RunningPlatform, tenant: Tenant, method: str
) -> None:
    created = await create_client(tenant.admin.client, scopes=["chat:write", "api:read"])
    path = f"{BASE}/{created['client_id']}"
    for body in (
        {"name": "renamed"}, {"scopes": ["dlp:read"]}, {"rate_limit_tier": "premium"}, {"token_lifetime_seconds": 60},
        {"enabled": False}, {}, {"name": None},
    ):  # fmt: skip
        before = (await tenant.admin.client.get(path)).json()
        answer = await tenant.admin.client.request(method, path, json=body)
        assert answer.status_code == 200
        changed = {name: value for name, value in body.items() if value is not None}
        assert answer.json() == before | changed | {"updated_at": answer.json()["updated_at"]}
        assert answer.headers["X-API-Variant"] == ("a" if method == "PUT" else "b")
    # The two requests without a change are not recorded.
    assert len(await platform.audit(tenant, "oauth_client.updated")) == 5


@pytest.mark.parametrize("body", [{"tenant_id": None}, {"scopes": ["root"]}, {"enabled": "yes"}, {"name": ""}])
async def test_a_bad_change_is_refused(tenant: Tenant, body: dict[str, object]) -> None:
    created = await create_client(tenant.admin.client)
    answer = await tenant.admin.client.put(f"{BASE}/{created['client_id']}", json=body)
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"][1] == next(iter(body))


async def test_a_disabled_client_and_its_tokens_are_refused_at_once_and_can_be_enabled_again(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    created = await create_client(tenant.admin.client, scopes=["api:read"])
    client = await machine(platform, created)
    path = f"{BASE}/{created['client_id']}"
    assert (await client.get("/v1/models")).status_code == 200
    await tenant.admin.client.put(path, json={"enabled": False})
    assert (await client.get("/v1/models")).status_code == 401
    refused = await request_token(platform, created)
    assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")
    await tenant.admin.client.patch(path, json={"enabled": True})
    assert (await client.get("/v1/models")).status_code == 200
    assert (await request_token(platform, created)).status_code == 200


async def test_tokens_lose_a_removed_scope_at_once(platform: RunningPlatform, tenant: Tenant) -> None:
    created = await create_client(tenant.admin.client, scopes=["api:read", "admin:read"])
    client = await machine(platform, created)
    path = f"{BASE}/{created['client_id']}"
    await tenant.admin.client.put(path, json={"scopes": ["api:read"]})
    assert (await client.get(f"{BASE}/")).status_code == 403
    assert (await client.get("/v1/models")).status_code == 200
    # An added scope applies only to new tokens.
    await tenant.admin.client.put(path, json={"scopes": ["api:read", "admin:read", "audit:read", "admin:write"]})
    assert (await client.post(f"{BASE}/", json={"name": "x"})).status_code == 403


async def test_a_client_stays_valid_after_its_creator_is_deleted(platform: RunningPlatform, tenant: Tenant) -> None:
    maker = await platform.new_person(tenant.id, "admin")
    created = await create_client(maker.client)
    platform.sql("DELETE FROM users WHERE id = %s", [maker.id])
    shown = (await tenant.admin.client.get(f"{BASE}/{created['client_id']}")).json()
    assert shown["created_by"] is None
    assert (await request_token(platform, created)).status_code == 200


# deletion -----------------------------------------------------------------------------------------------------------


async def test_deletion_ends_the_clients_tokens_at_once(platform: RunningPlatform, tenant: Tenant) -> None:
    created = await create_client(tenant.admin.client, scopes=["api:read"])
    client = await machine(platform, created)
    path = f"{BASE}/{created['client_id']}"
    assert (await tenant.admin.client.delete(path)).status_code == 204
    assert (await client.get("/v1/models")).status_code == 401
    assert (await request_token(platform, created)).json()["error"] == "invalid_client"
    assert (await tenant.admin.client.get(path)).status_code == 404
    assert (await tenant.admin.client.delete(path)).status_code == 404
    ((kind, seconds),) = platform.sql(
        "SELECT kind, EXTRACT(EPOCH FROM expires_at - now())::int FROM revocations WHERE subject = %s",
        [created["client_id"]],
    )
    assert kind == "oauth_client"
    assert seconds > 86_400
    assert len(await platform.audit(tenant, "oauth_client.deleted")) == 1


@pytest.fixture
def tokens_outlive_clients(platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = platform.host.settings.model_copy(update={"oauth_delete_revokes_tokens": False})
    monkeypatch.setattr(platform.host, "settings", changed)


@pytest.mark.usefixtures("tokens_outlive_clients")
async def test_with_the_setting_tokens_stay_valid_until_they_expire(platform: RunningPlatform, tenant: Tenant) -> None:
    created = await create_client(tenant.admin.client, scopes=["api:read"])
    client = await machine(platform, created)
    assert (await tenant.admin.client.delete(f"{BASE}/{created['client_id']}")).status_code == 204
    assert (await client.get("/v1/models")).status_code == 200
    assert (await request_token(platform, created)).status_code == 401


@pytest.mark.usefixtures("tokens_outlive_clients")
async def test_tokens_of_a_disabled_client_stay_invalid_after_its_deletion(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    created = await create_client(tenant.admin.client, scopes=["api:read"])
    client = await machine(platform, created)
    path = f"{BASE}/{created['client_id']}"
    await tenant.admin.client.put(path, json={"enabled": False})
    await tenant.admin.client.delete(path)
    assert (await client.get("/v1/models")).status_code == 401


# secrets ------------------------------------------------------------------------------------------------------------


async def test_the_previous_secret_is_accepted_until_its_grace_ends(platform: RunningPlatform, tenant: Tenant) -> None:
    created = await create_client(tenant.admin.client)
    answer = await tenant.admin.client.post(f"{BASE}/{created['client_id']}/rotate-secret")
    assert answer.status_code == 200
    rotated = answer.json()
    assert rotated.keys() == {
        "client_id", "new_client_secret", "grace_period_seconds", "previous_secret_expires_at"
    }  # fmt: skip
    assert rotated["grace_period_seconds"] == 86_400
    seconds_left = (datetime.fromisoformat(rotated["previous_secret_expires_at"]) - datetime.now(UTC)).total_seconds()
    assert 86_390 < seconds_left <= 86_400
    new = rotated["new_client_secret"]
    assert (await request_token(platform, created)).status_code == 200
    assert (await request_token(platform, created, new)).status_code == 200
    platform.sql("UPDATE oauth_clients SET previous_secret_expires_at = now() WHERE id = %s", [created["id"]])
    assert (await request_token(platform, created)).json()["error"] == "invalid_client"
    assert (await request_token(platform, created, new)).status_code == 200
    (event,) = await platform.audit(tenant, "oauth_client.secret_rotated")
    assert new not in str(event)


async def test_a_grace_of_zero_ends_the_previous_secret_at_once(
    platform: RunningPlatform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = platform.host.settings.model_copy(update={"oauth_secret_grace_seconds": 0})
    monkeypatch.setattr(platform.host, "settings", changed)
    created = await create_client(tenant.admin.client)
    rotated = (await tenant.admin.client.post(f"{BASE}/{created['client_id']}/rotate-secret")).json()
    assert rotated["grace_period_seconds"] == 0
    assert (await request_token(platform, created)).status_code == 401
    assert (await request_token(platform, created, rotated["new_client_secret"])).status_code == 200


async def test_a_second_rotation_keeps_the_grace_of_earlier_secrets(platform: RunningPlatform, tenant: Tenant) -> None:
    created = await create_client(tenant.admin.client)
    path = f"{BASE}/{created['client_id']}/rotate-secret"
    secrets = [created["client_secret"]]
    for _ in range(3):
        secrets.append((await tenant.admin.client.post(path)).json()["new_client_secret"])
    assert [(await request_token(platform, created, secret)).status_code for secret in secrets] == [200] * 4
    refused = await tenant.admin.client.post(path)
    assert (refused.status_code, refused.json()["error"]) == (409, "too_many_secrets")
    # Each secret expires on its own.
    platform.sql(
        "UPDATE oauth_clients SET earlier_secrets = jsonb_set(earlier_secrets, '{0,expires_at}', '1') WHERE id = %s",
        [created["id"]],
    )
    assert [(await request_token(platform, created, secret)).status_code for secret in secrets] == [401, 200, 200, 200]
    assert (await tenant.admin.client.post(path)).status_code == 200
    assert [(await request_token(platform, created, secret)).status_code for secret in secrets] == [401, 200, 200, 200]


async def test_a_rotation_without_grace_ends_all_earlier_secrets(platform: RunningPlatform, tenant: Tenant) -> None:
    created = await create_client(tenant.admin.client)
    path = f"{BASE}/{created['client_id']}/rotate-secret"
    secrets = [created["client_secret"]]
    for _ in range(3):
        secrets.append((await tenant.admin.client.post(path)).json()["new_client_secret"])
    rotated = await tenant.admin.client.post(path, json={"grace_period_seconds": 0})
    assert (rotated.status_code, rotated.json()["grace_period_seconds"]) == (200, 0)
    assert [(await request_token(platform, created, secret)).status_code for secret in secrets] == [401] * 4
    assert (await request_token(platform, created, rotated.json()["new_client_secret"])).status_code == 200
    refused = await tenant.admin.client.post(path, json={"grace_period_seconds": -1})
    assert (refused.status_code, refused.json()["detail"][0]["loc"]) == (422, ["body", "grace_period_seconds"])


async def test_concurrent_rotations_leave_one_current_secret_and_three_in_grace(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    created = await create_client(tenant.admin.client)
    path = f"{BASE}/{created['client_id']}/rotate-secret"
    answers = await asyncio.gather(*[tenant.admin.client.post(path) for _ in range(5)])
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 409, 409]
    secrets = [answer.json()["new_client_secret"] for answer in answers if answer.status_code == 200]
    for secret in (created["client_secret"], *secrets):
        assert (await request_token(platform, created, secret)).status_code == 200


async def test_step_up_is_required_of_people_if_it_is_enforced(platform: RunningPlatform, tenant: Tenant) -> None:
    await platform.require_mfa(tenant.id)
    platform.touch("tenant", tenant.id)
    await platform.refresh()
    refused = await tenant.admin.client.post(f"{BASE}/", json={"name": "x"})
    assert (refused.status_code, refused.json()["error"]) == (403, "mfa_required")
    fresh = await platform.new_person(tenant.id, "admin", mfa_at=datetime.now(UTC).timestamp())
    assert (await fresh.client.post(f"{BASE}/", json={"name": "x"})).status_code == 201

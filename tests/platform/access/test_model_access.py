"""Model access rules of groups, and their effect on requests (docs/model-access.md)."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from tests.support.platform import Person, RunningPlatform, Tenant

GROUPS = "/api/admin/groups"
ALL = f"{GROUPS}/model-access"
CATALOG = "/api/admin/models/catalog"
#: The id contains a slash.
SLASHED = "sandbox/vendor/echo"


@pytest.fixture
async def tenant(platform: RunningPlatform) -> Tenant:
    tenant = await platform.new_tenant()
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo", "stream-50", "vendor/echo")
    return tenant


async def group_of(tenant: Tenant, *members: Person, name: str = "Payments") -> str:
    """Create a group with these members and return the path of its rules."""
    group = (await tenant.admin.client.post(GROUPS, json={"name": name})).json()
    for member in members:
        await tenant.admin.client.post(f"{GROUPS}/{group['id']}/members", json={"user_id": str(member.id)})
    return f"{GROUPS}/{group['id']}/model-access"


async def create_rule(tenant: Tenant, rules: str, access_type: str, model: str = "sandbox/echo") -> dict[str, Any]:
    answer = await tenant.admin.client.post(rules, json={"model_id": model, "access_type": access_type})
    assert answer.status_code == 201, answer.text
    rule: dict[str, Any] = answer.json()
    return rule


def version_of(rule: dict[str, Any]) -> str:
    """Return the version of a rule for `If-Match`, as docs/organization.md describes it."""
    microseconds = (datetime.fromisoformat(rule["created_at"]) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(
        microseconds=1
    )
    return f'"{microseconds:x}"'


async def status_for(person: Person, model: str = "sandbox/echo") -> int:
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    return (await person.client.post("/v1/chat/completions", json=body)).status_code


async def listed_models(person: Person) -> set[str]:
    return {model["id"] for model in (await person.client.get("/v1/models")).json()["data"]}


async def restrict(platform: RunningPlatform, tenant: Tenant, model: str = "echo") -> None:
    ((entry,),) = platform.sql(
        "SELECT id FROM model_configs WHERE tenant_id = %s AND model_id = %s", [tenant.id, model]
    )
    answer = await tenant.admin.client.put(f"{CATALOG}/{entry}", json={"access": "restricted"})
    assert (answer.status_code, answer.json()["access"]) == (200, "restricted")


# the endpoints -------------------------------------------------------------------------------------------------------


async def test_a_rule_is_created_and_listed_by_group_and_for_all_groups(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    first, second = await group_of(tenant), await group_of(tenant, name="Second")
    rule = await create_rule(tenant, first, "DENY")
    assert rule == {
        "id": rule["id"], "group_id": first.split("/")[4], "model_id": "sandbox/echo", "access_type": "DENY",
        "created_at": rule["created_at"],
    }  # fmt: skip
    slashed = await create_rule(tenant, first, "ALLOW", SLASHED)
    second_rule = await create_rule(tenant, second, "ALLOW")
    assert (await tenant.auditor.client.get(first)).json() == [rule, slashed]
    assert (await tenant.auditor.client.get(second)).json() == [second_rule]
    assert (await tenant.auditor.client.get(ALL)).json() == [rule, slashed, second_rule]
    assert (await other_tenant.auditor.client.get(ALL)).json() == []
    event = (await platform.audit(tenant, "group.model_access_added"))[0]
    assert (event["resource_id"], event["target_provider"], event["target_model"]) == (
        rule["group_id"], "sandbox", "echo",
    )  # fmt: skip
    assert event["details"] == {"name": "Payments", "access_type": "DENY"}


@pytest.mark.parametrize("path", [SLASHED, quote(SLASHED, safe=""), SLASHED + "/"])
async def test_a_rule_is_removed_by_its_model_with_slashes_encoded_or_not(
    platform: RunningPlatform, tenant: Tenant, path: str
) -> None:
    rules = await group_of(tenant)
    await create_rule(tenant, rules, "DENY", SLASHED)
    other_rule = await create_rule(tenant, rules, "DENY")
    answer = await tenant.admin.client.delete(f"{rules}/{path}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert (await tenant.admin.client.get(rules)).json() == [other_rule]
    (event,) = await platform.audit(tenant, "group.model_access_removed")
    assert (event["target_provider"], event["target_model"]) == ("sandbox", "vendor/echo")


async def test_a_group_has_one_rule_per_model(tenant: Tenant) -> None:
    rules, second = await group_of(tenant), await group_of(tenant, name="Second")
    await create_rule(tenant, rules, "DENY")
    for access_type in ("DENY", "ALLOW"):
        again = await tenant.admin.client.post(rules, json={"model_id": "sandbox/echo", "access_type": access_type})
        assert (again.status_code, set(again.json())) == (409, {"detail"})
    await create_rule(tenant, second, "ALLOW")


async def test_an_unknown_rule_cannot_be_removed(tenant: Tenant) -> None:
    rules, second = await group_of(tenant), await group_of(tenant, name="Second")
    await create_rule(tenant, second, "DENY")
    for model in ("sandbox/echo", "nobody/nothing", "x"):
        answer = await tenant.admin.client.delete(f"{rules}/{model}")
        assert (answer.status_code, answer.json()) == (404, {"detail": "The group has no rule for this model"})


async def test_a_rule_is_removed_only_in_the_version_of_if_match(platform: RunningPlatform, tenant: Tenant) -> None:
    rules = await group_of(tenant)
    path, first = f"{rules}/sandbox/echo", version_of(await create_rule(tenant, rules, "ALLOW"))
    assert (await tenant.admin.client.delete(path, headers={"If-Match": first})).status_code == 204
    replaced = await create_rule(tenant, rules, "DENY")
    stale = await tenant.admin.client.delete(path, headers={"If-Match": first})
    assert (stale.status_code, "Read it again" in stale.json()["detail"]) == (412, True)
    assert (await tenant.admin.client.get(rules)).json() == [replaced]
    assert len(await platform.audit(tenant, "group.model_access_removed")) == 1
    # The version of the group is not the version of the rule.
    group = (await tenant.admin.client.get(rules.removesuffix("/model-access"))).headers["ETag"]
    assert (await tenant.admin.client.delete(path, headers={"If-Match": group})).status_code == 412
    assert (await tenant.admin.client.delete(path, headers={"If-Match": version_of(replaced)})).status_code == 204


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"access_type": "DENY"}, "model_id"),
        ({"model_id": "sandbox/echo"}, "access_type"),
        ({"model_id": "sandbox/echo", "access_type": "deny"}, "access_type"),
        ({"model_id": "", "access_type": "DENY"}, "model_id"),
        ({"model_id": "x" * 320, "access_type": "DENY"}, "model_id"),
        ({"model_id": 5, "access_type": "DENY"}, "model_id"),
        ({"model_id": "sandbox/\0", "access_type": "DENY"}, "model_id"),
        ({"model_id": "sandbox/ech", "access_type": "DENY"}, "model_id"),
        ({"model_id": "echo", "access_type": "DENY"}, "model_id"),
        ({"model_id": "sandbox/echo", "access_type": "DENY", "group_id": "x"}, "group_id"),
    ],
)
async def test_a_bad_field_is_named(tenant: Tenant, body: dict[str, object], field: str) -> None:
    rules = await group_of(tenant)
    answer = await tenant.admin.client.post(rules, json=body)
    assert answer.status_code == 422, answer.text
    assert [fault["loc"][-1] for fault in answer.json()["detail"]] == [field]
    assert (await tenant.admin.client.get(rules)).json() == []


async def test_an_unknown_model_is_refused_with_a_reference_to_the_catalog(tenant: Tenant) -> None:
    rules = await group_of(tenant)
    answer = await tenant.admin.client.post(rules, json={"model_id": "echo", "access_type": "DENY"})
    assert answer.json()["detail"][0]["msg"] == (
        "is not in the catalog: write provider/model-id, that is `provider` and `model_id` of an entry of"
        " GET /api/admin/models/catalog with a slash between them"
    )


async def test_another_organizations_model_is_unknown(platform: RunningPlatform, other_tenant: Tenant) -> None:
    rules = await group_of(other_tenant)
    answer = await other_tenant.admin.client.post(rules, json={"model_id": "sandbox/echo", "access_type": "ALLOW"})
    assert answer.status_code == 422


async def test_only_group_administrators_change_rules(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    rules = await group_of(tenant)
    await create_rule(tenant, rules, "DENY", SLASHED)
    body = {"model_id": "sandbox/echo", "access_type": "DENY"}
    reader, writer = [await platform.new_m2m(tenant.id, f"groups:{word}") for word in ("read", "write")]
    admin_machine = await platform.new_m2m(tenant.id, "admin:read", "admin:write")
    people = [
        platform.anonymous,
        tenant.user.client,
        tenant.auditor.client,
        other_tenant.admin.client,
        reader,
        admin_machine,
    ]
    for method, path, expected in (
        ("GET", rules, [401, 403, 200, 404, 200, 403]),
        ("GET", ALL, [401, 403, 200, 200, 200, 403]),
        ("POST", rules, [401, 403, 403, 404, 403, 403]),
        ("DELETE", f"{rules}/{SLASHED}", [401, 403, 403, 404, 403, 403]),
    ):
        sent = body if method == "POST" else None
        results = [(await person.request(method, path, json=sent)).status_code for person in people]
        assert results == expected, (method, path)
    assert (await writer.post(rules, json=body)).status_code == 201
    assert (await writer.delete(f"{rules}/{SLASHED}")).status_code == 204


async def test_a_deleted_groups_rules_are_deleted(platform: RunningPlatform, tenant: Tenant) -> None:
    rules = await group_of(tenant, tenant.user)
    await create_rule(tenant, rules, "DENY")
    assert await status_for(tenant.user) == 404
    assert (await tenant.admin.client.delete(rules.removesuffix("/model-access"))).status_code == 204
    assert platform.sql("SELECT count(*) FROM group_model_access WHERE tenant_id = %s", [tenant.id]) == [(0,)]
    assert await status_for(tenant.user) == 200


# effect on requests --------------------------------------------------------------------------------------------------


async def test_a_denial_applies_to_members_from_the_response_on_and_ends_with_the_rule(tenant: Tenant) -> None:
    rules = await group_of(tenant, tenant.user)
    assert await status_for(tenant.user) == 200
    await create_rule(tenant, rules, "DENY")
    assert (await status_for(tenant.user), await status_for(tenant.admin)) == (404, 200)
    assert await listed_models(tenant.user) == {"sandbox/stream-50", SLASHED}
    assert (await tenant.user.client.get("/v1/models/sandbox/echo")).status_code == 404
    await tenant.admin.client.delete(f"{rules}/sandbox/echo")
    assert await status_for(tenant.user) == 200


async def test_a_restricted_model_is_open_to_granted_groups(platform: RunningPlatform, tenant: Tenant) -> None:
    rules = await group_of(tenant, tenant.user)
    await restrict(platform, tenant)
    assert await status_for(tenant.user) == 404
    await create_rule(tenant, rules, "ALLOW")
    assert (await status_for(tenant.user), await status_for(tenant.admin)) == (200, 404)
    assert "sandbox/echo" in await listed_models(tenant.user)
    assert "sandbox/echo" not in await listed_models(tenant.admin)


async def test_a_denial_of_one_group_precedes_the_grant_of_another(platform: RunningPlatform, tenant: Tenant) -> None:
    first, second = await group_of(tenant, tenant.user), await group_of(tenant, tenant.user, name="Second")
    await restrict(platform, tenant)
    await create_rule(tenant, first, "ALLOW")
    assert await status_for(tenant.user) == 200
    await create_rule(tenant, second, "DENY")
    assert await status_for(tenant.user) == 404


async def test_a_groups_rules_do_not_apply_to_former_members(tenant: Tenant) -> None:
    rules = await group_of(tenant, tenant.user)
    await create_rule(tenant, rules, "DENY")
    assert await status_for(tenant.user) == 404
    members = rules.replace("model-access", "members")
    assert (await tenant.admin.client.delete(f"{members}/{tenant.user.id}")).status_code == 204
    assert await status_for(tenant.user) == 200


async def test_a_machine_may_use_only_unrestricted_models(platform: RunningPlatform, tenant: Tenant) -> None:
    await restrict(platform, tenant)
    await create_rule(tenant, await group_of(tenant), "ALLOW")
    machine = await platform.new_m2m(tenant.id, "chat:write", "api:read")
    body = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "hi"}]}
    assert (await machine.post("/v1/chat/completions", json=body)).status_code == 404
    assert (await machine.post("/v1/chat/completions", json={**body, "model": "sandbox/stream-50"})).status_code == 200
    assert {model["id"] for model in (await machine.get("/v1/models")).json()["data"]} == {"sandbox/stream-50", SLASHED}


async def test_a_rule_is_kept_without_its_model_and_applies_when_the_model_is_added_again(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    rules = await group_of(tenant, tenant.user)
    rule = await create_rule(tenant, rules, "DENY")
    ((entry,),) = platform.sql("SELECT id FROM model_configs WHERE tenant_id = %s AND model_id = 'echo'", [tenant.id])
    assert (await tenant.admin.client.delete(f"{CATALOG}/{entry}")).status_code == 204
    assert (await tenant.admin.client.get(rules)).json() == [rule]
    again = await tenant.admin.client.post(f"{CATALOG}/", json={"provider": "sandbox", "model_id": "echo"})
    assert again.status_code == 201
    assert (await status_for(tenant.user), await status_for(tenant.admin)) == (404, 200)


async def test_a_denied_model_gets_the_response_for_an_unknown_model(tenant: Tenant) -> None:
    await create_rule(tenant, await group_of(tenant, tenant.user), "DENY")
    results = []
    for model in ("sandbox/echo", f"sandbox/{uuid4().hex}"):
        body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
        answer = await tenant.user.client.post("/v1/chat/completions", json=body)
        results.append((answer.status_code, answer.text.replace(model, "it"), sorted(answer.headers)))
    assert results[0] == results[1]

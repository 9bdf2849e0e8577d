"""The endpoints of content filters (docs/content-filters.md)."""

from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.support.platform import Person, RunningPlatform, Tenant

BASE = "/api/admin/content-filters"
FILTER: dict[str, Any] = {
    "name": "Project names",
    "filter_type": "keyword_block",
    "config": {"keywords": ["Falcon", "project x"]},
    "scope": "org",
    "priority": 10,
}


async def create_filter(tenant: Tenant, **changed: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(f"{BASE}/", json={**FILTER, **changed})
    assert answer.status_code == 201, answer.text
    content_filter: dict[str, Any] = answer.json()
    return content_filter


async def group_of(tenant: Tenant, *people: Person) -> str:
    answer = await tenant.admin.client.post("/api/admin/groups", json={"name": f"group {uuid4()}"})
    assert answer.status_code == 201, answer.text
    group_id: str = answer.json()["id"]
    for person in people:
        await tenant.admin.client.post(f"/api/admin/groups/{group_id}/members", json={"user_id": str(person.id)})
    return group_id


async def chat(person: Person, text: str) -> httpx2.Response:
    body = {"model": "sandbox/echo", "messages": [{"role": "user", "content": text}]}
    return await person.client.post("/v1/chat/completions", json=body)


@pytest.fixture
async def sandbox(platform: RunningPlatform, tenant: Tenant) -> Tenant:
    await platform.add_provider(tenant.id, "sandbox", "sandbox", "echo")
    return tenant


async def test_a_filter_has_the_documented_fields(tenant: Tenant) -> None:
    content_filter = await create_filter(tenant)
    assert content_filter == {
        **FILTER, "id": content_filter["id"], "tenant_id": str(tenant.id), "description": None, "group_id": None,
        "enabled": True, "created_at": content_filter["created_at"], "updated_at": content_filter["updated_at"],
    }  # fmt: skip
    assert (await tenant.auditor.client.get(f"{BASE}/{content_filter['id']}")).json() == content_filter


async def test_the_list_is_in_the_order_of_evaluation(tenant: Tenant) -> None:
    assert (await tenant.admin.client.get(f"{BASE}/")).json() == []
    last, first, second = (
        await create_filter(tenant, priority=5),
        await create_filter(tenant, priority=-3),
        await create_filter(tenant, priority=5),
    )
    listed = (await tenant.auditor.client.get(f"{BASE}/")).json()
    assert [item["id"] for item in listed] == [first["id"], last["id"], second["id"]]


async def test_a_filter_takes_effect_with_the_response_and_ends_when_it_is_removed(sandbox: Tenant) -> None:
    content_filter = await create_filter(sandbox)
    refused = await chat(sandbox.user, "what is FALCON?")
    assert (refused.status_code, refused.json()["error"]["filter_id"]) == (403, content_filter["id"])
    assert "alcon" not in refused.json()["error"]["message"]
    path = f"{BASE}/{content_filter['id']}"
    await sandbox.admin.client.put(path, json={"config": {"keywords": ["eagle"]}})
    assert (await chat(sandbox.user, "falcon")).status_code == 200
    assert (await chat(sandbox.user, "eagle")).status_code == 403
    await sandbox.admin.client.put(path, json={"enabled": False})
    assert (await chat(sandbox.user, "eagle")).status_code == 200
    await sandbox.admin.client.put(path, json={"enabled": True})
    assert (await chat(sandbox.user, "eagle")).status_code == 403
    assert (await sandbox.admin.client.delete(path)).status_code == 204
    assert (await chat(sandbox.user, "eagle")).status_code == 200


async def test_a_groups_filter_applies_to_its_members(sandbox: Tenant) -> None:
    group_id = await group_of(sandbox, sandbox.user)
    await create_filter(sandbox, scope="group", group_id=group_id)
    assert (await chat(sandbox.user, "falcon")).status_code == 403
    assert (await chat(sandbox.admin, "falcon")).status_code == 200
    assert (await sandbox.admin.client.delete(f"/api/admin/groups/{group_id}")).status_code == 204
    assert (await sandbox.admin.client.get(f"{BASE}/")).json() == []


async def test_an_instruction_reaches_the_model(sandbox: Tenant) -> None:
    """The sandbox repeats only the user's text, but its usage counts the tokens of the whole prompt."""
    plain = (await chat(sandbox.user, "hello")).json()["usage"]["prompt_tokens"]
    await create_filter(
        sandbox, filter_type="custom_instruction", config={"instruction": "Be brief, and cite your sources."}
    )
    assert (await chat(sandbox.user, "hello")).json()["usage"]["prompt_tokens"] > plain


async def test_the_scope_can_be_changed(tenant: Tenant) -> None:
    group_id = await group_of(tenant)
    content_filter = await create_filter(tenant, scope="group", group_id=group_id)
    path = f"{BASE}/{content_filter['id']}"
    changed = (await tenant.admin.client.put(path, json={"scope": "org"})).json()
    assert (changed["scope"], changed["group_id"]) == ("org", None)
    answer = await tenant.admin.client.put(path, json={"scope": "group"})
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (400, ["body", "group_id"])
    changed = (await tenant.admin.client.put(path, json={"scope": "group", "group_id": group_id})).json()
    assert (changed["scope"], changed["group_id"]) == ("group", group_id)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"scope": "group"}, "group_id"),
        ({"scope": "group", "group_id": None}, "group_id"),
        ({"scope": "group", "group_id": str(uuid4())}, "group_id"),
        ({"scope": "org", "group_id": str(uuid4())}, "group_id"),
        ({"scope": "everybody"}, "scope"),
        ({"filter_type": "regex"}, "filter_type"),
        ({"name": ""}, "name"),
        ({"priority": "high"}, "priority"),
        ({"priority": None}, "priority"),
        ({"config": {}}, "keywords"),
        ({"config": None}, "config"),
        ({"config": {"keywords": []}}, "keywords"),
        ({"config": {"keywords": "falcon"}}, "keywords"),
        ({"config": {"keywords": [""]}}, "0"),
        ({"config": {"keywords": ["\u200b"]}}, "0"),
        ({"config": {"keywords": ["a"], "topics": ["b"]}}, "topics"),
        ({"filter_type": "topic_block"}, "topics"),
        ({"filter_type": "topic_block", "config": {"topics": []}}, "topics"),
        ({"filter_type": "topic_block", "config": {"topics": ["law"], "threshold": 2}}, "threshold"),
        ({"filter_type": "custom_instruction", "config": {"instruction": " "}}, "instruction"),
        ({"filter_type": "custom_instruction", "config": {}}, "instruction"),
        ({"surprise": 1}, "surprise"),
    ],
)
async def test_bad_input_is_400_and_names_the_field(tenant: Tenant, changed: dict[str, Any], field: str) -> None:
    answer = await tenant.admin.client.post(f"{BASE}/", json={**FILTER, **changed})
    assert answer.status_code == 400, answer.text
    assert field in [str(part) for fault in answer.json()["detail"] for part in fault["loc"]]
    assert (await tenant.admin.client.get(f"{BASE}/")).json() == []


@pytest.mark.parametrize("missing", ["name", "filter_type", "config", "scope", "priority"])
async def test_missing_required_fields_are_named(tenant: Tenant, missing: str) -> None:
    answer = await tenant.admin.client.post(f"{BASE}/", json={k: v for k, v in FILTER.items() if k != missing})
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (400, ["body", missing])


async def test_a_change_is_validated_as_a_whole_and_a_bad_one_changes_nothing(tenant: Tenant) -> None:
    content_filter = await create_filter(tenant)
    path = f"{BASE}/{content_filter['id']}"
    for body in ({"filter_type": "topic_block"}, {"config": {"keywords": []}}, {"name": None}, {"priority": None}):
        assert (await tenant.admin.client.put(path, json=body)).status_code == 400
    assert (await tenant.admin.client.get(path)).json() == content_filter
    body = {"filter_type": "topic_block", "config": {"topics": ["law"]}, "description": "no law"}
    changed = (await tenant.admin.client.put(path, json=body)).json()
    assert changed == {**content_filter, **body, "updated_at": changed["updated_at"]}


async def test_another_organizations_filter_and_group_are_not_found(tenant: Tenant, other_tenant: Tenant) -> None:
    theirs = await create_filter(other_tenant)
    for method, body in (("GET", None), ("PUT", {"name": "mine"}), ("DELETE", None)):
        answer = await tenant.admin.client.request(method, f"{BASE}/{theirs['id']}", json=body)
        assert (answer.status_code, answer.json()) == (404, {"detail": "Content filter not found"})
    group_id = await group_of(other_tenant)
    answer = await tenant.admin.client.post(f"{BASE}/", json={**FILTER, "scope": "group", "group_id": group_id})
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (400, ["body", "group_id"])


async def test_only_permitted_roles_have_access(platform: RunningPlatform, tenant: Tenant) -> None:
    path = f"{BASE}/{(await create_filter(tenant))['id']}"
    reader = await platform.new_m2m(tenant.id, "admin:read")
    for client, reads, writes in (
        (platform.anonymous, 401, 401), (tenant.user.client, 403, 403), (tenant.auditor.client, 200, 403),
        (reader, 200, 403),
    ):  # fmt: skip
        assert (await client.get(f"{BASE}/")).status_code == reads
        assert (await client.get(path)).status_code == reads
        for method, target, body in (("POST", f"{BASE}/", FILTER), ("PUT", path, {}), ("DELETE", path, None),
                                 ("POST", f"{BASE}/test", {"text": "x"})):  # fmt: skip
            assert (await client.request(method, target, json=body)).status_code == writes


async def test_every_change_is_in_the_audit_log_without_the_keywords(platform: RunningPlatform, tenant: Tenant) -> None:
    content_filter = await create_filter(tenant)
    path = f"{BASE}/{content_filter['id']}"
    await tenant.admin.client.put(path, json={"enabled": False})
    await tenant.admin.client.delete(path)
    for action in ("created", "updated", "deleted"):
        (event,) = await platform.audit(tenant, f"content_filter.{action}")
        assert (event["resource_id"], event["actor_id"]) == (content_filter["id"], str(tenant.admin.id))
        assert event["details"]["name"] == "Project names"
        assert "Falcon" not in str(event)


async def test_the_number_of_keywords_is_limited(tenant: Tenant) -> None:
    words = [f"word{n}" for n in range(1_000)]
    many = {"keywords": words}
    for _ in range(10):
        last = await create_filter(tenant, config=many)
    answer = await tenant.admin.client.post(f"{BASE}/", json=FILTER)
    assert (answer.status_code, "maximum number" in answer.json()["detail"]) == (409, True)
    answer = await tenant.admin.client.put(f"{BASE}/{last['id']}", json={"config": {"keywords": words[:998]}})
    assert answer.status_code == 200
    await create_filter(tenant)


async def test_filters_can_be_tested(platform: RunningPlatform, tenant: Tenant) -> None:
    group_id = await group_of(tenant)
    words = await create_filter(tenant)
    own = await create_filter(
        tenant, name="Own", scope="group", group_id=group_id, priority=1, config={"keywords": ["eagle"]}
    )
    result = await create_filter(
        tenant, name="Tone", filter_type="custom_instruction", config={"instruction": "Be brief."}, priority=0
    )
    await create_filter(tenant, name="Off", enabled=False, config={"keywords": ["sparrow"]})

    async def evaluate(text: str, **more: Any) -> dict[str, Any]:
        answer = await tenant.admin.client.post(f"{BASE}/test", json={"text": text, **more})
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body

    assert await evaluate("eagle, sparrow") == {
        "blocked": False, "blocked_by": None, "filters_evaluated": 2, "failed": [], "failure": None,
        "instructions": [{"id": result["id"], "name": "Tone", "instruction": "Be brief."}],
    }  # fmt: skip
    blocked = {"id": words["id"], "name": "Project names", "filter_type": "keyword_block"}
    assert (await evaluate("Project\tX"))["blocked_by"] == blocked
    both = await evaluate("falcon and eagle", group_id=group_id)
    assert (both["blocked_by"]["id"], both["filters_evaluated"]) == (own["id"], 3)
    answer = await tenant.admin.client.post(f"{BASE}/test", json={"text": "x", "group_id": str(uuid4())})
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (400, ["body", "group_id"])
    assert platform.sql("SELECT count(*) FROM dlp_events WHERE tenant_id = %s", [tenant.id]) == [(0,)]

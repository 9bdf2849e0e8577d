"""The model registry in both variants (docs/model-registry.md)."""

from datetime import UTC, date, datetime, time, timedelta
from itertools import product
from typing import Any, get_args
from uuid import uuid4

import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.platform.governance.model_registry.schemas import Status

BASE = "/api/admin/models"
A, B = {"X-API-Variant": "a"}, {"X-API-Variant": "b"}
CHAT = {"model": "sandbox/echo", "messages": [{"role": "user", "content": "hi"}]}
#: Permitted changes of the status (docs/model-registry.md, Validation). `unclassified` permits the same change as
#: `draft`.
PERMITTED = {
    ("draft", "pending_validation"), ("unclassified", "pending_validation"), ("pending_validation", "in_validation"),
    ("in_validation", "validated"), ("in_validation", "needs_remediation"), ("in_validation", "deprecated"),
    ("needs_remediation", "validated"), ("needs_remediation", "in_validation"), ("validated", "deprecated"),
}  # fmt: skip
STATUSES = get_args(Status)


def body(**fields: Any) -> dict[str, Any]:
    return {"provider": "openai", "model_id": "gpt-4o", **fields}


async def create_entry(tenant: Tenant, headers: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(BASE, json=body(**fields), headers=headers)
    assert answer.status_code == 201, answer.text
    entry: dict[str, Any] = answer.json()
    return entry


def insert_usage(
    platform: RunningPlatform, tenant: Tenant, model_id: str, requests: int, day: date, provider: str = "openai"
) -> None:
    """Insert a usage record in the format of the keeper."""
    moment = datetime.combine(day, time(12), UTC)
    platform.sql(
        "INSERT INTO model_days (tenant_id, provider, model_id, day, requests, first_at, last_at)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s)",
        [tenant.id, provider, model_id, day, requests, moment, moment],
    )


# entries -------------------------------------------------------------------------------------------------------------


async def test_a_new_entry_has_the_documented_fields(platform: RunningPlatform, tenant: Tenant) -> None:
    entry = await create_entry(tenant)
    assert entry == {
        "id": entry["id"], "model_id": "gpt-4o", "provider": "openai", "display_name": "gpt-4o",
        "risk_tier": "unclassified", "validation_status": "draft", "owner": None, "description": None, "tags": [],
        "request_count_30d": 0, "first_seen_at": None, "last_seen_at": None, "tenant_id": str(tenant.id),
        "created_at": entry["created_at"], "updated_at": entry["created_at"],
    }  # fmt: skip
    assert (await tenant.auditor.client.get(f"{BASE}/{entry['id']}")).json() == entry
    (event,) = await platform.audit(tenant, "registered_model.created")
    assert (event["resource_id"], event["target_provider"], event["target_model"]) == (entry["id"], "openai", "gpt-4o")
    assert event["details"]["risk_tier"] == "unclassified"


async def test_every_field_can_be_set(tenant: Tenant) -> None:
    value = body(
        display_name="GPT-4o", risk_tier="tier_1", validation_status="unclassified", owner="Model risk",
        description="Answers customers", tags={"team": "payments"},
    )  # fmt: skip
    answer = await tenant.admin.client.post(BASE, json=value, headers=B)
    assert answer.status_code == 201, answer.text
    assert value.items() <= answer.json().items()


async def test_variant_b_requires_a_tier(tenant: Tenant) -> None:
    for tier in ({}, {"risk_tier": None}, {"risk_tier": "unclassified"}):
        answer = await tenant.admin.client.post(BASE, json=body(**tier), headers=B)
        assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
        assert answer.json()["details"][0]["field"] == "risk_tier"
    assert (await create_entry(tenant, B, risk_tier="tier_4"))["risk_tier"] == "tier_4"


async def test_provider_and_model_are_unique_in_variant_a_and_the_model_in_variant_b(
    tenant: Tenant, other_tenant: Tenant
) -> None:
    await create_entry(tenant, A)
    await create_entry(other_tenant, A)
    again = await tenant.admin.client.post(BASE, json=body(), headers=A)
    assert (again.status_code, again.json()["error"]) == (409, "model_already_exists")
    other_provider = body(provider="hosted", risk_tier="tier_2")
    refused = await tenant.admin.client.post(BASE, json=other_provider, headers=B)
    assert (refused.status_code, refused.json()["error"]) == (409, "model_already_exists")
    # The conflict concerns only the id, so the message does not name the provider.
    assert "hosted" not in refused.json()["message"]
    assert (await tenant.admin.client.post(BASE, json=other_provider, headers=A)).status_code == 201


@pytest.mark.parametrize("tags", [["prod", "a"], {"prod": "", "a": ""}])
async def test_tags_are_a_list_in_a_and_an_object_in_b(tenant: Tenant, tags: Any) -> None:
    entry = await create_entry(tenant, tags=tags)
    path = f"{BASE}/{entry['id']}"
    assert (await tenant.admin.client.get(path, headers=A)).json()["tags"] == ["prod", "a"]
    assert (await tenant.admin.client.get(path, headers=B)).json()["tags"] == {"prod": "", "a": ""}


async def test_an_update_replaces_all_tags(tenant: Tenant) -> None:
    entry = await create_entry(tenant, B, risk_tier="tier_1", tags={"team": "payments", "stage": "pilot"})
    changed = await tenant.admin.client.put(f"{BASE}/{entry['id']}", json={"tags": {"stage": "live"}}, headers=B)
    assert changed.json()["tags"] == {"stage": "live"}


async def test_an_update_changes_only_the_named_fields(platform: RunningPlatform, tenant: Tenant) -> None:
    entry = await create_entry(tenant, owner="Ada", display_name="GPT", description="x")
    path = f"{BASE}/{entry['id']}"
    sent = {"risk_tier": "tier_2", "owner": None, "display_name": None, "description": "x", "provider": "openai"}
    changed = (await tenant.admin.client.put(path, json=sent)).json()
    assert changed == {
        **entry, "risk_tier": "tier_2", "owner": None, "display_name": "gpt-4o", "updated_at": changed["updated_at"],
    }  # fmt: skip
    assert changed["updated_at"] > entry["updated_at"]
    (event,) = await platform.audit(tenant, "registered_model.updated")
    assert event["details"] == {
        "changes": {
            "risk_tier": {"old": "unclassified", "new": "tier_2"},
            "owner": {"old": "Ada", "new": None},
            "display_name": {"old": "GPT", "new": None},
        }
    }
    assert (await tenant.admin.client.put(path, json=sent)).json() == changed
    assert len(await platform.audit(tenant, "registered_model.updated")) == 1


@pytest.mark.parametrize("field", ["model_id", "provider"])
@pytest.mark.parametrize(("headers", "status"), [(A, 422), (B, 400)])
async def test_model_and_provider_cannot_be_changed(
    tenant: Tenant, field: str, headers: dict[str, str], status: int
) -> None:
    entry = await create_entry(tenant)
    answer = await tenant.admin.client.put(f"{BASE}/{entry['id']}", json={field: "other"}, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (status, "validation_error")
    assert answer.json()["details"][0]["field"] == field


async def test_a_deleted_entry_is_not_found_and_its_events_keep_the_name(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    entry = await create_entry(tenant)
    path = f"{BASE}/{entry['id']}"
    assert (await tenant.admin.client.delete(path)).status_code == 204
    missing = await tenant.admin.client.get(path)
    assert (missing.status_code, missing.json()["error"]) == (404, "model_not_found")
    (event,) = await platform.audit(tenant, "registered_model.deleted")
    assert (event["target_provider"], event["target_model"]) == ("openai", "gpt-4o")


# states --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("old", "new"), [pair for pair in product(STATUSES, STATUSES) if pair[0] != pair[1]])
async def test_a_status_changes_only_as_permitted(
    platform: RunningPlatform, tenant: Tenant, old: str, new: str
) -> None:
    entry = await create_entry(tenant)
    platform.sql("UPDATE registered_models SET validation_status = %s WHERE id = %s", [old, entry["id"]])
    answer = await tenant.admin.client.put(f"{BASE}/{entry['id']}", json={"validation_status": new}, headers=B)
    events = await platform.audit(tenant, "registered_model.updated")
    if (old, new) in PERMITTED:
        assert (answer.status_code, answer.json()["validation_status"]) == (200, new)
        (event,) = events
        changes = {"validation_status": {"old": old, "new": new}}
        assert event["details"] == {"changes": changes, "old_status": old, "new_status": new}
        assert event["actor_id"] == str(tenant.admin.id)
    else:
        assert (answer.status_code, answer.json()["error"]) == (422, "invalid_status_transition")
        assert events == []


async def test_a_forbidden_status_change_changes_nothing_else(tenant: Tenant) -> None:
    entry = await create_entry(tenant)
    path = f"{BASE}/{entry['id']}"
    answer = await tenant.admin.client.put(path, json={"owner": "Ada", "validation_status": "validated"})
    assert answer.json()["message"] == (
        "validation_status: draft cannot become validated; permitted: pending_validation."
    )
    assert (await tenant.admin.client.get(path)).json() == entry


async def test_setting_the_current_status_changes_nothing(tenant: Tenant) -> None:
    entry = await create_entry(tenant)
    answer = await tenant.admin.client.put(f"{BASE}/{entry['id']}", json={"validation_status": "draft"})
    assert (answer.status_code, answer.json()) == (200, entry)


@pytest.mark.parametrize("status", [status for status in STATUSES if status not in {"draft", "unclassified"}])
async def test_an_entry_starts_as_draft_or_unclassified(tenant: Tenant, status: str) -> None:
    answer = await tenant.admin.client.post(BASE, json=body(validation_status=status))
    assert (answer.status_code, answer.json()["details"][0]["field"]) == (422, "validation_status")


# lists ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("headers", "name"), [(A, "items"), (B, "models")])
async def test_the_list_is_newest_first_in_the_variants_envelope(
    tenant: Tenant, other_tenant: Tenant, headers: dict[str, str], name: str
) -> None:
    entries = [(await create_entry(tenant, model_id=f"m-{number}"))["id"] for number in range(3)]
    await create_entry(other_tenant)
    body = (await tenant.auditor.client.get(BASE, headers=headers)).json()
    assert set(body) == {name, "total", "limit", "offset"}
    assert ([entry["id"] for entry in body[name]], body["total"]) == (entries[::-1], 3)
    assert (body["limit"], body["offset"]) == (50, 0)
    part = (await tenant.auditor.client.get(BASE, params={"limit": 1, "offset": 1}, headers=headers)).json()
    assert ([entry["id"] for entry in part[name]], part["total"]) == ([entries[1]], 3)


@pytest.mark.parametrize(
    ("headers", "limit", "status"), [(A, 500, 200), (A, 501, 422), (B, 200, 200), (B, 201, 400), (B, 0, 400)]
)
async def test_the_list_has_the_limits_of_the_variant(
    tenant: Tenant, headers: dict[str, str], limit: int, status: int
) -> None:
    answer = await tenant.admin.client.get(BASE, params={"limit": limit}, headers=headers)
    assert answer.status_code == status
    if status != 200:
        assert answer.json()["details"][0]["field"] == "limit"


@pytest.mark.parametrize(
    ("headers", "query", "expected"),
    [
        (A, {"risk_tier": "tier_1"}, {"gpt-4o"}),
        (A, {"risk_tier": "unclassified"}, {"claude-x"}),
        (A, {"validation_status": "unclassified"}, {"claude-x"}),
        (A, {"provider": "openai"}, {"gpt-4o"}),
        (A, {"provider": "OpenAI"}, set()),
        (A, {"provider": "open"}, set()),
        (B, {"provider": "OPEN"}, {"gpt-4o"}),
        (A, {"search": "GPT"}, {"gpt-4o"}),
        (A, {"search": "sonn"}, {"claude-x"}),
        (B, {"search": "customers"}, {"claude-x"}),
        (B, {"search": "%"}, set()),
        (B, {"search": "claude", "risk_tier": "tier_1"}, set()),
    ],
)
async def test_the_list_is_filtered(
    tenant: Tenant, headers: dict[str, str], query: dict[str, str], expected: set[str]
) -> None:
    await create_entry(tenant, risk_tier="tier_1")
    await create_entry(
        tenant, provider="anthropic", model_id="claude-x", validation_status="unclassified", display_name="Sonnet",
        description="For Customers",
    )  # fmt: skip
    body = (await tenant.admin.client.get(BASE, params=query, headers=headers)).json()
    listed = body["items" if headers is A else "models"]
    assert ({entry["model_id"] for entry in listed}, body["total"]) == (expected, len(expected))


async def test_calls_of_the_last_thirty_days_are_counted(platform: RunningPlatform, tenant: Tenant) -> None:
    entry = await create_entry(tenant)
    today = datetime.now(UTC).date()
    for days, model, records in [(0, "gpt-4o", 3), (29, "gpt-4o", 4), (30, "gpt-4o", 100), (0, "other", 50)]:
        insert_usage(platform, tenant, model, records, today - timedelta(days=days))
    shown = (await tenant.admin.client.get(f"{BASE}/{entry['id']}")).json()
    assert shown["request_count_30d"] == 7
    first, last = today - timedelta(days=30), today
    assert (shown["first_seen_at"][:10], shown["last_seen_at"][:10]) == (str(first), str(last))
    (listed,) = (await tenant.admin.client.get(BASE, headers=A)).json()["items"]
    assert listed["request_count_30d"] == 7


async def test_the_catalog_keeps_its_own_path_and_format(tenant: Tenant) -> None:
    for path in (f"{BASE}/catalog", f"{BASE}/catalog/"):
        assert "per_page" in (await tenant.admin.client.get(path, headers=A)).json()
    assert (await tenant.admin.client.get(f"{BASE}/catalog/{uuid4()}")).json() == {"detail": "Model config not found"}


# effect on requests --------------------------------------------------------------------------------------------------


async def test_policy_rules_use_a_registry_change_from_the_response_on(tenant: Tenant) -> None:
    client = tenant.admin.client
    assert (await client.put("/api/admin/providers/sandbox/credentials", json={})).status_code == 200
    entry: dict[str, Any] = {"provider": "sandbox", "model_id": "echo"}
    assert (await client.post(f"{BASE}/catalog/", json=entry)).status_code == 201
    rule = {"name": "No critical models", "condition": 'model_risk_tier == "tier_1"', "action": "BLOCK"}
    assert (await client.post("/api/admin/policies", json=rule)).status_code == 201

    async def chat() -> int:
        return (await tenant.user.client.post("/v1/chat/completions", json=CHAT)).status_code

    assert await chat() == 200
    registered = await create_entry(tenant, **entry, risk_tier="tier_1")
    assert await chat() == 403
    await client.put(f"{BASE}/{registered['id']}", json={"risk_tier": "tier_3"})
    assert await chat() == 200
    await client.put(f"{BASE}/{registered['id']}", json={"risk_tier": "tier_1"})
    assert await chat() == 403
    await client.delete(f"{BASE}/{registered['id']}")
    assert await chat() == 200


# permissions and input -----------------------------------------------------------------------------------------------


def calls(entry_id: object) -> list[tuple[str, str, Any]]:
    path = f"{BASE}/{entry_id}"
    return [("GET", path, None), ("PUT", path, {"owner": "Eve"}), ("DELETE", path, None)]


async def test_users_cannot_read_the_registry_and_auditors_cannot_change_it(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    entry = await create_entry(tenant)
    for method, path, sent in [("GET", BASE, None), ("POST", BASE, body(model_id="x")), *calls(entry["id"])]:
        assert (await platform.anonymous.request(method, path, json=sent)).status_code == 401
        assert (await tenant.user.client.request(method, path, json=sent)).status_code == 403
        expected = 200 if method == "GET" else 403
        assert (await tenant.auditor.client.request(method, path, json=sent)).status_code == expected


async def test_another_organizations_entry_is_not_found(tenant: Tenant, other_tenant: Tenant) -> None:
    theirs = await create_entry(other_tenant)
    for entry_id in (theirs["id"], uuid4()):
        for method, path, sent in calls(entry_id):
            answer = await tenant.admin.client.request(method, path, json=sent)
            assert (answer.status_code, answer.json()["error"]) == (404, "model_not_found")
    assert (await other_tenant.admin.client.get(f"{BASE}/{theirs['id']}")).json() == theirs


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"model_id": None}, "model_id"),
        ({"model_id": "two words"}, "model_id"),
        ({"provider": "a/b"}, "provider"),
        ({"provider": ""}, "provider"),
        ({"risk_tier": "tier_5"}, "risk_tier"),
        ({"validation_status": "done"}, "validation_status"),
        ({"display_name": ""}, "display_name"),
        ({"owner": "two\nlines"}, "owner"),
        ({"description": "x" * 2_001}, "description"),
        ({"tags": [1]}, "tags"),
        ({"tags": {"a": 1}}, "tags.a"),
        ({"tags": "prod"}, "tags"),
        ({"tags": [str(number) for number in range(101)]}, "tags"),
        ({"unknown": 1}, "unknown"),
    ],
)
@pytest.mark.parametrize(("headers", "status"), [(A, 422), (B, 400)])
async def test_bad_input_names_the_field(
    tenant: Tenant, headers: dict[str, str], status: int, fields: dict[str, Any], field: str
) -> None:
    answer = await tenant.admin.client.post(BASE, json=body(**{"risk_tier": "tier_1", **fields}), headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (status, "validation_error")
    assert answer.json()["details"][0]["field"] == field


@pytest.mark.parametrize("query", [{"risk_tier": "high"}, {"validation_status": "done"}, {"offset": -1}])
@pytest.mark.parametrize(("headers", "status"), [(A, 422), (B, 400)])
async def test_a_bad_filter_names_the_parameter(
    tenant: Tenant, headers: dict[str, str], status: int, query: dict[str, Any]
) -> None:
    answer = await tenant.admin.client.get(BASE, params=query, headers=headers)
    assert (answer.status_code, answer.json()["details"][0]["field"]) == (status, next(iter(query)))

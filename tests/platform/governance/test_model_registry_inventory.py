"""Discovery of models and export of the inventory, in both variants (docs/model-registry.md)."""

import csv
import io
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.platform.governance.model_registry import service
from gatehouse.platform.governance.model_registry.tiers import infer_tier

BASE = "/api/admin/models"
DISCOVER = f"{BASE}/discover"
EXPORT = "/api/admin/model-inventory-export"
A, B = {"X-API-Variant": "a"}, {"X-API-Variant": "b"}
TODAY = datetime.now(UTC).date()


def insert_usage(
    platform: RunningPlatform, tenant: Tenant, model_id: str, *, days_ago: int = 0, requests: int = 1,
    provider: str = "openai",
) -> datetime:  # fmt: skip
    """Insert a usage record in the format of the keeper and return the time of the call."""
    day = TODAY - timedelta(days=days_ago)
    moment = datetime.combine(day, time(), UTC)
    platform.sql(
        "INSERT INTO model_days (tenant_id, provider, model_id, day, requests, first_at, last_at)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s)",
        [tenant.id, provider, model_id, day, requests, moment, moment],
    )
    return moment


async def create_entry(tenant: Tenant, **fields: Any) -> dict[str, Any]:
    body = {"provider": "openai", "model_id": "gpt-4o", "risk_tier": "tier_2", **fields}
    answer = await tenant.admin.client.post(BASE, json=body, headers=B)
    assert answer.status_code == 201, answer.text
    entry: dict[str, Any] = answer.json()
    return entry


async def discover(tenant: Tenant, headers: dict[str, str], **body: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(DISCOVER, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    response_body: dict[str, Any] = answer.json()
    return response_body


# discovery -----------------------------------------------------------------------------------------------------------


async def test_called_models_that_are_not_registered_become_drafts(platform: RunningPlatform, tenant: Tenant) -> None:
    await create_entry(tenant)
    insert_usage(platform, tenant, "gpt-4o", requests=3)
    first = insert_usage(platform, tenant, "gpt-4o-mini", days_ago=40, requests=100)
    last = insert_usage(platform, tenant, "gpt-4o-mini", requests=2)
    discovery = await discover(tenant, A)
    assert (discovery["discovered"], discovery["created"], discovery["existing"], discovery["dry_run"]) == (
        2,
        1,
        1,
        False,
    )
    old, new = discovery["models"]
    assert (old["model_id"], old["status"], old["risk_tier"]) == ("gpt-4o", "existing", "tier_2")
    assert {**new, "first_seen_at": new["first_seen_at"][:10], "last_seen_at": new["last_seen_at"][:10]} == {
        "model_id": "gpt-4o-mini", "provider": "openai", "status": "created", "risk_tier": "unclassified",
        "validation_status": "draft", "request_count_30d": 2, "first_seen_at": str(first.date()),
        "last_seen_at": str(last.date()),
    }  # fmt: skip
    (entry,) = (await tenant.auditor.client.get(BASE, params={"search": "mini"}, headers=A)).json()["items"]
    assert {name: entry[name] for name in new if name != "status"} == {
        name: value for name, value in new.items() if name != "status"
    }
    (event,) = [
        record
        for record in await platform.audit(tenant, "registered_model.created")
        if "discovered" in record["details"]
    ]
    assert (event["resource_id"], event["target_provider"], event["target_model"]) == (
        entry["id"], "openai", "gpt-4o-mini",
    )  # fmt: skip
    assert event["details"] == {"risk_tier": "unclassified", "validation_status": "draft", "discovered": True}
    again = await discover(tenant, A)
    assert (again["created"], again["existing"]) == (0, 2)


async def test_a_dry_run_reports_the_drafts_and_stores_nothing(platform: RunningPlatform, tenant: Tenant) -> None:
    insert_usage(platform, tenant, "gpt-4o")
    discovery = await discover(tenant, A, dry_run=True, auto_assign_tier=True)
    assert (discovery["discovered"], discovery["created"], discovery["existing"], discovery["dry_run"]) == (
        1,
        0,
        0,
        True,
    )
    (model,) = discovery["models"]
    assert (model["status"], model["risk_tier"]) == ("created", "tier_2")
    assert (await tenant.admin.client.get(BASE, headers=A)).json()["total"] == 0
    assert await platform.audit(tenant, "registered_model.created") == []


@pytest.mark.parametrize(
    ("headers", "body", "tiers"),
    [
        (A, {}, ("unclassified", "unclassified")),
        (A, {"auto_assign_tier": False}, ("unclassified", "unclassified")),
        (A, {"auto_assign_tier": True}, ("tier_3", "unclassified")),
        (B, {}, ("tier_4", "tier_4")),
        (B, {"auto_assign_tier": "tier_1"}, ("tier_1", "tier_1")),
        (A, {"auto_assign_tier": "tier_3"}, ("tier_3", "tier_3")),
    ],
)
async def test_tiers_are_assigned_as_requested(
    platform: RunningPlatform, tenant: Tenant, headers: dict[str, str], body: dict[str, Any], tiers: tuple[str, str]
) -> None:
    insert_usage(platform, tenant, "claude-3-haiku-20240307", provider="anthropic")
    insert_usage(platform, tenant, "in-house-7", provider="own")
    discovery = await discover(tenant, headers, **body)
    assert tuple(model["risk_tier"] for model in discovery["models"]) == tiers


@pytest.mark.parametrize(
    ("model_id", "tier"),
    [
        ("gpt-4o", "tier_2"), ("gpt-4o-mini-2024-07-18", "tier_3"), ("GPT-4.1-nano", "tier_3"), ("o3", "tier_2"),
        ("text-embedding-3-large", "tier_4"), ("claude-opus-4", "tier_2"), ("claude-3-5-haiku-latest", "tier_3"),
        ("gemini-2.5-pro", "tier_2"), ("gemini-2.5-flash", "tier_3"), ("mistral-large-latest", "tier_2"),
        ("anthropic.claude-3-haiku-20240307-v1:0", "tier_3"), ("amazon.titan-embed-text-v2:0", "tier_4"),
        ("my-gpt-4", "unclassified"), ("", "unclassified"),
    ],
)  # fmt: skip
def test_the_longest_matching_prefix_sets_the_tier(model_id: str, tier: str) -> None:
    assert infer_tier(model_id) == tier


@pytest.mark.parametrize(("lookback", "count"), [(1, 1), (7, 1), (8, 2), (365, 2)])
async def test_discovery_looks_back_the_requested_number_of_days(
    platform: RunningPlatform, tenant: Tenant, lookback: int, count: int
) -> None:
    insert_usage(platform, tenant, "today")
    insert_usage(platform, tenant, "last-week", days_ago=7)
    assert (await discover(tenant, A, lookback_days=lookback))["discovered"] == count


async def test_without_a_body_the_defaults_apply(platform: RunningPlatform, tenant: Tenant) -> None:
    insert_usage(platform, tenant, "gpt-4o", days_ago=29)
    insert_usage(platform, tenant, "gpt-4", days_ago=30)
    answer = await tenant.admin.client.post(DISCOVER, headers=A)
    assert [model["model_id"] for model in answer.json()["models"]] == ["gpt-4o"]


async def test_calls_of_another_organization_are_not_discovered(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    insert_usage(platform, other_tenant, "gpt-4o")
    assert (await discover(tenant, A))["models"] == []


async def test_a_full_registry_accepts_no_more_entries(
    platform: RunningPlatform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_MODELS", 1)
    insert_usage(platform, tenant, "one")
    insert_usage(platform, tenant, "two")
    answer = await tenant.admin.client.post(DISCOVER, json={}, headers=A)
    assert (answer.status_code, answer.json()["error"]) == (409, "too_many_models")
    assert (await tenant.admin.client.get(BASE, headers=A)).json()["total"] == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"lookback_days": 0}, "lookback_days"),
        ({"lookback_days": 366}, "lookback_days"),
        ({"dry_run": "false"}, "dry_run"),
        ({"auto_assign_tier": "tier_9"}, "auto_assign_tier"),
        ({"unknown": 1}, "unknown"),
    ],
)
@pytest.mark.parametrize(("headers", "status"), [(A, 422), (B, 400)])
async def test_bad_input_names_the_field(
    tenant: Tenant, headers: dict[str, str], status: int, body: dict[str, Any], field: str
) -> None:
    answer = await tenant.admin.client.post(DISCOVER, json=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (status, "validation_error")
    (fault,) = answer.json()["details"]
    assert fault["field"] == field


async def test_auditors_can_export_but_not_discover(platform: RunningPlatform, tenant: Tenant) -> None:
    for method, path, auditors in (("POST", DISCOVER, 403), ("GET", EXPORT, 200)):
        assert (await platform.anonymous.request(method, path)).status_code == 401
        assert (await tenant.user.client.request(method, path)).status_code == 403
        assert (await tenant.auditor.client.request(method, path)).status_code == auditors


# export --------------------------------------------------------------------------------------------------------------


def csv_rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


async def test_variant_a_exports_json_and_its_own_csv(platform: RunningPlatform, tenant: Tenant) -> None:
    entry = await create_entry(tenant, owner="Ada", description='two\nlines, "quoted"', tags={"x": "", "y": "1"})
    moment = insert_usage(platform, tenant, "gpt-4o", requests=5)
    answer = await tenant.auditor.client.get(EXPORT, headers=A)
    assert answer.headers["content-type"] == "application/json"
    shown = (await tenant.auditor.client.get(f"{BASE}/{entry['id']}", headers=A)).json()
    assert answer.json() == [shown]
    answer = await tenant.auditor.client.get(EXPORT, params={"format": "csv"}, headers=A)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="model-inventory.csv"'
    assert answer.text.splitlines()[0] == (
        "id,model_id,provider,display_name,risk_tier,validation_status,owner,description,tags,request_count_30d,"
        "first_seen_at,created_at,updated_at"
    )
    (row,) = csv_rows(answer.text)
    assert row == {
        "id": entry["id"], "model_id": "gpt-4o", "provider": "openai", "display_name": "gpt-4o", "risk_tier": "tier_2",
        "validation_status": "draft", "owner": "Ada", "description": 'two\nlines, "quoted"', "tags": "x|y",
        "request_count_30d": "5", "first_seen_at": shown["first_seen_at"], "created_at": entry["created_at"],
        "updated_at": entry["updated_at"],
    }  # fmt: skip
    assert datetime.fromisoformat(row["first_seen_at"]) == moment


async def test_variant_b_exports_a_csv_with_a_date_or_the_json_of_its_list(tenant: Tenant) -> None:
    entry = await create_entry(tenant, tags={"team": "payments", "ä": ""})
    answer = await tenant.admin.client.get(EXPORT, headers=B)
    assert answer.headers["content-disposition"] == f'attachment; filename="model-inventory-{TODAY}.csv"'
    assert answer.text.splitlines()[0].split(",")[8:] == ["tags", "last_seen_at", "created_at", "updated_at"]
    (row,) = csv_rows(answer.text)
    assert (row["tags"], row["last_seen_at"]) == ('{"team": "payments", "ä": ""}', "")
    body = (await tenant.admin.client.get(EXPORT, params={"format": "json"}, headers=B)).json()
    assert body == (await tenant.admin.client.get(BASE, headers=B)).json()["models"]
    assert body[0]["id"] == entry["id"]


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)"])
async def test_no_cell_of_a_csv_is_a_formula(tenant: Tenant, cell: str) -> None:
    await create_entry(tenant, display_name=cell, owner=cell, description=cell, model_id=cell, tags={cell: ""})
    (row,) = csv_rows((await tenant.admin.client.get(EXPORT, params={"format": "csv"}, headers=A)).text)
    for column in ("model_id", "display_name", "owner", "description", "tags"):
        assert row[column] == f"'{cell}"


@pytest.mark.parametrize(
    ("headers", "query", "expected"),
    [
        (A, {"risk_tier": "tier_1"}, ["claude-x"]),
        (A, {"validation_status": "draft"}, ["claude-x", "gpt-4o"]),
        (A, {"provider": "openai"}, ["gpt-4o"]),
        ({}, {"provider": "openai"}, ["gpt-4o"]),
        (B, {"risk_tier": "tier_2", "format": "json"}, ["gpt-4o"]),
        (B, {"provider": "ANTHRO", "format": "json"}, ["claude-x"]),
    ],
)
async def test_the_export_is_filtered(
    tenant: Tenant, headers: dict[str, str], query: dict[str, str], expected: list[str]
) -> None:
    await create_entry(tenant)
    await create_entry(tenant, provider="anthropic", model_id="claude-x", risk_tier="tier_1")
    answer = await tenant.admin.client.get(EXPORT, params=query, headers=headers)
    assert [entry["model_id"] for entry in answer.json()] == expected


@pytest.mark.parametrize("query", [{"format": "xlsx"}, {"risk_tier": "high"}, {"validation_status": "done"}])
@pytest.mark.parametrize(("headers", "status"), [(A, 422), (B, 400)])
async def test_a_bad_parameter_is_named(
    tenant: Tenant, headers: dict[str, str], status: int, query: dict[str, str]
) -> None:
    answer = await tenant.admin.client.get(EXPORT, params=query, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (status, "validation_error")
    assert answer.json()["details"][0]["field"] == next(iter(query))


async def test_a_large_export_is_complete_and_has_no_foreign_entries(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    await create_entry(other_tenant)
    platform.sql(
        "INSERT INTO registered_models (id, tenant_id, model_id, provider)"
        " SELECT gen_random_uuid(), %s, 'm-' || n, 'p' FROM generate_series(1, 2500) n",
        [tenant.id],
    )
    rows = csv_rows((await tenant.admin.client.get(EXPORT, headers=B)).text)
    assert len({row["model_id"] for row in rows}) == len(rows) == 2500

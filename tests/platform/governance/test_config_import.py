"""Import of an outpost's configuration into an organization (docs/moving-to-the-cloud.md)."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx2
import psycopg
import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.detection.catalog import BUILT_IN

RULE = {
    "id": str(uuid4()), "name": "Cards", "detector_type": "regex", "entity_type": "credit_card", "action": "block",
    "threshold": 0.5, "pattern": None, "context": [], "entities": [], "labels": [], "label_threshold": 0.5,
    "reversible": False,
}  # fmt: skip
PATTERN = {
    **RULE, "id": str(uuid4()), "name": "Employee numbers", "entity_type": "employee_id", "action": "redact",
    "pattern": "EMP-[0-9]{6}", "context": ["employee"], "threshold": 0.7,
}  # fmt: skip
FILTER = {
    "id": str(uuid4()), "name": "Projects", "filter_type": "keyword_block", "priority": 10, "group_id": None,
    "keywords": ["Project Falcon"], "topics": [], "threshold": 0.5, "instruction": None,
}  # fmt: skip
BUNDLE = {
    "id": str(uuid4()), "name": "Card data", "entity_types": ["credit_card"], "framework": "PCI-DSS",
    "version": "4.0.1",
}  # fmt: skip
STANDARD = [pattern.id for pattern in BUILT_IN]


def document(**parts: Any) -> dict[str, Any]:
    return {
        "version": "1.0", "exported_at": "2026-01-01T00:00:00Z", "outpost_id": str(uuid4()), "policy_version": 7,
        "patterns": [item for item in STANDARD if item != "email"], "dlp_rules": [RULE], "custom_patterns": [PATTERN],
        "suppressions": ["email"], "group_overrides": {}, "compliance_bundles": [BUNDLE], "content_filters": [FILTER],
        "overrides": {"disabled": {}, "routes": {}}, **parts,
    }  # fmt: skip


@pytest.fixture
async def portal(platform: RunningPlatform) -> httpx2.AsyncClient:
    return await platform.new_m2m(None, "admin:write")


def path(tenant: Tenant) -> str:
    return f"/v1/platform/tenants/{tenant.id}/config-import"


async def import_config(
    client: httpx2.AsyncClient, tenant: Tenant, config: dict[str, Any], **more: Any
) -> dict[str, Any]:
    answer = await client.post(path(tenant), json={"config": config, **more})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def resource_names(tenant: Tenant) -> dict[str, list[str]]:
    """Names of the organization's resources, as its administrator sees them."""
    lists = {
        "dlp_rules": ("/api/admin/dlp-rules/", "detector_name"),
        "custom_patterns": ("/api/admin/dlp-rules/custom-patterns", "name"),
        "suppressions": ("/api/admin/dlp-rules/suppressions", "pattern_id"),
        "compliance_bundles": ("/api/admin/compliance-bundles", "name"),
        "content_filters": ("/api/admin/content-filters/", "name"),
    }
    results = {}
    for part, (address, name) in lists.items():
        answer = await tenant.admin.client.get(address)
        assert answer.status_code == 200, (address, answer.text)
        body = answer.json()
        rows = body if isinstance(body, list) else body.get("items") or body.get("bundles") or []
        results[part] = [row[name] for row in rows]
    return results


ALL = {
    "dlp_rules": ["Cards"],
    "custom_patterns": ["Employee numbers"],
    "suppressions": ["email"],
    "compliance_bundles": ["Card data"],
    "content_filters": ["Projects"],
}
NOTHING: dict[str, list[str]] = {part: [] for part in ALL}


async def test_an_imported_configuration_takes_effect(
    platform: RunningPlatform, portal: httpx2.AsyncClient, tenant: Tenant
) -> None:
    report = await import_config(portal, tenant, document())
    assert {part: [item["name"] for item in report["imported"] if item["part"] == part] for part in ALL} == ALL
    assert (report["standard_patterns"], len(STANDARD)) == (75, 76)
    assert (report["missing_patterns"], report["errors"], report["dry_run"]) == ([], [], False)
    assert await resource_names(tenant) == ALL
    text = "employee EMP-123456, 4111 1111 1111 1111, a@example.com"
    body = (await tenant.admin.client.post("/api/admin/dlp-rules/evaluate", json={"text": text})).json()
    assert body["final_action"] == "block"
    assert {(rule["rule_name"], rule["action_tier"]) for rule in body["matched_rules"]} == {
        ("Cards", "block"),
        ("Employee numbers", "redact"),
    }
    assert body["suppressed_rule_ids"] == ["email"]
    (event,) = await platform.audit(tenant, "config.imported")
    assert (event["details"]["imported"], event["details"]["errors"]) == (5, 0)
    assert "EMP-" not in str(event)
    assert await platform.audit(tenant, "dlp_custom_pattern.created")


async def test_a_dry_run_reports_the_same_and_stores_nothing(
    platform: RunningPlatform, portal: httpx2.AsyncClient, tenant: Tenant
) -> None:
    dry = await import_config(portal, tenant, document(), dry_run=True)
    assert await resource_names(tenant) == NOTHING
    assert await platform.audit(tenant, "config.imported") == []
    assert await platform.audit(tenant, "dlp_rule.created") == []
    assert dry == {**await import_config(portal, tenant, document()), "dry_run": True}


async def test_a_second_import_changes_nothing(portal: httpx2.AsyncClient, tenant: Tenant) -> None:
    await import_config(portal, tenant, document())
    again = await import_config(portal, tenant, document())
    assert again["imported"] == []
    assert {item["part"] for item in again["skipped"]} == set(ALL)
    assert await resource_names(tenant) == ALL


async def test_white_space_around_a_name_is_ignored(portal: httpx2.AsyncClient, tenant: Tenant) -> None:
    config = {
        "version": "1.0",
        "dlp_rules": [{**RULE, "name": " Cards "}],
        "content_filters": [{**FILTER, "name": "\tA"}],
    }
    assert [item["name"] for item in (await import_config(portal, tenant, config))["imported"]] == ["Cards", "A"]
    assert (await import_config(portal, tenant, config))["imported"] == []


async def test_skipped_entries_are_not_audited_as_created(
    platform: RunningPlatform, portal: httpx2.AsyncClient, tenant: Tenant
) -> None:
    report = await import_config(
        portal, tenant, document(compliance_bundles=[BUNDLE, BUNDLE, {**BUNDLE, "name": "Other"}])
    )
    assert [error["where"] for error in report["errors"]] == ["compliance_bundles[1]"]
    events = await platform.audit(tenant, "compliance_bundle.created")
    assert [event["details"]["name"] for event in events] == ["Card data", "Other"]


async def test_an_entry_with_an_existing_name_is_skipped(portal: httpx2.AsyncClient, tenant: Tenant) -> None:
    own = {"name": "Employee numbers", "entity_type": "staff", "pattern": "S-[0-9]{4}", "action_tier": "block"}
    await tenant.admin.client.post("/api/admin/dlp-rules/custom-patterns", json=own)
    report = await import_config(portal, tenant, document())
    assert {(item["part"], item["name"]) for item in report["skipped"]} == {("custom_patterns", "Employee numbers")}
    (row,) = (await tenant.admin.client.get("/api/admin/dlp-rules/custom-patterns")).json()
    assert row["pattern"] == "S-[0-9]{4}"


async def test_undefined_patterns_are_reported_as_missing(portal: httpx2.AsyncClient, tenant: Tenant) -> None:
    by_type = {**RULE, "name": "Badges", "entity_type": "badge_number"}
    config = document(patterns=[*STANDARD, "acme-contract", PATTERN["name"]], dlp_rules=[RULE, by_type])
    report = await import_config(portal, tenant, config)
    assert report["standard_patterns"] == 76
    assert report["missing_patterns"] == ["acme-contract", "badge_number"]
    assert ("dlp_rules", "Badges") in {(item["part"], item["name"]) for item in report["skipped"]}
    assert (await resource_names(tenant))["dlp_rules"] == ["Cards"]


async def test_group_settings_are_imported_if_the_group_exists(portal: httpx2.AsyncClient, tenant: Tenant) -> None:
    group = (await tenant.admin.client.post("/api/admin/groups", json={"name": "Support"})).json()
    unknown_group = str(uuid4())
    config = document(
        group_overrides={
            group["id"]: {"credit_card": "ALLOW", "employee_id": "BLOCK"}, unknown_group: {"email": "ALLOW"}
        },
        content_filters=[
            {**FILTER, "name": "Here", "group_id": group["id"]}, {**FILTER, "name": "There", "group_id": unknown_group}
        ],
    )  # fmt: skip
    report = await import_config(portal, tenant, config)
    overrides = (await tenant.admin.client.get(f"/api/admin/groups/{group['id']}/dlp")).json()
    assert {override["entity_type"]: override["action"] for override in overrides} == {
        "credit_card": "ALLOW",
        "employee_id": "BLOCK",
    }
    assert (await resource_names(tenant))["content_filters"] == ["Here"]
    assert {(item["part"], item["name"]) for item in report["skipped"]} == {
        ("group_overrides", unknown_group),
        ("content_filters", "There"),
    }


FAULTS: list[tuple[str, Any, str]] = [
    ("custom_patterns", [{**PATTERN, "pattern": "EMP-("}], "custom_patterns[0].pattern"),
    ("custom_patterns", [PATTERN, {**PATTERN, "name": "Two", "action": "ignore"}], "custom_patterns[1].action"),
    ("custom_patterns", [{**PATTERN, "threshold": 7}], "custom_patterns[0].threshold"),
    ("custom_patterns", [{**PATTERN, "name": 3}], "custom_patterns[0].name"),
    ("custom_patterns", [{**PATTERN, "pattern": None}], "custom_patterns[0].pattern"),
    ("custom_patterns", [PATTERN, PATTERN], "custom_patterns[1]"),
    ("dlp_rules", [{**RULE, "entity_type": "no type!", "pattern": "a"}], "dlp_rules[0].entity_type"),
    ("dlp_rules", [{**RULE, "detector_type": "llm"}], "dlp_rules[0].labels"),
    ("suppressions", ["email", "email", "no-such-pattern"], "suppressions[2]"),
    ("compliance_bundles", [{**BUNDLE, "framework": "ACME"}], "compliance_bundles[0].framework"),
    ("compliance_bundles", [{**BUNDLE, "entity_types": ["x"]}], "compliance_bundles[0].entity_types.0"),
    ("content_filters", [{**FILTER, "keywords": []}], "content_filters[0].keywords"),
    ("content_filters", [{**FILTER, "priority": "high"}], "content_filters[0].priority"),
]


@pytest.mark.parametrize(("part", "value", "where"), FAULTS)
async def test_invalid_entries_are_reported_with_their_position_and_valid_entries_are_imported(
    portal: httpx2.AsyncClient, tenant: Tenant, part: str, value: Any, where: str
) -> None:
    report = await import_config(portal, tenant, document(**{part: value}))
    assert [error["where"] for error in report["errors"]] == [where] or where in report["errors"][0]["where"], report[
        "errors"
    ]
    assert all(error["message"] for error in report["errors"])
    others = {other: names for other, names in ALL.items() if other != part}
    assert {name: names for name, names in (await resource_names(tenant)).items() if name in others} == others


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({}, "version"),
        ({"version": "2.0"}, "version"),
        ({"version": "1.0", "dlp_rules": {}}, "dlp_rules"),
        ({"version": "1.0", "dlp_rules": ["x"]}, "dlp_rules"),
        ({"version": "1.0", "group_overrides": []}, "group_overrides"),
        ({"version": "1.0", "patterns": [1]}, "patterns"),
        ({"version": "1.0", "suppressions": ["x"] * 1001}, "suppressions"),
        ({"version": "1.0", "dlp_rules": [{}] * 1001}, "dlp_rules"),
    ],
)
async def test_a_malformed_document_is_refused(
    portal: httpx2.AsyncClient, tenant: Tenant, config: Any, field: str
) -> None:
    answer = await portal.post(path(tenant), json={"config": config})
    assert answer.status_code == 422
    assert field in answer.json()["detail"][0]["loc"]


async def test_unknown_sections_and_sections_of_the_outpost_are_reported_as_skipped(
    portal: httpx2.AsyncClient, tenant: Tenant
) -> None:
    config = {"version": "1.4", "moon_phases": [1], "overrides": {"disabled": {"openai": ["x"]}}}
    report = await import_config(portal, tenant, config)
    assert [item["part"] for item in report["skipped"]] == ["moon_phases", "overrides"]
    many = {"version": "1.0", **{f"part_{number}": 1 for number in range(1_000)}}
    assert len((await import_config(portal, tenant, many))["skipped"]) == 100


async def test_only_the_platforms_client_imports(
    platform: RunningPlatform, portal: httpx2.AsyncClient, tenant: Tenant, other_tenant: Tenant
) -> None:
    body = {"config": document()}
    assert (await platform.anonymous.post(path(tenant), json=body)).status_code == 401
    for client in (
        tenant.admin.client,
        tenant.user.client,
        await platform.new_m2m(tenant.id, "admin:write"),
        await platform.new_m2m(None, "admin:read"),
        other_tenant.admin.client,
    ):
        assert (await client.post(path(tenant), json=body)).status_code == 403
    nobody = await portal.post(f"/v1/platform/tenants/{uuid4()}/config-import", json=body)
    assert nobody.status_code == 404
    assert await resource_names(tenant) == NOTHING


async def test_an_import_waits_for_a_concurrent_import_before_it_locks_rules(
    platform: RunningPlatform, tenant: Tenant, portal: httpx2.AsyncClient
) -> None:
    await import_config(portal, tenant, document())
    more = document(dlp_rules=[{**RULE, "name": "More cards"}])
    with psycopg.connect(platform.installed.owner_url) as other:
        # Take the two locks of an import of rules in the order in which an import takes them.
        other.execute("SELECT pg_advisory_xact_lock(hashtext('gatehouse.dlp_rules'), hashtext(%s))", [str(tenant.id)])
        waiting = asyncio.create_task(import_config(portal, tenant, more))
        async with asyncio.timeout(60):
            while platform.sql("SELECT count(*) FROM pg_locks WHERE NOT granted") == [(0,)]:
                await asyncio.sleep(0.01)
        other.execute("SELECT FROM dlp_rules WHERE tenant_id = %s FOR UPDATE NOWAIT", [tenant.id])
    assert "More cards" in [entry["name"] for entry in (await waiting)["imported"]]

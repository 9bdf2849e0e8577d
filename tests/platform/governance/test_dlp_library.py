"""The library of built-in patterns, and the taxonomy (docs/dlp-patterns.md, docs/dlp-entities.md)."""

import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.detection.catalog import BUILT_IN
from gatehouse.detection.models import ENTITIES
from gatehouse.detection.pattern import CATEGORIES

AVAILABLE = "/api/admin/dlp-rules/available-patterns"
TYPES = "/api/admin/dlp-rules/entity-types"


async def test_every_built_in_pattern_is_listed_in_its_category(tenant: Tenant) -> None:
    body = (await tenant.auditor.client.get(AVAILABLE)).json()
    assert body["total_patterns"] == len(BUILT_IN) == 76
    assert list(body["categories"]) == list(CATEGORIES)
    listed = {entry["id"]: entry for entries in body["categories"].values() for entry in entries}
    assert set(listed) == {pattern.id for pattern in BUILT_IN}
    card = listed["credit-card"]
    assert set(card) == {"id", "name", "entity_type", "confidence_threshold", "action_tier", "category"}
    assert (card["entity_type"], card["action_tier"], card["category"]) == ("credit_card", "redact", "financial")


async def test_the_list_is_filtered_by_category(tenant: Tenant) -> None:
    body = (await tenant.admin.client.get(AVAILABLE, params={"category": "medical"})).json()
    assert list(body["categories"]) == ["medical"]
    assert body["total_patterns"] == len(body["categories"]["medical"]) == 8
    assert (await tenant.admin.client.get(AVAILABLE, params={"category": "legal"})).status_code == 400


async def test_the_taxonomy_contains_all_types_of_patterns_and_recognisers(tenant: Tenant) -> None:
    body = (await tenant.auditor.client.get(TYPES)).json()
    by_name = {entry["entity_type"]: entry for entry in body["entity_types"]}
    assert set(by_name) == {pattern.entity_type for pattern in BUILT_IN} | set(ENTITIES)
    assert body["total"] == len(by_name)
    assert by_name["person"] == {"entity_type": "person", "category": "pii", "detectors": ["ner"], "patterns": []}
    assert by_name["date_of_birth"]["detectors"] == ["regex", "ner"]
    assert by_name["ip_address"]["patterns"] == ["ip-v4", "ip-v6"]


@pytest.mark.parametrize("path", [AVAILABLE, TYPES])
async def test_only_administrators_and_auditors_read_the_library(
    platform: RunningPlatform, tenant: Tenant, path: str
) -> None:
    assert (await platform.anonymous.get(path)).status_code == 401
    assert (await tenant.user.client.get(path)).status_code == 403
    reader = await platform.new_m2m(tenant.id, "admin:read")
    assert (await reader.get(path)).status_code == 200

"""Suppressions and custom patterns (docs/dlp-rules.md)."""

from typing import Any
from uuid import uuid4

import pytest
from tests.support.platform import RunningPlatform, Tenant

BASE = "/api/admin/dlp-rules"
SUPPRESSIONS = f"{BASE}/suppressions"
PATTERNS = f"{BASE}/custom-patterns"
CARD = "Pay with 4111 1111 1111 1111."
PATTERN: dict[str, Any] = {
    "name": "Employee numbers",
    "entity_type": "employee_id",
    "pattern": "EMP-[0-9]{6}",
    "action_tier": "redact",
}


async def evaluate(tenant: Tenant, text: str) -> dict[str, Any]:
    answer = await tenant.admin.client.post(f"{BASE}/evaluate", json={"text": text})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def create_pattern(tenant: Tenant, **changed: Any) -> dict[str, Any]:
    answer = await tenant.admin.client.post(PATTERNS, json={**PATTERN, **changed})
    assert answer.status_code == 201, answer.text
    pattern: dict[str, Any] = answer.json()
    return pattern


async def test_a_suppressed_pattern_has_no_effect_until_the_suppression_is_removed(tenant: Tenant) -> None:
    body = {"pattern_id": "credit-card", "reason": "test cards only"}
    answer = await tenant.admin.client.post(SUPPRESSIONS, json=body)
    suppression = answer.json()
    assert answer.status_code == 201
    assert suppression == {
        **body,
        "id": suppression["id"],
        "created_at": suppression["created_at"],
        "created_by": str(tenant.admin.id),
    }
    assert (await tenant.auditor.client.get(SUPPRESSIONS)).json() == [suppression]
    evaluation = await evaluate(tenant, CARD)
    assert (evaluation["final_action"], evaluation["suppressed_rule_ids"]) == ("allow", ["credit-card"])
    assert (await tenant.admin.client.delete(f"{SUPPRESSIONS}/{suppression['id']}")).status_code == 204
    assert (await evaluate(tenant, CARD))["final_action"] == "redact"
    assert (await tenant.admin.client.get(SUPPRESSIONS)).json() == []


async def test_a_suppression_applies_only_to_its_organization(tenant: Tenant, other_tenant: Tenant) -> None:
    await tenant.admin.client.post(SUPPRESSIONS, json={"pattern_id": "credit-card"})
    assert (await evaluate(other_tenant, CARD))["final_action"] == "redact"
    assert (await other_tenant.admin.client.get(SUPPRESSIONS)).json() == []


async def test_a_pattern_is_suppressed_once(tenant: Tenant) -> None:
    assert (await tenant.admin.client.post(SUPPRESSIONS, json={"pattern_id": "iban"})).status_code == 201
    assert (await tenant.admin.client.post(SUPPRESSIONS, json={"pattern_id": "iban"})).status_code == 409


@pytest.mark.parametrize("body", [{}, {"pattern_id": "no-such-pattern"}, {"pattern_id": 5}, {"pattern_id": ""}])
async def test_a_bad_suppression_is_400_and_names_the_field(tenant: Tenant, body: dict[str, Any]) -> None:
    answer = await tenant.admin.client.post(SUPPRESSIONS, json=body)
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (400, ["body", "pattern_id"])


async def test_a_custom_pattern_has_its_fields_and_defaults(tenant: Tenant) -> None:
    pattern = await create_pattern(tenant)
    times = {name: pattern[name] for name in ("id", "created_at", "updated_at")}
    defaults = {
        "category": "pii",
        "confidence_threshold": 0.5,
        "context_words": [],
        "enabled": True,
        "stream_max_length": None,
    }
    assert pattern == {**PATTERN, **times, **defaults}
    assert (await tenant.auditor.client.get(PATTERNS)).json() == [pattern]


async def test_a_custom_pattern_takes_effect_with_the_response(tenant: Tenant) -> None:
    pattern = await create_pattern(tenant)
    evaluation = await evaluate(tenant, "Ask EMP-123456.")
    assert (evaluation["final_action"], evaluation["custom_org_patterns"]) == ("redact", ["Employee numbers"])
    (rule,) = evaluation["matched_rules"]
    assert (rule["rule_id"], rule["source"]) == (pattern["id"], "organization")
    changed = {"pattern": "BADGE-[0-9]{3}", "action_tier": "block"}
    answer = await tenant.admin.client.put(f"{PATTERNS}/{pattern['id']}", json=changed)
    assert answer.json() == {**pattern, **changed, "updated_at": answer.json()["updated_at"]}
    assert (await evaluate(tenant, "Ask EMP-123456."))["final_action"] == "allow"
    assert (await evaluate(tenant, "Ask BADGE-123."))["final_action"] == "block"
    assert (await tenant.admin.client.delete(f"{PATTERNS}/{pattern['id']}")).status_code == 204
    evaluation = await evaluate(tenant, "Ask BADGE-123.")
    assert (evaluation["final_action"], evaluation["custom_org_patterns"]) == ("allow", [])


async def test_context_words_decide_if_the_threshold_requires_them(tenant: Tenant) -> None:
    await create_pattern(tenant, context_words=["badge"], confidence_threshold=0.9)
    assert (await evaluate(tenant, "Ask EMP-123456."))["final_action"] == "allow"
    assert (await evaluate(tenant, "The badge is EMP-123456."))["final_action"] == "redact"


async def test_a_disabled_custom_pattern_has_no_effect(tenant: Tenant) -> None:
    await create_pattern(tenant, enabled=False)
    assert (await evaluate(tenant, "Ask EMP-123456."))["custom_org_patterns"] == []


async def test_names_are_unique_in_an_organization(tenant: Tenant, other_tenant: Tenant) -> None:
    await create_pattern(tenant)
    other = await create_pattern(tenant, name="another")
    assert (await tenant.admin.client.post(PATTERNS, json=PATTERN)).status_code == 409
    answer = await tenant.admin.client.put(f"{PATTERNS}/{other['id']}", json={"name": PATTERN["name"]})
    assert answer.status_code == 409
    await create_pattern(other_tenant)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"name": ""}, "name"),
        ({"entity_type": "1"}, "entity_type"),
        ({"pattern": "("}, "pattern"),
        ({"pattern": r"\b"}, "pattern"),
        ({"action_tier": "drop"}, "action_tier"),
        ({"category": "other"}, "category"),
        ({"confidence_threshold": -1}, "confidence_threshold"),
        ({"context_words": "badge"}, "context_words"),
        ({"enabled": None}, "enabled"),
    ],
)
async def test_a_bad_custom_pattern_is_400_names_the_field_and_changes_nothing(
    tenant: Tenant, changed: dict[str, Any], field: str
) -> None:
    pattern = await create_pattern(tenant, name="there")
    for answer in (
        await tenant.admin.client.post(PATTERNS, json={**PATTERN, **changed}),
        await tenant.admin.client.put(f"{PATTERNS}/{pattern['id']}", json=changed),
    ):
        assert answer.status_code == 400, answer.text
        assert answer.json()["detail"][0]["loc"][:2] == ["body", field]
    assert (await tenant.admin.client.get(PATTERNS)).json() == [pattern]


async def test_there_are_at_most_a_thousand_custom_patterns(platform: RunningPlatform, tenant: Tenant) -> None:
    platform.sql(
        "INSERT INTO dlp_custom_patterns (id, tenant_id, name, entity_type, pattern, category, action_tier, enabled)"
        " SELECT gen_random_uuid(), %s, n::text, 'x', 'x' || n, 'pii', 'redact', false FROM generate_series(1, 1000) n",
        [tenant.id],
    )
    assert (await tenant.admin.client.post(PATTERNS, json=PATTERN)).status_code == 409


async def test_every_change_is_in_the_audit_chain_without_the_pattern(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    pattern = await create_pattern(tenant)
    await tenant.admin.client.put(f"{PATTERNS}/{pattern['id']}", json={"enabled": False})
    await tenant.admin.client.delete(f"{PATTERNS}/{pattern['id']}")
    body = {"pattern_id": "iban", "reason": "not ours"}
    suppression = (await tenant.admin.client.post(SUPPRESSIONS, json=body)).json()
    await tenant.admin.client.delete(f"{SUPPRESSIONS}/{suppression['id']}")
    for name in ("created", "updated", "deleted"):
        (event,) = await platform.audit(tenant, f"dlp_custom_pattern.{name}")
        assert "EMP-" not in str(event["details"])
    (event,) = await platform.audit(tenant, "dlp_suppression.created")
    assert (event["reason"], event["details"]) == ("not ours", {"pattern_id": "iban"})
    assert len(await platform.audit(tenant, "dlp_suppression.deleted")) == 1


async def test_resources_of_another_organization_are_not_found(tenant: Tenant, other_tenant: Tenant) -> None:
    pattern = await create_pattern(tenant)
    suppression = (await tenant.admin.client.post(SUPPRESSIONS, json={"pattern_id": "iban"})).json()
    client = other_tenant.admin.client
    for method, path, missing in [
        ("PUT", f"{PATTERNS}/{pattern['id']}", "Custom pattern not found"),
        ("DELETE", f"{PATTERNS}/{pattern['id']}", "Custom pattern not found"),
        ("DELETE", f"{SUPPRESSIONS}/{suppression['id']}", "Suppression not found"),
        ("DELETE", f"{SUPPRESSIONS}/{uuid4()}", "Suppression not found"),
    ]:
        answer = await client.request(method, path, json={})
        assert (answer.status_code, answer.json()) == (404, {"detail": missing})
    assert (await client.get(PATTERNS)).json() == []
    assert len((await tenant.admin.client.get(PATTERNS)).json()) == 1


async def test_users_cannot_read_and_auditors_cannot_change(platform: RunningPlatform, tenant: Tenant) -> None:
    pattern = await create_pattern(tenant)
    suppression = (await tenant.admin.client.post(SUPPRESSIONS, json={"pattern_id": "iban"})).json()
    for path in (SUPPRESSIONS, PATTERNS):
        assert (await platform.anonymous.get(path)).status_code == 401
        assert (await tenant.user.client.get(path)).status_code == 403
        assert (await tenant.auditor.client.get(path)).status_code == 200
    for method, path in [
        ("POST", SUPPRESSIONS),
        ("DELETE", f"{SUPPRESSIONS}/{suppression['id']}"),
        ("POST", PATTERNS),
        ("PUT", f"{PATTERNS}/{pattern['id']}"),
        ("DELETE", f"{PATTERNS}/{pattern['id']}"),
    ]:
        for client in (tenant.user.client, tenant.auditor.client):
            assert (await client.request(method, path, json={})).status_code == 403

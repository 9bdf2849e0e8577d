"""Feature flags (docs/feature-flags.md)."""

import pytest
from tests.support.platform import RunningPlatform, Tenant

BASE = "/api/v1/admin/org/feature-flags"
SECRET = "AKIA" + "Z7Q2MXR4TNVB5KLP"
CARD = "4111 1111 1111 1111"
NAMES = {
    "dlp_enabled", "credential_intelligence", "human_in_loop", "budget_enforcement", "outpost_enabled",
    "api_key_scoping", "audit_log_streaming", "cost_routing", "block_unreadable",
}  # fmt: skip


async def test_every_flag_is_listed_with_its_default(tenant: Tenant) -> None:
    listed = (await tenant.admin.client.get(BASE)).json()
    assert set(listed) == NAMES
    assert (listed["dlp_enabled"], listed["human_in_loop"]) == (True, False)


async def test_a_switched_flag_is_stored_applied_and_audited(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    assert (await tenant.user.client.get("/v1/models")).status_code == 200
    answer = await tenant.admin.client.patch(f"{BASE}/human_in_loop", json={"enabled": True})
    assert answer.status_code == 200
    switched = answer.json()
    assert (switched["flag"], switched["enabled"]) == ("human_in_loop", True)
    assert switched["updated_at"]
    assert (await tenant.auditor.client.get(BASE)).json()["human_in_loop"] is True
    assert (await other_tenant.admin.client.get(BASE)).json()["human_in_loop"] is False
    snapshot = await platform.host.policies.current(tenant.id)
    assert snapshot.feature_flags["human_in_loop"] is True
    (event,) = await platform.audit(tenant, "feature_flag.changed")
    assert (event["resource_id"], event["details"]) == ("human_in_loop", {"was": False, "enabled": True})


async def test_an_unchanged_flag_is_not_audited_and_keeps_its_version(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    before = await tenant.admin.client.get(BASE)
    for name, enabled in before.json().items():
        answer = await tenant.admin.client.patch(f"{BASE}/{name}", json={"enabled": enabled})
        assert (answer.status_code, answer.json()["enabled"]) == (200, enabled)
        assert answer.headers["ETag"] == before.headers["ETag"]
    assert await platform.audit(tenant, "feature_flag.changed") == []


async def test_an_unknown_flag_is_404_in_the_familys_error_format(tenant: Tenant) -> None:
    answer = await tenant.admin.client.patch(f"{BASE}/nonsense", json={"enabled": True})
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


@pytest.mark.parametrize("body", [{}, {"enabled": "true"}, {"enabled": 1}, {"enabled": None}])
async def test_a_bad_body_names_the_field_in_details(tenant: Tenant, body: dict[str, object]) -> None:
    answer = await tenant.admin.client.patch(f"{BASE}/cost_routing", json=body)
    assert (answer.status_code, answer.json()["error"]) == (422, "validation_error")
    assert [fault["field"] for fault in answer.json()["details"]] == ["enabled"]


async def test_malformed_json_is_400_invalid_request(tenant: Tenant) -> None:
    answer = await tenant.admin.client.patch(
        f"{BASE}/cost_routing", content="{", headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


async def test_callers_without_the_right_are_refused(platform: RunningPlatform, tenant: Tenant) -> None:
    change = {"json": {"enabled": True}}
    anonymous = await platform.anonymous.patch(f"{BASE}/cost_routing", **change)
    assert (anonymous.status_code, anonymous.json()["error"]) == (401, "unauthorized")
    for person in (tenant.user, tenant.auditor):
        answer = await person.client.patch(f"{BASE}/cost_routing", **change)
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
    assert (await tenant.user.client.get(BASE)).status_code == 403


async def test_a_change_needs_a_second_factor_if_the_policy_requires_one(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    await platform.require_mfa(tenant.id)
    platform.touch("tenant", tenant.id)
    await platform.refresh()
    answer = await tenant.admin.client.patch(f"{BASE}/cost_routing", json={"enabled": False})
    assert (answer.status_code, answer.json()["error"]) == (403, "mfa_required")


async def test_without_credential_intelligence_no_secrets_are_detected(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    async def detected_types() -> list[str]:
        text = f"my key is {SECRET}, my card {CARD}"
        answer = await tenant.user.client.post("/v1/scan", json={"text": text, "model": "sandbox/echo"})
        return [finding["entity_type"] for finding in answer.json()["findings"]]

    async def switch(name: str, enabled: bool) -> None:
        answer = await tenant.admin.client.patch(f"{BASE}/{name}", json={"enabled": enabled})
        assert answer.status_code == 200, answer.text

    assert await detected_types() == ["aws_access_key", "credit_card"]
    await switch("credential_intelligence", enabled=False)
    assert await detected_types() == ["credit_card"]
    # Types of the organization's own rules are still found.
    rule = {"detector_name": "x", "detector_type": "regex", "entity_type": "aws_access_key", "action_tier": "block"}
    await tenant.admin.client.post("/api/admin/dlp-rules/", json=rule)
    assert await detected_types() == ["aws_access_key", "credit_card"]


async def test_a_stale_version_is_refused_and_switches_nothing(tenant: Tenant) -> None:
    stale = (await tenant.admin.client.get(BASE)).headers["ETag"]
    for enabled, status in ((True, 200), (False, 412)):
        answer = await tenant.admin.client.patch(
            f"{BASE}/human_in_loop", json={"enabled": enabled}, headers={"If-Match": stale}
        )
        assert answer.status_code == status
    assert (await tenant.admin.client.get(BASE)).json()["human_in_loop"] is True

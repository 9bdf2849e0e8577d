"""System configuration (docs/settings.md)."""

from time import time

import pytest
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.settings import BadSettings
from gatehouse.platform.organization.system_config.keys import check_environment

BASE = "/api/admin/config"
FLAGS = "/api/v1/admin/org/feature-flags/cost_routing"
PLATFORM_WIDE = (
    "oauth_scope_enforcement", "oauth_secret_grace_seconds", "mail_from", "rate_limit_requests_per_minute",
    "api_variant", )  # fmt: skip


async def entry(tenant: Tenant, key: str) -> dict[str, object]:
    entries = (await tenant.auditor.client.get(BASE)).json()
    result: dict[str, object] = next(one for one in entries if one["key"] == key)
    return result


async def test_every_entry_shows_its_category_default_and_editability(tenant: Tenant) -> None:
    entries = (await tenant.admin.client.get(BASE)).json()
    assert {one["key"] for one in entries} >= {
        "auto_title_enabled", "auto_title_model", "governance_enabled", "mfa_required",
        "max_conversation_messages", "unregistered_model_tier", "registry_enforcement",
    }  # fmt: skip
    for one in entries:
        assert set(one) == {"key", "category", "value", "default", "source", "editable", "choices", "description"}
        assert isinstance(one["value"], str)
    assert (await entry(tenant, "unregistered_model_tier"))["default"] == "tier_4"
    assert (await entry(tenant, "registry_enforcement"))["choices"] == ["off", "warn", "block"]
    assert (await entry(tenant, "mfa_required"))["choices"] == ["true", "false"]
    assert (await entry(tenant, "max_conversation_messages"))["choices"] is None


async def test_a_value_comes_from_the_organization_then_the_environment_then_the_default(
    tenant: Tenant, other_tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def shown(owner: Tenant) -> tuple[object, object]:
        listed = await entry(owner, "max_conversation_messages")
        return listed["value"], listed["source"]

    assert await shown(tenant) == ("1000", "default")
    monkeypatch.setenv("MAX_CONVERSATION_MESSAGES", "77")
    assert await shown(tenant) == ("77", "environment")
    answer = await tenant.admin.client.put(f"{BASE}/max_conversation_messages", json={"value": "12"})
    assert (answer.status_code, answer.json()["value"], answer.json()["default"]) == (200, "12", "1000")
    assert answer.json()["source"] == "organization"
    assert await shown(tenant) == ("12", "organization")
    assert await shown(other_tenant) == ("77", "environment")


@pytest.mark.parametrize(
    ("variable", "written", "value"),
    [
        ("AUTO_TITLE_ENABLED", "0", "false"),
        ("GOVERNANCE_ENABLED", "Off", "false"),
        ("MFA_REQUIRED", " yes ", "true"),
        ("MFA_REQUIRED", "", "false"),
        ("AUTO_TITLE_MODEL", "sandbox/echo", "sandbox/echo"),
    ],
)
async def test_a_variable_has_the_syntax_of_all_settings(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, variable: str, written: str, value: str
) -> None:
    monkeypatch.setenv(variable, written)
    check_environment()
    assert (await entry(tenant, variable.lower()))["value"] == value


@pytest.mark.parametrize(
    ("variable", "written"),
    [
        ("MFA_REQUIRED", "ture"),
        ("GOVERNANCE_ENABLED", "2"),
        ("UNREGISTERED_MODEL_TIER", "tier_9"),
        ("MAX_CONVERSATION_MESSAGES", "many"),
        ("AUTO_TITLE_MODEL", "echo"),
    ],
)
def test_an_invalid_variable_prevents_the_start(monkeypatch: pytest.MonkeyPatch, variable: str, written: str) -> None:
    monkeypatch.setenv(variable, written)
    with pytest.raises(BadSettings, match=f"^{variable}: must be"):
        check_environment()


async def test_the_environments_value_is_in_force(
    platform: RunningPlatform, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MFA_REQUIRED", "true")
    platform.sql("UPDATE tenants SET mfa_policy = '{\"grace_period_hours\": 0}' WHERE id = %s", [tenant.id])
    platform.touch("tenant", tenant.id)
    await platform.refresh()
    flag = {"json": {"enabled": True}}
    assert (await tenant.admin.client.patch(FLAGS, **flag)).json()["error"] == "mfa_required"
    # The organization's own value has priority.
    stepped_up = await platform.new_person(tenant.id, "admin", mfa_at=time())
    await stepped_up.client.put(f"{BASE}/mfa_required", json={"value": "false"})
    assert (await tenant.admin.client.patch(FLAGS, **flag)).status_code == 200


async def test_platform_wide_values_are_shown_as_in_force(
    tenant: Tenant, platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = platform.host.settings.model_copy(update={"oauth_scope_enforcement": False, "api_variant": "c"})
    monkeypatch.setattr(platform.host, "settings", settings)
    shown = {one["key"]: one for one in (await tenant.admin.client.get(BASE)).json()}
    result = {key: (shown[key]["value"], shown[key]["default"], shown[key]["editable"]) for key in PLATFORM_WIDE}
    assert result == {
        "oauth_scope_enforcement": ("false", "true", False),
        "oauth_secret_grace_seconds": ("86400", "86400", False),
        "mail_from": ("", "", False),
        "rate_limit_requests_per_minute": ("1000000", "60", False),
        "api_variant": ("c", "a", False),
    }


@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        ("auto_title_enabled", "false", "False"),
        ("governance_enabled", "true", "1"),
        ("auto_title_model", "sandbox/echo", "echo"),
        ("auto_title_model", "", "a /b"),
        ("max_conversation_messages", "5", "0"),
        ("max_conversation_messages", "5", "five"),
        ("max_conversation_messages", "5", "-1"),
        ("unregistered_model_tier", "tier_1", "tier_5"),
        ("registry_enforcement", "warn", "true"),
    ],
)
async def test_a_value_is_validated_by_its_keys_type(tenant: Tenant, key: str, good: str, bad: str) -> None:
    assert (await tenant.admin.client.put(f"{BASE}/{key}", json={"value": good})).status_code == 200
    refused = await tenant.admin.client.put(f"{BASE}/{key}", json={"value": bad})
    assert refused.status_code == 422
    assert refused.json()["detail"][0]["loc"] == ["body", "value"]
    assert (await entry(tenant, key))["value"] == good


async def test_a_value_that_is_not_a_string_is_refused(tenant: Tenant) -> None:
    answer = await tenant.admin.client.put(f"{BASE}/auto_title_enabled", json={"value": True})
    assert answer.status_code == 422


async def test_an_unknown_key_is_404_and_a_fixed_one_422(tenant: Tenant) -> None:
    assert (await tenant.admin.client.put(f"{BASE}/nonsense", json={"value": "x"})).status_code == 404
    for key in PLATFORM_WIDE:
        assert (await tenant.admin.client.put(f"{BASE}/{key}", json={"value": "b"})).status_code == 422


async def test_callers_without_the_right_are_refused(platform: RunningPlatform, tenant: Tenant) -> None:
    assert (await platform.anonymous.get(BASE)).status_code == 401
    assert (await tenant.user.client.get(BASE)).status_code == 403
    for person in (tenant.user, tenant.auditor):
        answer = await person.client.put(f"{BASE}/auto_title_enabled", json={"value": "false"})
        assert answer.status_code == 403


async def test_a_change_is_in_the_audit_chain(platform: RunningPlatform, tenant: Tenant) -> None:
    await tenant.admin.client.put(f"{BASE}/governance_enabled", json={"value": "false"})
    (event,) = await platform.audit(tenant, "system_config.changed")
    assert (event["resource_id"], event["details"]) == ("governance_enabled", {"was": "true", "value": "false"})


async def test_an_unchanged_value_is_not_audited_and_keeps_its_time(platform: RunningPlatform, tenant: Tenant) -> None:
    path = f"{BASE}/max_conversation_messages"
    # A value that was set no longer follows the environment, even if it is the same.
    assert (await tenant.admin.client.put(path, json={"value": "1000"})).status_code == 200
    row = "SELECT value, updated_at FROM system_config WHERE tenant_id = %s"
    before = platform.sql(row, [tenant.id])
    assert (await tenant.admin.client.put(path, json={"value": "1000"})).json()["value"] == "1000"
    assert platform.sql(row, [tenant.id]) == before
    assert len(await platform.audit(tenant, "system_config.changed")) == 1


@pytest.mark.parametrize("body", [{}, {"value": None}, {"value": "x" * 1001}, {"value": "a\0"}, {"values": "true"}])
async def test_a_bad_body_is_422(tenant: Tenant, body: dict[str, object]) -> None:
    answer = await tenant.admin.client.put(f"{BASE}/auto_title_model", json=body)
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"][:1] == ["body"]


async def test_requiring_a_second_factor_takes_effect_at_once_without_grace(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    platform.sql("UPDATE tenants SET mfa_policy = '{\"grace_period_hours\": 0}' WHERE id = %s", [tenant.id])
    # An API key needs no second factor. In a session, a user without one may not set it.
    key = platform.client(await platform.new_key(tenant.admin))
    assert (await key.put(f"{BASE}/mfa_required", json={"value": "true"})).status_code == 200
    assert (await tenant.admin.client.patch(FLAGS, json={"enabled": True})).json()["error"] == "mfa_required"
    assert (await other_tenant.admin.client.patch(FLAGS, json={"enabled": True})).status_code == 200
    # Even this setting cannot be reset without a second factor.
    assert (await tenant.admin.client.put(f"{BASE}/mfa_required", json={"value": "false"})).status_code == 403


async def test_an_entry_that_somebody_else_changed_is_kept(tenant: Tenant) -> None:
    listed = await tenant.auditor.client.get(BASE)
    version = {"If-Match": listed.headers["ETag"]}
    first = await tenant.admin.client.put(f"{BASE}/auto_title_enabled", json={"value": "false"}, headers=version)
    assert first.status_code == 200
    for key in ("auto_title_enabled", "max_conversation_messages"):
        stale = await tenant.admin.client.put(f"{BASE}/{key}", json={"value": "true"}, headers=version)
        assert stale.status_code == 412
    assert (await entry(tenant, "auto_title_enabled"))["value"] == "false"
    again = {"If-Match": first.headers["ETag"]}
    assert first.headers["ETag"] == (await tenant.admin.client.get(BASE)).headers["ETag"]
    unchanged = await tenant.admin.client.put(f"{BASE}/auto_title_enabled", json={"value": "false"}, headers=again)
    assert (unchanged.status_code, unchanged.headers["ETag"]) == (200, first.headers["ETag"])

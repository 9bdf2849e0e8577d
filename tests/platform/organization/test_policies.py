"""The session and MFA policies: valid values, and who may set them (docs/organization.md). Their effects are tested
with sessions and second factors."""

from typing import Any

import pytest
from tests.support.platform import RunningPlatform, Tenant

SESSION = "/api/v1/admin/org/session-policy"
MFA = "/api/v1/admin/org/mfa-policy"


async def test_the_defaults_apply_to_a_new_organization(tenant: Tenant) -> None:
    session = (await tenant.auditor.client.get(SESSION)).json()
    assert session.pop("sources") == dict.fromkeys(session, "default")
    assert session == {
        "session_timeout_minutes": 1440,
        "idle_timeout_minutes": 480,
        "concurrent_sessions": "unlimited",
        "enforce_single_session": False,
        "refresh_token_enabled": True,
        "refresh_token_ttl_days": 30,
    }
    mfa = (await tenant.auditor.client.get(MFA)).json()
    assert mfa.pop("sources") == dict.fromkeys(mfa, "default")
    assert mfa == {
        "enforcement_level": "optional",
        "sensitive_endpoints_require_mfa": True,
        "mfa_methods": ["totp", "webauthn"],
        "grace_period_hours": 72,
        "mfa_assertion_ttl_seconds": 900,
        "enrollment_deadline": None,
    }


@pytest.mark.parametrize(
    ("path", "sent", "action"),
    [
        (SESSION, {"concurrent_sessions": "2", "refresh_token_ttl_days": 7}, "session_policy.changed"),
        (MFA, {"mfa_methods": ["webauthn"], "grace_period_hours": 0}, "mfa_policy.changed"),
    ],
)
async def test_only_the_sent_fields_change_and_are_audited(
    platform: RunningPlatform, tenant: Tenant, path: str, sent: dict[str, Any], action: str
) -> None:
    before = (await tenant.admin.client.get(path)).json()
    after = {**before, **sent, "sources": {**before["sources"], **dict.fromkeys(sent, "organization")}}
    answer = await tenant.admin.client.put(path, json=sent)
    assert (answer.status_code, answer.json()) == (200, after)
    assert (await tenant.auditor.client.get(path)).json() == after
    again = await tenant.admin.client.put(path, json=sent)
    assert again.json() == answer.json()
    (event,) = await platform.audit(tenant, action)
    assert event["details"] == {**sent, "before": {name: before[name] for name in sent}}


async def test_the_configuration_that_requires_a_second_factor_is_the_source_of_the_level(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def level() -> tuple[str, str]:
        policy = (await tenant.auditor.client.get(MFA)).json()
        return policy["enforcement_level"], policy["sources"]["enforcement_level"]

    monkeypatch.setenv("MFA_REQUIRED", "true")
    assert await level() == ("required", "environment")
    configuration = "/api/admin/config/mfa_required"
    assert (await tenant.admin.client.put(configuration, json={"value": "false"})).status_code == 200
    assert await level() == ("optional", "default")
    assert (await tenant.admin.client.put(MFA, json={"enforcement_level": "off"})).status_code == 200
    assert await level() == ("off", "organization")
    monkeypatch.delenv("MFA_REQUIRED")
    assert await level() == ("off", "organization")


async def test_a_policy_has_reached_every_worker_when_the_response_arrives(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    await tenant.admin.client.put(SESSION, json={"session_timeout_minutes": 20})
    confirmed = platform.host.feed.lag_seconds
    revision = platform.sql("SELECT max(revision) FROM changes WHERE topic = 'tenant' AND key = %s", [str(tenant.id)])
    assert platform.host.replica.revision >= revision[0][0]
    assert confirmed < 2


async def test_the_idle_time_is_never_longer_than_the_session(tenant: Tenant) -> None:
    refused = await tenant.admin.client.put(SESSION, json={"session_timeout_minutes": 30, "idle_timeout_minutes": 31})
    assert (refused.status_code, refused.json()["details"][0]["field"]) == (422, "idle_timeout_minutes")
    shorter = await tenant.admin.client.put(SESSION, json={"session_timeout_minutes": 30})
    assert shorter.json()["idle_timeout_minutes"] == 30
    refused = await tenant.admin.client.put(SESSION, json={"idle_timeout_minutes": 31})
    assert refused.status_code == 422
    assert (await tenant.admin.client.put(SESSION, json={"idle_timeout_minutes": 30})).status_code == 200


async def test_a_deadline_is_a_time_and_null_removes_it(tenant: Tenant) -> None:
    answer = await tenant.admin.client.put(MFA, json={"enrollment_deadline": "2031-05-01T10:00:00+02:00"})
    assert answer.json()["enrollment_deadline"] == "2031-05-01T08:00:00Z"
    assert (await tenant.auditor.client.get(MFA)).json()["enrollment_deadline"] == "2031-05-01T08:00:00Z"
    assert (await tenant.admin.client.put(MFA, json={"enrollment_deadline": None})).json()[
        "enrollment_deadline"
    ] is None


async def test_the_grace_period_starts_with_the_level_and_does_not_restart_with_every_change(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    def grace_start() -> Any:
        return platform.sql("SELECT mfa_policy_changed_at FROM tenants WHERE id = %s", [tenant.id])[0][0]

    await tenant.admin.client.put(MFA, json={"mfa_assertion_ttl_seconds": 60})
    assert grace_start() is None
    await tenant.admin.client.put(MFA, json={"enforcement_level": "required"})
    first = grace_start()
    assert first is not None
    await tenant.admin.client.put(MFA, json={"enforcement_level": "required", "mfa_assertion_ttl_seconds": 120})
    assert grace_start() == first


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (SESSION, {"session_timeout_minutes": 14}, "session_timeout_minutes"),
        (SESSION, {"session_timeout_minutes": 1441}, "session_timeout_minutes"),
        (SESSION, {"session_timeout_minutes": None}, "session_timeout_minutes"),
        (SESSION, {"idle_timeout_minutes": 0}, "idle_timeout_minutes"),
        (SESSION, {"concurrent_sessions": "3"}, "concurrent_sessions"),
        (SESSION, {"concurrent_sessions": 3}, "concurrent_sessions"),
        (SESSION, {"concurrent_sessions": True}, "concurrent_sessions"),
        (SESSION, {"enforce_single_session": "true"}, "enforce_single_session"),
        (SESSION, {"refresh_token_ttl_days": 0}, "refresh_token_ttl_days"),
        (SESSION, {"refresh_token_ttl_days": 366}, "refresh_token_ttl_days"),
        (SESSION, {"surprise": 1}, "surprise"),
        (MFA, {"enforcement_level": "always"}, "enforcement_level"),
        (MFA, {"mfa_methods": []}, "mfa_methods"),
        (MFA, {"mfa_methods": ["totp", "totp"]}, "mfa_methods"),
        (MFA, {"mfa_methods": ["sms"]}, "mfa_methods.0"),
        (MFA, {"grace_period_hours": -1}, "grace_period_hours"),
        (MFA, {"grace_period_hours": 8761}, "grace_period_hours"),
        (MFA, {"mfa_assertion_ttl_seconds": 59}, "mfa_assertion_ttl_seconds"),
        (MFA, {"mfa_assertion_ttl_seconds": 86401}, "mfa_assertion_ttl_seconds"),
        (MFA, {"enrollment_deadline": "tomorrow"}, "enrollment_deadline"),
        (MFA, {"enrollment_deadline": "2031-05-01T10:00:00"}, "enrollment_deadline"),
        # These times do not exist in UTC. If they were stored, every sign-in would fail with 500.
        (MFA, {"enrollment_deadline": "0001-01-01T00:00:00+14:00"}, "enrollment_deadline"),
        (MFA, {"enrollment_deadline": "9999-12-31T23:59:59-14:00"}, "enrollment_deadline"),
    ],
)
async def test_a_bad_field_is_named_in_details(tenant: Tenant, path: str, body: dict[str, Any], field: str) -> None:
    answer = await tenant.admin.client.put(path, json=body)
    assert (answer.status_code, answer.json()["error"]) == (422, "validation_error"), answer.text
    assert [fault["field"] for fault in answer.json()["details"]] == [field]


@pytest.mark.parametrize("path", [SESSION, MFA])
async def test_callers_without_the_right_are_refused(platform: RunningPlatform, tenant: Tenant, path: str) -> None:
    anonymous = await platform.anonymous.put(path, json={})
    assert (anonymous.status_code, anonymous.json()["error"]) == (401, "unauthorized")
    assert (await tenant.user.client.get(path)).status_code == 403
    for person in (tenant.user, tenant.auditor):
        answer = await person.client.put(path, json={})
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")


@pytest.mark.parametrize("path", [SESSION, MFA])
async def test_another_organization_is_not_changed(tenant: Tenant, other_tenant: Tenant, path: str) -> None:
    before = (await other_tenant.admin.client.get(path)).json()
    await tenant.admin.client.put(SESSION, json={"session_timeout_minutes": 15})
    await tenant.admin.client.put(MFA, json={"enforcement_level": "off"})
    assert (await other_tenant.admin.client.get(path)).json() == before


@pytest.mark.parametrize("path", [SESSION, MFA])
async def test_a_stale_version_is_412(tenant: Tenant, path: str) -> None:
    stale = (await tenant.admin.client.get(path)).headers["ETag"]
    changed = await tenant.admin.client.put(SESSION, json={"session_timeout_minutes": 77})
    assert changed.headers["ETag"] != stale
    refused = await tenant.admin.client.put(path, json={}, headers={"If-Match": stale})
    assert (refused.status_code, refused.json()["error"]) == (412, "precondition_failed")


@pytest.mark.parametrize("number", [1, 2, 5])
async def test_concurrent_sessions_may_be_sent_as_a_number(tenant: Tenant, number: int) -> None:
    answer = await tenant.admin.client.put(SESSION, json={"concurrent_sessions": number})
    assert (answer.status_code, answer.json()["concurrent_sessions"]) == (200, str(number))

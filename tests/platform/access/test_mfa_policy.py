"""The policy that requires a second factor: its levels, grace period and methods, and the system configuration
(docs/mfa.md)."""

from datetime import UTC, datetime, timedelta
from time import time
from typing import Any

import pytest
from psycopg.types.json import Jsonb
from tests.support.authenticator import Authenticator
from tests.support.members import Member, code_of, enrol, member, sign_in, use, verify
from tests.support.platform import RunningPlatform, Tenant

MFA = "/api/auth/mfa"
KEYS = "/api/auth/api-keys"
LOCALHOST = {"Host": "localhost"}


@pytest.fixture
async def ada(platform: RunningPlatform, tenant: Tenant) -> Member:
    """A user who signed in before the policy changes."""
    return await member(platform, tenant)


async def set_policy(
    platform: RunningPlatform, tenant: Tenant, *, since: timedelta = timedelta(), **values: Any
) -> None:
    """Set the organization's policy, with a change date that is `since` ago."""
    platform.sql(
        "UPDATE tenants SET mfa_policy = %s, mfa_policy_changed_at = %s WHERE id = %s",
        [Jsonb(values), datetime.now(UTC) - since, tenant.id],
    )
    platform.touch("tenant", tenant.id)
    await platform.refresh()


async def age_user(platform: RunningPlatform, who: Member, ago: timedelta) -> None:
    platform.sql("UPDATE users SET created_at = created_at - %s WHERE id = %s", [ago, who.id])
    platform.touch("user", who.id)
    await platform.refresh()


async def make_key(who: Member) -> int:
    return (await who.client.post(KEYS, json={"description": "x"})).status_code


async def test_by_default_no_second_factor_is_required_of_users_without_one(ada: Member) -> None:
    assert (await sign_in(ada)).json()["mfa_enrollment_deadline"] is None
    assert await make_key(ada) == 201


async def test_with_the_policy_off_no_second_factor_is_required(
    platform: RunningPlatform, tenant: Tenant, ada: Member
) -> None:
    await enrol(platform, ada, stepped_up=False)
    assert await make_key(ada) == 403
    await set_policy(platform, tenant, enforcement_level="off")
    assert (await sign_in(ada)).status_code == 200
    assert await make_key(ada) == 201


async def test_step_up_can_be_disabled_while_the_login_requires_a_factor(
    platform: RunningPlatform, tenant: Tenant, ada: Member
) -> None:
    await enrol(platform, ada, stepped_up=False)
    await set_policy(platform, tenant, sensitive_endpoints_require_mfa=False)
    assert await make_key(ada) == 201
    assert (await sign_in(ada)).json()["error"] == "mfa_required"


async def test_a_user_who_needs_a_factor_and_has_none_enrols_to_sign_in(
    platform: RunningPlatform, tenant: Tenant, ada: Member
) -> None:
    await set_policy(platform, tenant, enforcement_level="required", grace_period_hours=0)
    answer = await sign_in(ada)
    body = answer.json()
    assert (answer.status_code, body["enrollment_required"], body["methods"]) == (401, True, ["totp", "webauthn"])
    token = {"mfa_token": body["mfa_token"]}
    # The token permits only enrolment, because the user has no factor.
    assert (await verify(platform, body["mfa_token"], "recovery", code="x")).json()["error"] == "invalid_code"
    secret = (await platform.anonymous.post(f"{MFA}/totp", json=token)).json()["secret"]
    confirmed = await platform.anonymous.post(f"{MFA}/totp/confirm", json={**token, "code": code_of(secret)})
    assert confirmed.status_code == 200, confirmed.text
    assert len(confirmed.json()["recovery_codes"]) == 10
    await use(platform, ada, confirmed.json()["tokens"])
    assert await make_key(ada) == 201
    # The token is used up, and the next login asks for the app.
    assert (await platform.anonymous.post(f"{MFA}/totp", json=token)).status_code == 401
    assert (await sign_in(ada)).json()["enrollment_required"] is False


POLICY, CONFIG = "/api/v1/admin/org/mfa-policy", "/api/admin/config/mfa_required"


async def test_an_administrator_without_a_factor_cannot_require_one_at_once(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    boss = await member(platform, tenant, role="admin")
    past = {"enforcement_level": "required", "enrollment_deadline": "2020-01-01T00:00:00Z"}
    for body in ({"enforcement_level": "required", "grace_period_hours": 0}, past):
        refused = await boss.client.put(POLICY, json=body)
        assert (refused.status_code, refused.json()["code"]) == (400, "caller_has_no_factor"), refused.text
        assert "Enrol a factor first" in refused.text
    assert (await boss.client.get(POLICY)).json()["enforcement_level"] == "optional"
    assert await platform.audit(tenant, "mfa_policy.changed") == []
    # With a grace period the administrator has time to enrol, or to undo the change.
    assert (await boss.client.put(POLICY, json={"enforcement_level": "required"})).status_code == 200
    assert (await boss.client.put(POLICY, json={"grace_period_hours": 0})).json()["code"] == "caller_has_no_factor"
    assert (await boss.client.put(POLICY, json={"enforcement_level": "optional"})).status_code == 200
    # The equivalent system configuration is refused too. So is a policy that does not allow the administrator's only
    # method.
    assert (await boss.client.put(POLICY, json={"grace_period_hours": 0})).status_code == 200
    refused = await boss.client.put(CONFIG, json={"value": "true"})
    assert (refused.status_code, "you have none" in refused.text) == (400, True), refused.text
    await enrol(platform, boss)
    assert (await boss.client.put(POLICY, json={"enforcement_level": "required"})).status_code == 200
    changed_methods = await boss.client.put(POLICY, json={"mfa_methods": ["webauthn"]})
    assert (changed_methods.status_code, changed_methods.json()["code"]) == (400, "caller_has_no_factor")


async def test_a_refusal_asks_a_user_without_a_factor_to_enrol(
    platform: RunningPlatform, tenant: Tenant, ada: Member
) -> None:
    await set_policy(platform, tenant, enforcement_level="required", grace_period_hours=0)
    key = {"description": "x"}
    for refused in (await sign_in(ada), await ada.client.post("/api/auth/api-keys", json=key)):
        body = refused.json()
        assert (body["error"], body["enrollment_required"]) == ("mfa_required", True)
        assert "enrol one" in body["message"].lower()
        assert "/api/auth/mfa/totp" in body["message"]
    await enrol(platform, ada, stepped_up=False)
    for refused in (await sign_in(ada), await ada.client.post("/api/auth/api-keys", json=key)):
        body = refused.json()
        assert (body["error"], body.get("enrollment_required", False)) == ("mfa_required", False)
        assert "POST /api/auth/mfa/verify" in body["message"]


async def test_the_shown_policy_includes_the_system_configuration(tenant: Tenant) -> None:
    admin = tenant.admin.client
    assert (await admin.put(CONFIG, json={"value": "true"})).status_code == 200
    assert (await admin.get(POLICY)).json()["enforcement_level"] == "required"
    changed = await admin.put(POLICY, json={"enforcement_level": "optional"})
    assert (changed.status_code, changed.json()["enforcement_level"]) == (200, "required")
    assert (await admin.put(CONFIG, json={"value": "false"})).status_code == 200
    assert (await admin.get(POLICY)).json()["enforcement_level"] == "optional"


async def test_a_passkey_satisfies_the_requirement(platform: RunningPlatform, tenant: Tenant, ada: Member) -> None:
    await set_policy(platform, tenant, enforcement_level="required", grace_period_hours=0)
    token = {"mfa_token": (await sign_in(ada)).json()["mfa_token"]}
    options = await platform.anonymous.post(f"{MFA}/webauthn/register/begin", json=token, headers=LOCALHOST)
    credential = Authenticator().create(options.json()["public_key"])
    answer = await platform.anonymous.post(
        f"{MFA}/webauthn/register/finish", json={**token, "credential": credential}, headers=LOCALHOST
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["tokens"]["user"]["id"] == str(ada.id)


async def test_of_two_enrolment_tokens_only_the_first_enrols(
    platform: RunningPlatform, tenant: Tenant, ada: Member
) -> None:
    """An attacker with the password may also start an enrolment. Only the first enrolment that finishes succeeds."""
    await set_policy(platform, tenant, enforcement_level="required", grace_period_hours=0)
    first, second = [{"mfa_token": (await sign_in(ada)).json()["mfa_token"]} for _ in range(2)]
    secret = (await platform.anonymous.post(f"{MFA}/totp", json=first)).json()["secret"]
    await platform.anonymous.post(f"{MFA}/totp/confirm", json={**first, "code": code_of(secret)})
    for path, body in (("totp", second), ("totp/confirm", {**second, "code": code_of(secret, 1)})):
        answer = await platform.anonymous.post(f"{MFA}/{path}", json=body)
        assert (answer.status_code, answer.json()["error"]) == (403, "second_factor_enrolled")


async def test_a_session_without_a_required_factor_can_enrol_one(
    platform: RunningPlatform, tenant: Tenant, ada: Member
) -> None:
    await set_policy(platform, tenant, enforcement_level="required", grace_period_hours=0)
    assert await make_key(ada) == 403
    await enrol(platform, ada)
    assert await make_key(ada) == 201


async def test_during_the_grace_period_the_login_works_and_returns_the_deadline(
    platform: RunningPlatform, tenant: Tenant, ada: Member
) -> None:
    await age_user(platform, ada, timedelta(days=30))
    await set_policy(platform, tenant, since=timedelta(hours=10), enforcement_level="required", grace_period_hours=24)
    answer = await sign_in(ada)
    until = datetime.fromisoformat(answer.json()["mfa_enrollment_deadline"])
    assert abs((until - datetime.now(UTC)).total_seconds() - 14 * 3600) < 60
    assert await make_key(ada) == 201
    assert (await ada.client.get(MFA)).json()["enrollment_deadline"] == answer.json()["mfa_enrollment_deadline"]


@pytest.mark.parametrize(
    ("changed_hours_ago", "created_hours_ago", "deadline", "is_required"),
    [
        (25, 720, None, True),
        (23, 720, None, False),
        # A user who was created after the policy has the same grace period.
        (720, 23, None, False),
        (720, 25, None, True),
        # A deadline in the past ends every grace period.
        (1, 720, -1, True),
        (720, 0, -1, True),
        (1, 720, 1, False),
        # A deadline in the future does not prolong a grace period.
        (25, 720, 100, True),
    ],
)
async def test_the_grace_period_begins_with_the_policy_or_the_user_and_ends_at_the_deadline(
    platform: RunningPlatform,
    tenant: Tenant,
    ada: Member,
    changed_hours_ago: int,
    created_hours_ago: int,
    deadline: int | None,
    is_required: bool,
) -> None:
    """All parameters are hours, and the grace period is 24 hours."""
    until = None if deadline is None else (datetime.now(UTC) + timedelta(hours=deadline)).isoformat()
    await age_user(platform, ada, timedelta(hours=created_hours_ago))
    await set_policy(
        platform, tenant, since=timedelta(hours=changed_hours_ago),
        enforcement_level="required", grace_period_hours=24, enrollment_deadline=until,
    )  # fmt: skip
    assert (await sign_in(ada)).status_code == (401 if is_required else 200)
    assert await make_key(ada) == (403 if is_required else 201)


async def test_the_configuration_acts_as_the_required_policy_with_its_grace(
    platform: RunningPlatform, tenant: Tenant, ada: Member
) -> None:
    await tenant.admin.client.put("/api/admin/config/mfa_required", json={"value": "true"})
    await age_user(platform, ada, timedelta(days=30))
    until = datetime.fromisoformat((await sign_in(ada)).json()["mfa_enrollment_deadline"])
    assert abs((until - datetime.now(UTC)).total_seconds() - 72 * 3600) < 60
    platform.sql("UPDATE system_config SET updated_at = now() - interval '73 h' WHERE tenant_id = %s", [tenant.id])
    platform.touch("tenant", tenant.id)
    await platform.refresh()
    assert (await sign_in(ada)).json()["enrollment_required"] is True
    assert await make_key(ada) == 403


async def test_only_allowed_methods_are_enrolled(platform: RunningPlatform, tenant: Tenant, ada: Member) -> None:
    await set_policy(platform, tenant, mfa_methods=["webauthn"])
    answer = await ada.client.post(f"{MFA}/totp", json={})
    assert (answer.status_code, answer.json()["error"]) == (403, "method_not_allowed")
    await set_policy(platform, tenant, mfa_methods=["totp"])
    answer = await ada.client.post(f"{MFA}/webauthn/register/begin", json={}, headers=LOCALHOST)
    assert (answer.status_code, answer.json()["error"]) == (403, "method_not_allowed")
    assert (await ada.client.get(MFA)).json()["allowed_methods"] == ["totp"]


async def test_a_method_that_is_no_longer_allowed_does_not_count(
    platform: RunningPlatform, tenant: Tenant, ada: Member
) -> None:
    secret, codes = await enrol(platform, ada, stepped_up=False)
    token = (await sign_in(ada)).json()["mfa_token"]
    await set_policy(platform, tenant, enforcement_level="required", grace_period_hours=0, mfa_methods=["webauthn"])
    for method, code in (("totp", code_of(secret, 1)), ("recovery", codes[0])):
        assert (await verify(platform, token, method, code=code)).json()["error"] == "invalid_code"
    body = (await sign_in(ada)).json()
    assert (body["enrollment_required"], body["methods"]) == (True, ["webauthn"])


@pytest.mark.parametrize("level", ["optional", "required"])
async def test_users_change_their_factors_only_with_a_fresh_second_factor(
    platform: RunningPlatform, tenant: Tenant, ada: Member, level: str
) -> None:
    """This also applies if the policy does not require a second factor for sensitive operations. Otherwise somebody at
    an unlocked browser could create recovery codes or enrol another app, and use them as the second factor."""
    await enrol(platform, ada, stepped_up=False)
    await set_policy(
        platform, tenant, enforcement_level=level, grace_period_hours=0, sensitive_endpoints_require_mfa=False
    )
    claims = {"sub": str(ada.id), "sid": ada.session_id}
    stale = platform.client(platform.signed({**claims, "mfa_at": int(time()) - 1000}))
    fresh = platform.client(platform.signed({**claims, "mfa_at": int(time())}))
    for method, path, body, expected in (
        ("POST", "recovery-codes", {}, 201),
        ("POST", "totp", {}, 201),
        ("POST", "webauthn/register/begin", {}, 200),
        ("DELETE", "totp", {}, 204),
    ):
        for client in (ada.client, stale):
            answer = await client.request(method, f"{MFA}/{path}", json=body, headers=LOCALHOST)
            assert (answer.status_code, answer.json()["error"]) == (403, "mfa_required"), path
        answer = await fresh.request(method, f"{MFA}/{path}", json=body, headers=LOCALHOST)
        assert answer.status_code == expected, (path, answer.text)
    signed_in = await sign_in(ada)
    assert signed_in.json().get("enrollment_required") is (True if level == "required" else None)


async def test_the_policy_does_not_affect_another_organization(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    await platform.require_mfa(tenant.id)
    theirs = await member(platform, other_tenant)
    assert await make_key(theirs) == 201

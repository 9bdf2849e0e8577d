"""Second factors: authenticator apps, recovery codes, sign-in with a second factor, step-up (docs/mfa.md)."""

import asyncio
from base64 import b32encode
from datetime import UTC, datetime
from time import time
from typing import Any

import httpx2
import pytest
from tests.support.members import Member, code_of, enrol, member, sign_in, verify
from tests.support.platform import PASSWORD, RunningPlatform, Tenant

from gatehouse.foundation import jwt
from gatehouse.platform.access.mfa.totp import step_of

MFA = "/api/auth/mfa"
LOGIN = "/api/auth/login"
KEYS = "/api/auth/api-keys"


@pytest.fixture
async def ada(platform: RunningPlatform, tenant: Tenant) -> Member:
    """A user who has just signed in, without a second factor."""
    return await member(platform, tenant)


def claims_of(platform: RunningPlatform, token: str) -> dict[str, Any]:
    issuer = platform.host.issuer
    return dict(jwt.verify(token, platform.host.replica.signing_keys, issuer=issuer, audience=issuer))


def figure(platform: RunningPlatform, method: str, result: str) -> float:
    return platform.host.metrics.mfa_verifications.values.get((method, result), 0)


async def test_an_app_is_enrolled_by_its_first_code(platform: RunningPlatform, tenant: Tenant, ada: Member) -> None:
    enrolment = await ada.client.post(f"{MFA}/totp", json={})
    assert enrolment.status_code == 201, enrolment.text
    secret = enrolment.json()["secret"]
    assert enrolment.json()["otpauth_url"].startswith("otpauth://totp/Gatehouse:")
    assert secret in enrolment.json()["otpauth_url"]
    assert enrolment.json()["qr_code"].startswith("data:image/svg+xml")
    assert (await ada.client.get(MFA)).json()["totp"] is None
    confirmed = await ada.client.post(f"{MFA}/totp/confirm", json={"code": code_of(secret)})
    assert confirmed.status_code == 200, confirmed.text
    codes = confirmed.json()["recovery_codes"]
    assert len(set(codes)) == 10
    status = (await ada.client.get(MFA)).json()
    assert (status["totp"] is not None, status["recovery_codes_left"]) == (True, 10)
    stored = str(platform.sql("SELECT t.*, r.* FROM mfa_totp t, mfa_recovery_codes r WHERE t.user_id = %s", [ada.id]))
    assert secret not in stored
    assert codes[0] not in stored
    (event,) = await platform.audit(tenant, "mfa.enrolled")
    assert (event["actor_id"], event["details"]) == (str(ada.id), {"method": "totp"})
    assert secret not in str(event)


async def test_a_wrong_first_code_enrols_nothing(ada: Member) -> None:
    secret = (await ada.client.post(f"{MFA}/totp", json={})).json()["secret"]
    wrong = f"{(int(code_of(secret)) + 1) % 10**6:06}"
    answer = await ada.client.post(f"{MFA}/totp/confirm", json={"code": wrong})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_code")
    assert (await sign_in(ada)).status_code == 200


async def test_a_login_requires_an_enrolled_method(platform: RunningPlatform, tenant: Tenant, ada: Member) -> None:
    secret, _ = await enrol(platform, ada)
    request = await sign_in(ada)
    body = request.json()
    assert (request.status_code, body["error"], body["methods"]) == (401, "mfa_required", ["totp", "recovery"])
    assert (body["enrollment_required"], "access_token" in body) == (False, False)
    assert body["mfa_token"] not in str(platform.sql("SELECT * FROM pending_logins WHERE user_id = %s", [ada.id]))
    answer = await verify(platform, body["mfa_token"], "totp", code=code_of(secret, 1))
    assert answer.status_code == 200, answer.text
    claims = claims_of(platform, answer.json()["access_token"])
    assert claims["amr"] == ["pwd", "otp", "mfa"]
    assert abs(claims["mfa_at"] - time()) < 30
    assert (await platform.client(answer.json()["access_token"]).get("/api/auth/sessions")).status_code == 200
    refreshed = await platform.anonymous.post(
        "/api/auth/refresh", json={"refresh_token": answer.json()["refresh_token"]}
    )
    assert claims_of(platform, refreshed.json()["access_token"])["mfa_at"] == claims["mfa_at"]
    assert len(await platform.audit(tenant, "login.mfa_required")) == 1
    assert [event["actor_id"] for event in await platform.audit(tenant, "mfa.verified")] == [str(ada.id)]


async def test_a_wrong_password_does_not_disclose_the_second_factor(platform: RunningPlatform, ada: Member) -> None:
    await enrol(platform, ada)
    answer = await platform.anonymous.post(LOGIN, json={"email": ada.email, "password": "a wrong password"})
    unknown = await platform.anonymous.post(LOGIN, json={"email": "x" + ada.email, "password": PASSWORD})
    assert (answer.status_code, answer.text) == (401, unknown.text)


async def test_an_mfa_token_is_valid_only_for_verification(platform: RunningPlatform, ada: Member) -> None:
    await enrol(platform, ada)
    token = (await sign_in(ada)).json()["mfa_token"]
    client = platform.client(token)
    for path in ("/v1/models", "/api/auth/sessions", MFA):
        assert (await client.get(path)).status_code == 401
    for path in ("totp", "webauthn/register/begin"):
        answer = await platform.anonymous.post(
            f"{MFA}/{path}", json={"mfa_token": token}, headers={"Host": "localhost"}
        )
        assert (answer.status_code, answer.json()["error"]) == (403, "second_factor_enrolled")


async def test_a_code_is_valid_only_once(platform: RunningPlatform, ada: Member) -> None:
    secret, _ = await enrol(platform, ada)
    code = code_of(secret, 1)
    assert (await verify(platform, (await sign_in(ada)).json()["mfa_token"], "totp", code=code)).status_code == 200
    again = await verify(platform, (await sign_in(ada)).json()["mfa_token"], "totp", code=code)
    assert (again.status_code, again.json()["error"]) == (401, "invalid_code")
    older = await verify(platform, (await sign_in(ada)).json()["mfa_token"], "totp", code=code_of(secret, 0))
    assert older.status_code == 401


async def test_the_confirming_code_cannot_be_used_again(platform: RunningPlatform, ada: Member) -> None:
    enrolment = await ada.client.post(f"{MFA}/totp", json={})
    code = code_of(enrolment.json()["secret"])
    await ada.client.post(f"{MFA}/totp/confirm", json={"code": code})
    answer = await verify(platform, (await sign_in(ada)).json()["mfa_token"], "totp", code=code)
    assert answer.status_code == 401


async def test_one_of_several_parallel_uses_of_a_code_succeeds(platform: RunningPlatform, ada: Member) -> None:
    secret, _ = await enrol(platform, ada)
    tokens = [(await sign_in(ada)).json()["mfa_token"] for _ in range(4)]
    code = code_of(secret, 1)
    answers = await asyncio.gather(*(verify(platform, token, "totp", code=code) for token in tokens))
    assert sorted(answer.status_code for answer in answers) == [200, 401, 401, 401]


@pytest.mark.parametrize(("steps", "status"), [(-2, 401), (-1, 200), (0, 200), (1, 200), (2, 401)])
async def test_a_clock_may_differ_by_one_step(platform: RunningPlatform, ada: Member, steps: int, status: int) -> None:
    secret, _ = await enrol(platform, ada)
    platform.sql("UPDATE mfa_totp SET last_step = 0 WHERE user_id = %s", [ada.id])
    token = (await sign_in(ada)).json()["mfa_token"]
    # Waits for the next step if the current step could end between the creation and the check of the code.
    while time() % 30 > 25:
        await asyncio.sleep(0.2)
    assert (await verify(platform, token, "totp", code=code_of(secret, steps))).status_code == status


async def test_a_code_may_contain_spaces(platform: RunningPlatform, ada: Member) -> None:
    secret, _ = await enrol(platform, ada)
    code, token = code_of(secret, 1), (await sign_in(ada)).json()["mfa_token"]
    assert (await verify(platform, token, "totp", code=f" {code[:3]} {code[3:]} ")).status_code == 200
    # Without the spaces it is the same code, which was already used.
    token = (await sign_in(ada)).json()["mfa_token"]
    assert (await verify(platform, token, "totp", code=code)).status_code == 401


async def test_an_mfa_token_is_valid_once(platform: RunningPlatform, ada: Member) -> None:
    secret, codes = await enrol(platform, ada)
    token = (await sign_in(ada)).json()["mfa_token"]
    assert (await verify(platform, token, "totp", code=code_of(secret, 1))).status_code == 200
    again = await verify(platform, token, "recovery", code=codes[0])
    assert (again.status_code, again.json()["error"]) == (401, "invalid_mfa_token")


async def test_an_mfa_token_expires(platform: RunningPlatform, ada: Member) -> None:
    _, codes = await enrol(platform, ada)
    token = (await sign_in(ada)).json()["mfa_token"]
    platform.sql("UPDATE pending_logins SET expires_at = now() WHERE user_id = %s", [ada.id])
    answer = await verify(platform, token, "recovery", code=codes[0])
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_mfa_token")


async def test_an_mfa_token_of_a_deactivated_user_is_invalid(platform: RunningPlatform, ada: Member) -> None:
    _, codes = await enrol(platform, ada)
    token = (await sign_in(ada)).json()["mfa_token"]
    platform.sql("UPDATE users SET is_active = false WHERE id = %s", [ada.id])
    assert (await verify(platform, token, "recovery", code=codes[0])).json()["error"] == "invalid_mfa_token"


async def test_five_wrong_codes_invalidate_the_token(platform: RunningPlatform, tenant: Tenant, ada: Member) -> None:
    _, codes = await enrol(platform, ada)
    token = (await sign_in(ada)).json()["mfa_token"]
    before = figure(platform, "totp", "failure")
    for _ in range(5):
        assert (await verify(platform, token, "totp", code="not-it")).json()["error"] == "invalid_code"
    answer = await verify(platform, token, "recovery", code=codes[0])
    assert answer.json()["error"] == "invalid_mfa_token"
    assert figure(platform, "totp", "failure") == before + 5
    events = await platform.audit(tenant, "mfa.failed")
    assert [(event["outcome"], event["actor_id"]) for event in events] == [("failure", None)] * 5


async def test_after_ten_wrong_codes_a_right_code_is_refused_for_a_minute(
    platform: RunningPlatform, ada: Member
) -> None:
    secret, _ = await enrol(platform, ada)
    for _ in range(2):
        token = (await sign_in(ada)).json()["mfa_token"]
        for _ in range(5):
            await verify(platform, token, "totp", code="000000x")
    before = figure(platform, "totp", "limited")
    answer = await verify(platform, (await sign_in(ada)).json()["mfa_token"], "totp", code=code_of(secret, 1))
    assert (answer.status_code, answer.json()["error"]) == (429, "too_many_attempts")
    assert 0 < int(answer.headers["retry-after"]) <= 61
    assert figure(platform, "totp", "limited") == before + 1
    # Attempts in a session count too, because they are counted by user.
    answer_in_session = await ada.client.post(f"{MFA}/verify", json={"method": "totp", "code": code_of(secret, 1)})
    assert answer_in_session.status_code == 429
    platform.sql("UPDATE mfa_attempts SET since = since - interval '61 s' WHERE user_id = %s", [ada.id])
    answer = await verify(platform, (await sign_in(ada)).json()["mfa_token"], "totp", code=code_of(secret, 1))
    assert answer.status_code == 200


async def test_after_a_hundred_wrong_codes_a_day_every_code_is_refused(platform: RunningPlatform, ada: Member) -> None:
    secret, _ = await enrol(platform, ada)
    await verify(platform, (await sign_in(ada)).json()["mfa_token"], "totp", code="000000x")
    platform.sql("UPDATE mfa_attempts SET wrong = 100 WHERE user_id = %s AND span_seconds = 86400", [ada.id])
    answer = await verify(platform, (await sign_in(ada)).json()["mfa_token"], "totp", code=code_of(secret, 1))
    assert answer.status_code == 429


async def test_parallel_guesses_are_all_counted(platform: RunningPlatform, ada: Member) -> None:
    await enrol(platform, ada)
    tokens = [(await sign_in(ada)).json()["mfa_token"] for _ in range(5)]
    guesses = [verify(platform, token, "totp", code=f"x{n}") for n in range(4) for token in tokens]
    answers = await asyncio.gather(*guesses)
    assert sorted(answer.status_code for answer in answers) == [401] * 10 + [429] * 10


async def test_a_recovery_code_is_valid_once(platform: RunningPlatform, ada: Member) -> None:
    _, codes = await enrol(platform, ada)
    typed = codes[0].upper().replace("-", " ")
    first = await verify(platform, (await sign_in(ada)).json()["mfa_token"], "recovery", code=typed)
    assert first.status_code == 200
    again = await verify(platform, (await sign_in(ada)).json()["mfa_token"], "recovery", code=codes[0])
    assert again.status_code == 401
    assert (await platform.client(first.json()["access_token"]).get(MFA)).json()["recovery_codes_left"] == 9


async def test_another_users_recovery_code_is_refused(platform: RunningPlatform, tenant: Tenant, ada: Member) -> None:
    bob = await member(platform, tenant)
    await enrol(platform, ada)
    _, codes = await enrol(platform, bob)
    answer = await verify(platform, (await sign_in(ada)).json()["mfa_token"], "recovery", code=codes[0])
    assert answer.status_code == 401


async def test_new_recovery_codes_invalidate_earlier_ones(
    platform: RunningPlatform, tenant: Tenant, ada: Member
) -> None:
    _, codes = await enrol(platform, ada)
    answer = await ada.client.post(f"{MFA}/recovery-codes")
    newer = answer.json()["recovery_codes"]
    assert (answer.status_code, len(newer), set(newer) & set(codes)) == (201, 10, set())
    assert (await verify(platform, (await sign_in(ada)).json()["mfa_token"], "recovery", code=codes[0])).is_error
    assert (await verify(platform, (await sign_in(ada)).json()["mfa_token"], "recovery", code=newer[0])).is_success
    assert len(await platform.audit(tenant, "mfa.recovery_codes_made")) == 2


async def test_without_a_method_there_are_no_recovery_codes(ada: Member) -> None:
    answer = await ada.client.post(f"{MFA}/recovery-codes")
    assert (answer.status_code, answer.json()["error"]) == (409, "nothing_enrolled")


async def test_sensitive_operations_require_step_up_of_users_with_a_method(
    platform: RunningPlatform, ada: Member
) -> None:
    secret, _ = await enrol(platform, ada, stepped_up=False)
    refused = await ada.client.post(KEYS, json={"description": "x"})
    assert (refused.status_code, refused.json()["error"]) == (403, "mfa_required")
    before = figure(platform, "totp", "success")
    stepped = await ada.client.post(f"{MFA}/verify", json={"method": "totp", "code": code_of(secret, 1)})
    assert stepped.status_code == 200, stepped.text
    assert figure(platform, "totp", "success") == before + 1
    # The response has no refresh token, because the session keeps its own.
    assert stepped.json()["refresh_token"] is None
    claims = claims_of(platform, stepped.json()["access_token"])
    assert (claims["sid"], claims["amr"]) == (ada.session_id, ["pwd", "otp", "mfa"])
    client = platform.client(stepped.json()["access_token"])
    assert (await client.post(KEYS, json={"description": "x"})).status_code == 201
    # The earlier token is still valid, but not stepped up.
    assert (await ada.client.post(KEYS, json={"description": "x"})).status_code == 403


async def test_a_step_up_expires(platform: RunningPlatform, tenant: Tenant, ada: Member) -> None:
    await enrol(platform, ada)
    platform.sql("UPDATE tenants SET mfa_policy = '{\"mfa_assertion_ttl_seconds\": 60}' WHERE id = %s", [tenant.id])
    platform.touch("tenant", tenant.id)
    await platform.refresh()
    session = {"sub": str(ada.id), "sid": ada.session_id}
    for age, status in ((50, 201), (70, 403)):
        client = platform.client(platform.signed({**session, "mfa_at": int(time()) - age}))
        assert (await client.post(KEYS, json={"description": "x"})).status_code == status, age


async def test_a_wrong_code_in_a_session_changes_nothing(platform: RunningPlatform, ada: Member) -> None:
    await enrol(platform, ada)
    platform.sql("UPDATE sessions SET mfa_at = NULL, amr = '[\"pwd\"]' WHERE user_id = %s", [ada.id])
    answer = await ada.client.post(f"{MFA}/verify", json={"method": "totp", "code": "not-it"})
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_code")
    (session,) = (await ada.client.get("/api/auth/sessions")).json()
    assert (session["mfa_at"], session["amr"]) == (None, ["pwd"])


async def test_a_second_app_replaces_the_first(platform: RunningPlatform, ada: Member) -> None:
    old, _ = await enrol(platform, ada)
    enrolment = await ada.client.post(f"{MFA}/totp", json={})
    new = enrolment.json()["secret"]
    assert (await verify(platform, (await sign_in(ada)).json()["mfa_token"], "totp", code=code_of(old, 1))).is_success
    confirmed = await ada.client.post(f"{MFA}/totp/confirm", json={"code": code_of(new)})
    assert (confirmed.status_code, confirmed.json()["recovery_codes"]) == (200, None)
    platform.sql("UPDATE mfa_totp SET last_step = 0 WHERE user_id = %s", [ada.id])
    assert (await verify(platform, (await sign_in(ada)).json()["mfa_token"], "totp", code=code_of(old))).is_error
    assert (await verify(platform, (await sign_in(ada)).json()["mfa_token"], "totp", code=code_of(new))).is_success


async def test_enrolling_another_method_requires_step_up(platform: RunningPlatform, ada: Member) -> None:
    await enrol(platform, ada, stepped_up=False)
    for path in ("totp", "webauthn/register/begin"):
        answer = await ada.client.post(f"{MFA}/{path}", json={}, headers={"Host": "localhost"})
        assert (answer.status_code, answer.json()["error"]) == (403, "mfa_required")


async def test_after_the_method_is_removed_a_login_needs_no_second_factor(
    platform: RunningPlatform, tenant: Tenant, ada: Member
) -> None:
    await enrol(platform, ada)
    assert (await ada.client.delete(f"{MFA}/totp")).status_code == 204
    assert (await sign_in(ada)).status_code == 200
    assert (await ada.client.get(MFA)).json()["recovery_codes_left"] == 0
    (event,) = await platform.audit(tenant, "mfa.removed")
    assert (event["actor_id"], event["details"]) == (str(ada.id), {"method": "totp"})
    assert (await ada.client.delete(f"{MFA}/totp")).status_code == 404


async def test_removing_a_method_needs_a_fresh_second_factor(platform: RunningPlatform, ada: Member) -> None:
    await enrol(platform, ada, stepped_up=False)
    for path in (f"{MFA}/totp", f"{MFA}/webauthn/{ada.id}"):
        assert (await ada.client.delete(path)).json()["error"] == "mfa_required"


async def test_an_administrator_resets_a_users_methods(platform: RunningPlatform, tenant: Tenant, ada: Member) -> None:
    await enrol(platform, ada)
    assert (await tenant.admin.client.delete(f"/api/admin/users/{ada.id}/mfa")).status_code == 204
    # The reset also ends the user's sessions, because whoever has the user's lost phone may be signed in on it.
    assert (await ada.client.get(MFA)).status_code == 401
    assert (await sign_in(ada)).status_code == 200
    (event,) = await platform.audit(tenant, "mfa.reset")
    assert (event["actor_id"], event["resource_id"]) == (str(tenant.admin.id), str(ada.id))


async def test_only_permitted_roles_reset_second_factors(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, ada: Member
) -> None:
    await enrol(platform, ada)
    path = f"/api/admin/users/{ada.id}/mfa"
    assert (await platform.anonymous.delete(path)).status_code == 401
    for person in (tenant.user, tenant.auditor):
        assert (await person.client.delete(path)).status_code == 403
    assert (await other_tenant.admin.client.delete(path)).status_code == 404
    await platform.require_mfa(tenant.id)
    assert (await tenant.admin.client.delete(path)).json()["error"] == "mfa_required"
    assert (await sign_in(ada)).json()["error"] == "mfa_required"


async def test_a_machine_cannot_reset_an_administrators_factors(platform: RunningPlatform, tenant: Tenant) -> None:
    machine = await platform.new_m2m(tenant.id, "admin:write", "api:read", "api:write", "chat:write")
    assert (await machine.delete(f"/api/admin/users/{tenant.admin.id}/mfa")).status_code == 403
    assert (await machine.delete(f"/api/admin/users/{tenant.user.id}/mfa")).status_code == 204


async def test_keys_and_machines_have_no_second_factor(platform: RunningPlatform, tenant: Tenant) -> None:
    key = platform.client(await platform.new_key(tenant.user))
    machine = await platform.new_m2m(tenant.id, "admin:write", "admin:read")
    for client, status in ((key, 403), (machine, 403)):
        assert (await client.get(MFA)).status_code == status
        for path in ("totp", "totp/confirm", "verify", "recovery-codes", "webauthn/assert/begin"):
            assert (await client.post(f"{MFA}/{path}", json={})).status_code == status


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("verify", {"method": "sms", "code": "1"}, "method"),
        ("verify", {"method": "totp"}, "code"),
        ("verify", {"method": "webauthn", "code": "1"}, "credential"),
        ("verify", {"method": "totp", "code": ""}, "code"),
        ("verify", {"method": "totp", "code": "1", "token": "x"}, "token"),
        ("totp/confirm", {}, "code"),
        ("totp/confirm", {"code": 123456}, "code"),
        ("webauthn/register/finish", {"name": "x"}, "credential"),
        ("webauthn/register/finish", {"name": "", "credential": {}}, "name"),
        ("webauthn/assert/finish", {"credential": "x"}, "credential"),
    ],
)
async def test_bad_input_names_the_field(ada: Member, path: str, body: dict[str, Any], field: str) -> None:
    answer = await ada.client.post(f"{MFA}/{path}", json=body)
    assert (answer.status_code, answer.json()["detail"][0]["loc"][-1]) == (422, field), answer.text


@pytest.mark.parametrize("token", ["", "mfa_unknown", "x" * 255, "ä", None, 7])
async def test_a_token_that_was_never_issued_is_401(platform: RunningPlatform, token: object) -> None:
    answer = await platform.anonymous.post(
        f"{MFA}/verify", json={"mfa_token": token, "method": "totp", "code": "123456"}
    )
    assert answer.status_code == 401


async def test_an_ended_session_is_not_stepped_up(platform: RunningPlatform, ada: Member) -> None:
    secret, _ = await enrol(platform, ada, stepped_up=False)
    platform.sql("UPDATE sessions SET revoked_at = now() WHERE user_id = %s", [ada.id])
    answer: httpx2.Response = await ada.client.post(
        f"{MFA}/verify", json={"method": "totp", "code": code_of(secret, 1)}
    )
    assert answer.status_code == 401


async def test_a_sealed_secret_is_bound_to_its_row(platform: RunningPlatform, tenant: Tenant, ada: Member) -> None:
    """An attacker who can write to the table, but lacks the master key, cannot set a user's secret."""
    bob = await member(platform, tenant)
    mine, _ = await enrol(platform, bob)
    await enrol(platform, ada)
    platform.sql(
        "UPDATE mfa_totp a SET sealed_secret = b.sealed_secret, last_step = 0 FROM mfa_totp b"
        " WHERE a.user_id = %s AND b.user_id = %s",
        [ada.id, bob.id],
    )
    answer = await verify(platform, (await sign_in(ada)).json()["mfa_token"], "totp", code=code_of(mine))
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_code")


async def test_the_status_contains_the_requirements(platform: RunningPlatform, tenant: Tenant, ada: Member) -> None:
    status = (await ada.client.get(MFA)).json()
    assert status["enforcement_level"] == "optional"
    assert (status["allowed_methods"], status["enrollment_deadline"]) == (["totp", "webauthn"], None)
    await enrol(platform, ada)
    verified = datetime.fromisoformat((await ada.client.get(MFA)).json()["verified_at"])
    assert abs((datetime.now(UTC) - verified).total_seconds()) < 30


def test_the_codes_match_the_standard() -> None:
    """RFC 6238, appendix B, SHA-1, the last six digits."""
    secret = b32encode(b"12345678901234567890").decode()
    for now, code in ((59, "287082"), (1111111109, "081804"), (1234567890, "005924"), (2000000000, "279037")):
        assert step_of(secret, code, now=now, after=0) == now // 30

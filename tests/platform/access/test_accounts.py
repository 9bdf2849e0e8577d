"""A user's own account: registration and password (docs/accounts.md)."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from tests.support.members import code_of, enrol, member, sign_in, verify
from tests.support.platform import PASSWORD, RunningPlatform, Tenant

REGISTER = "/api/auth/register"
USERS = "/api/admin/users"
NEW = "another password"


def address(domain: str = "example.test") -> str:
    return f"ada-{uuid4().hex[:10]}@{domain}"


@pytest.fixture
def domain(platform: RunningPlatform, tenant: Tenant) -> str:
    """A verified domain of the tenant that is open for registration."""
    name = f"{uuid4().hex[:10]}.test"
    platform.sql(
        "INSERT INTO allowed_domains (tenant_id, domain, self_registration, verified_at) VALUES (%s, %s, true, now())",
        [tenant.id, name],
    )
    return name


async def register(platform: RunningPlatform, email: str, **body: Any) -> httpx2.Response:
    return await platform.anonymous.post(REGISTER, json={"email": email, "password": PASSWORD, **body})


async def login(platform: RunningPlatform, email: str, password: str = PASSWORD) -> httpx2.Response:
    return await platform.anonymous.post("/api/auth/login", json={"email": email, "password": password})


async def test_an_address_of_an_open_domain_can_register(
    platform: RunningPlatform, tenant: Tenant, domain: str
) -> None:
    email = address(domain)
    answer = await register(platform, email.upper(), display_name="Ada", username="ada")
    assert answer.status_code == 202, answer.text
    await platform.host.later.settle()
    signed_in = await login(platform, email)
    created = signed_in.json()["user"]
    assert (created["tenant_id"], created["role"], created["operator"]) == (str(tenant.id), "user", False)
    assert (created["display_name"], created["username"]) == ("Ada", "ada")
    assert (await platform.client(signed_in.json()["access_token"]).get("/v1/models")).status_code == 200
    (event,) = await platform.audit(tenant, "user.registered")
    assert event["actor_id"] == created["id"]
    assert PASSWORD not in str(event)


@pytest.mark.parametrize("flaw", ["verified_at = NULL", "self_registration = false", "domain = domain || '.test'"])
async def test_addresses_of_other_domains_cannot_register(platform: RunningPlatform, domain: str, flaw: str) -> None:
    platform.sql(f"UPDATE allowed_domains SET {flaw} WHERE domain = %s", [domain])
    answer = await register(platform, address(domain))
    assert (answer.status_code, answer.json()["error"]) == (403, "registration_closed")


async def test_a_subdomain_is_another_domain(platform: RunningPlatform, domain: str) -> None:
    assert (await register(platform, address(f"sub.{domain}"))).status_code == 403


@pytest.mark.parametrize("body", [{"role": "admin"}, {"operator": True}, {"tenant_id": "x"}, {"kind": "service"}])
async def test_registration_gives_the_lowest_role(platform: RunningPlatform, domain: str, body: dict[str, Any]) -> None:
    assert (await register(platform, address(domain), **body)).status_code == 422


async def test_an_invitation_is_valid_for_its_user(platform: RunningPlatform, tenant: Tenant) -> None:
    email = address()
    invited = (await tenant.admin.client.post(USERS, json={"email": email, "role": "auditor"})).json()
    token = invited["invitation_token"]
    assert (await register(platform, address(), invitation_token=token)).status_code == 403
    answer = await register(platform, email, invitation_token=token, display_name="Ada")
    assert answer.status_code == 201, answer.text
    accepted = answer.json()
    assert (accepted["id"], accepted["role"], accepted["display_name"]) == (invited["id"], "auditor", "Ada")
    assert (await login(platform, email)).status_code == 200
    assert (await register(platform, email, invitation_token=token)).status_code == 403


async def test_an_invitation_is_valid_once_even_in_parallel(platform: RunningPlatform, tenant: Tenant) -> None:
    email = address()
    token = (await tenant.admin.client.post(USERS, json={"email": email})).json()["invitation_token"]
    answers = await asyncio.gather(*(register(platform, email, invitation_token=token) for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [201, 403, 403, 403]


async def test_a_reset_replaces_a_lost_invitation(platform: RunningPlatform, tenant: Tenant) -> None:
    email = address()
    invited = (await tenant.admin.client.post(USERS, json={"email": email})).json()
    reset = (await tenant.admin.client.post(f"{USERS}/{invited['id']}/password-reset")).json()["token"]
    assert (await register(platform, email, invitation_token=invited["invitation_token"])).status_code == 403
    body = {"token": reset, "password": PASSWORD}
    assert (await platform.anonymous.post("/api/auth/password/reset", json=body)).status_code == 204
    assert (await login(platform, email)).status_code == 200


@pytest.mark.parametrize("cause", ["expired", "unknown", "a reset token", "deactivated"])
async def test_an_invalid_invitation_is_refused(platform: RunningPlatform, tenant: Tenant, cause: str) -> None:
    email = address()
    invited = (await tenant.admin.client.post(USERS, json={"email": email})).json()
    token = invited["invitation_token"]
    if cause == "expired":
        platform.sql("UPDATE one_time_tokens SET expires_at = now() WHERE user_id = %s", [invited["id"]])
    elif cause == "unknown":
        token = "inv_unknown"
    elif cause == "a reset token":
        token = (await tenant.admin.client.post(f"{USERS}/{invited['id']}/password-reset")).json()["token"]
    else:
        await tenant.admin.client.patch(f"{USERS}/{invited['id']}", json={"is_active": False})
    answer = await register(platform, email, invitation_token=token)
    assert (answer.status_code, answer.json()["error"]) == (403, "registration_closed")


async def test_a_password_is_changed_with_the_old_one(platform: RunningPlatform, tenant: Tenant) -> None:
    email = address()
    await tenant.admin.client.post(USERS, json={"email": email, "password": PASSWORD})
    mine, other = [platform.client((await login(platform, email)).json()["access_token"]) for _ in range(2)]
    path = "/api/auth/password/change"
    wrong = await mine.post(path, json={"current_password": "not it at all", "new_password": NEW})
    assert (wrong.status_code, set(wrong.json())) == (403, {"detail"})
    short = await mine.post(path, json={"current_password": PASSWORD, "new_password": "short"})
    assert short.json()["detail"][0]["loc"] == ["body", "new_password"]
    assert (await mine.post(path, json={"current_password": PASSWORD, "new_password": NEW})).status_code == 204
    assert (await mine.get("/v1/models")).status_code == 200
    assert (await other.get("/v1/models")).status_code == 401
    assert (await login(platform, email)).status_code == 401
    assert (await login(platform, email, NEW)).status_code == 200
    events = await platform.audit(tenant, "user.password_changed")
    assert [event["outcome"] for event in events] == ["failure", "success"]
    assert NEW not in str(events)
    assert PASSWORD not in str(events)


async def test_a_common_password_is_refused_everywhere(platform: RunningPlatform, tenant: Tenant, domain: str) -> None:
    """Frequently leaked passwords, and passwords derived from the address, are refused. An existing `PASSWORD` stays
    valid."""
    email, common = address(domain), "Password1"
    invited = (await tenant.admin.client.post(USERS, json={"email": email})).json()
    reset = (await tenant.admin.client.post(f"{USERS}/{(await user(tenant))['id']}/password-reset")).json()["token"]
    ada = await member(platform, tenant)
    change = {"current_password": PASSWORD, "new_password": common}
    answers = [
        await register(platform, address(domain), password=common),
        await register(platform, f"somebody.{domain}@{domain}", password=f"somebody.{domain}1"),
        await register(platform, email, password=common, invitation_token=invited["invitation_token"]),
        await platform.anonymous.post("/api/auth/password/reset", json={"token": reset, "password": common}),
        await ada.client.post("/api/auth/password/change", json=change),
        await tenant.admin.client.post(USERS, json={"email": address(), "password": common}),
    ]
    assert [answer.status_code for answer in answers] == [422] * 6
    fields = [answer.json()["detail"][0]["loc"] for answer in answers]
    assert fields == [["body", "new_password"] if index == 4 else ["body", "password"] for index in range(6)]
    assert common not in "".join(answer.text for answer in answers)


async def user(tenant: Tenant) -> dict[str, Any]:
    resource: dict[str, Any] = (await tenant.admin.client.post(USERS, json={"email": address()})).json()
    return resource


async def test_only_a_session_changes_a_password(platform: RunningPlatform, tenant: Tenant) -> None:
    body = {"current_password": PASSWORD, "new_password": NEW}
    key = platform.client(await platform.new_key(tenant.user))
    assert (await key.post("/api/auth/password/change", json=body)).status_code == 403
    assert (await platform.anonymous.post("/api/auth/password/change", json=body)).status_code == 401


async def test_a_password_is_reset_with_an_administrators_token(platform: RunningPlatform, tenant: Tenant) -> None:
    email = address()
    created = (await tenant.admin.client.post(USERS, json={"email": email, "password": PASSWORD})).json()
    session = platform.client((await login(platform, email)).json()["access_token"])
    issue = f"{USERS}/{created['id']}/password-reset"
    first = (await tenant.admin.client.post(issue)).json()["token"]
    answer = await tenant.admin.client.post(issue)
    assert answer.status_code == 201
    token = answer.json()["token"]
    # The old password stays valid until the reset. The earlier token is void at once.
    assert (await login(platform, email)).status_code == 200
    reset = "/api/auth/password/reset"
    assert (await platform.anonymous.post(reset, json={"token": first, "password": NEW})).status_code == 400
    assert (await platform.anonymous.post(reset, json={"token": token, "password": NEW})).status_code == 204
    assert (await session.get("/v1/models")).status_code == 401
    assert (await login(platform, email)).status_code == 401
    assert (await login(platform, email, NEW)).status_code == 200
    again = await platform.anonymous.post(reset, json={"token": token, "password": NEW + "!"})
    assert (again.status_code, set(again.json())) == (400, {"detail"})
    for action in ("user.password_reset_issued", "user.password_reset"):
        events = await platform.audit(tenant, action)
        assert events
        assert token not in str(events)


@pytest.mark.parametrize("cause", ["expired", "unknown", "an invitation", "password changed"])
async def test_an_invalid_reset_token_is_refused(platform: RunningPlatform, tenant: Tenant, cause: str) -> None:
    email = address()
    created = (await tenant.admin.client.post(USERS, json={"email": email, "password": PASSWORD})).json()
    token = (await tenant.admin.client.post(f"{USERS}/{created['id']}/password-reset")).json()["token"]
    if cause == "expired":
        platform.sql("UPDATE one_time_tokens SET expires_at = now() WHERE user_id = %s", [created["id"]])
    elif cause == "unknown":
        token = "pwr_unknown"
    elif cause == "an invitation":
        token = (await tenant.admin.client.post(USERS, json={"email": address()})).json()["invitation_token"]
    else:
        client = platform.client((await login(platform, email)).json()["access_token"])
        body = {"current_password": PASSWORD, "new_password": "a third password"}
        assert (await client.post("/api/auth/password/change", json=body)).status_code == 204
    answer = await platform.anonymous.post("/api/auth/password/reset", json={"token": token, "password": NEW})
    assert answer.status_code == 400


@pytest.mark.parametrize("cause", ["changed", "reset", "deactivated for a while"])
async def test_a_pending_sign_in_ends_when_its_password_is_changed(
    platform: RunningPlatform, tenant: Tenant, cause: str
) -> None:
    """Without this, a stolen password would be usable for ten minutes after its owner has replaced it."""
    ada = await member(platform, tenant)
    secret, _ = await enrol(platform, ada)
    mfa_token = (await sign_in(ada)).json()["mfa_token"]
    path = f"{USERS}/{ada.id}"
    if cause == "changed":
        body = {"current_password": PASSWORD, "new_password": NEW}
        assert (await ada.client.post("/api/auth/password/change", json=body)).status_code == 204
    elif cause == "reset":
        token = (await tenant.admin.client.post(f"{path}/password-reset")).json()["token"]
        body = {"token": token, "password": NEW}
        assert (await platform.anonymous.post("/api/auth/password/reset", json=body)).status_code == 204
    else:
        for active in (False, True):
            assert (await tenant.admin.client.patch(path, json={"is_active": active})).status_code == 200
    answer = await verify(platform, mfa_token, "totp", code=code_of(secret))
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_mfa_token")

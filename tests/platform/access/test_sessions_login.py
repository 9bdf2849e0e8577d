"""Sign-in with a password (docs/accounts.md, docs/sessions.md)."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import event
from tests.support.pages import Visitor
from tests.support.platform import PASSWORD, RunningPlatform, Tenant

from gatehouse.foundation import jwt
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets.passwords import hash_now

LOGIN = "/api/auth/login"
#: One hash for all users, because hashing is slow.
HASH = hash_now(PASSWORD)

Member = Callable[..., Awaitable[UUID]]


@pytest.fixture
def member(platform: RunningPlatform) -> Member:
    """Create a user of a tenant with the password."""

    async def make(tenant: Tenant, email: str, **columns: Any) -> UUID:
        values = {"id": new_id(), "tenant_id": tenant.id, "email": email, "password_hash": HASH, **columns}
        names, places = ", ".join(values), ", ".join(["%s"] * len(values))
        platform.sql(f"INSERT INTO users ({names}) VALUES ({places})", list(values.values()))
        platform.touch("user", values["id"])
        await platform.refresh()
        return values["id"]

    return make


def address(domain: str = "example.test") -> str:
    return f"ada-{uuid4().hex[:10]}@{domain}"


def prove(platform: RunningPlatform, tenant: Tenant, domain: str, *, jit: bool = False) -> None:
    platform.sql(
        "INSERT INTO allowed_domains (tenant_id, domain, jit_provisioning, verified_at) VALUES (%s, %s, %s, now())",
        [tenant.id, domain, jit],
    )


async def test_a_login_returns_valid_tokens(platform: RunningPlatform, tenant: Tenant, member: Member) -> None:
    email = address()
    user_id = await member(tenant, email, username="Ada-" + email[4:10])
    answer = await platform.anonymous.post(
        LOGIN, json={"email": email.upper(), "password": PASSWORD}, headers={"User-Agent": "a browser"}
    )
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert set(body) == {"access_token", "token_type", "expires_in", "refresh_token", "user", "mfa_enrollment_deadline"}
    assert (body["token_type"], body["expires_in"]) == ("bearer", 900)
    assert (body["user"]["id"], body["user"]["email"], body["user"]["role"]) == (str(user_id), email, "user")
    assert body["user"]["last_login_at"] is not None
    assert "password" not in str(body["user"])
    claims = jwt.verify(
        body["access_token"],
        platform.host.replica.signing_keys,
        issuer=platform.host.issuer,
        audience=platform.host.issuer,
    )
    assert set(claims) >= {"iss", "aud", "iat", "exp", "jti", "sub", "tid", "sid", "role"}
    assert (claims["sub"], claims["tid"], claims["role"]) == (str(user_id), str(tenant.id), "user")
    assert claims["exp"] - claims["iat"] == 900
    client = platform.client(body["access_token"])
    (session,) = (await client.get("/api/auth/sessions")).json()
    assert (session["id"], session["user_agent"], session["current"]) == (claims["sid"], "a browser", True)
    (event,) = await platform.audit(tenant, "login.succeeded")
    assert (event["actor_id"], event["outcome"]) == (str(user_id), "success")
    assert PASSWORD not in str(event)


async def test_a_user_name_signs_in_too(platform: RunningPlatform, tenant: Tenant, member: Member) -> None:
    name, email = f"Ada-{uuid4().hex[:8]}", address()
    await member(tenant, email, username=name)
    for login_name in (name, name.lower(), email):
        answer = await platform.anonymous.post(LOGIN, json={"username": login_name, "password": PASSWORD})
        assert answer.status_code == 200


async def test_all_failures_look_the_same(platform: RunningPlatform, tenant: Tenant, member: Member) -> None:
    email, inactive, service, invited = address(), address(), address(), address()
    await member(tenant, email)
    await member(tenant, inactive, is_active=False)
    await member(tenant, service, kind="service", password_hash=None)
    await member(tenant, invited, password_hash=None)
    answers = [
        await platform.anonymous.post(LOGIN, json=body)
        for body in (
            {"email": email, "password": "wrong password"},
            {"email": email, "password": PASSWORD + " "},
            {"email": email, "password": PASSWORD, "tenant": "no-such-tenant"},
            {"email": address(), "password": PASSWORD},
            {"email": inactive, "password": PASSWORD},
            {"email": service, "password": "nobody has this password"},
            {"email": invited, "password": "nobody has this password"},
            {"username": "nobody", "password": ""},
            {"email": "not an address' OR 1=1 --", "password": PASSWORD},
        )
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert {answer.text for answer in answers} == {answers[0].text}
    assert set(answers[0].json()) == {"detail"}


async def test_a_failure_is_recorded_only_for_a_known_user(
    platform: RunningPlatform, tenant: Tenant, member: Member
) -> None:
    email = address()
    user_id = await member(tenant, email)
    await platform.anonymous.post(LOGIN, json={"email": email, "password": "a wrong password"})
    await platform.host.later.settle()
    (event,) = await platform.audit(tenant, "login.failed")
    assert (event["resource_id"], event["outcome"], event["actor_id"]) == (str(user_id), "failure", None)
    assert "a wrong password" not in str(event)
    before = platform.sql("SELECT count(*) FROM audit_events WHERE action = 'login.failed'")
    await platform.anonymous.post(LOGIN, json={"email": address(), "password": "a wrong password"})
    await platform.host.later.settle()
    assert platform.sql("SELECT count(*) FROM audit_events WHERE action = 'login.failed'") == before


async def at_the_api(platform: RunningPlatform, email: str) -> None:
    answer = await platform.anonymous.post(LOGIN, json={"email": email, "password": "wrong password"})
    assert answer.status_code == 401


async def on_the_page(platform: RunningPlatform, email: str) -> None:
    visitor = Visitor(platform)
    await visitor.sign_in(email, "wrong password")
    assert visitor.page.status_code == 401
    await visitor.client.aclose()


@pytest.mark.parametrize("attempt", [at_the_api, on_the_page])
async def test_every_failed_attempt_does_the_same_work(
    platform: RunningPlatform,
    tenant: Tenant,
    member: Member,
    monkeypatch: pytest.MonkeyPatch,
    attempt: Callable[[RunningPlatform, str], Awaitable[None]],
) -> None:
    """Every attempt makes the same number of hashes and executes the same statements. Further work for a known address
    runs after the response."""
    known, inactive, service, invited = (address() for _ in range(4))
    await member(tenant, known)
    await member(tenant, inactive, is_active=False)
    await member(tenant, service, kind="service", password_hash=None)
    await member(tenant, invited, password_hash=None)
    steps: list[str] = []
    matches = platform.host.passwords._matches

    def record_hash(stored_hash: str, password: bytes) -> bool:
        steps.append("a hash")
        return matches(stored_hash, password)

    async def discard(work: Coroutine[Any, Any, None]) -> None:
        work.close()

    test_task = asyncio.current_task()

    def record_statement(_c: Any, _k: Any, statement: str, *_: Any) -> None:
        # Leaves out the statements of the platform's background tasks.
        if asyncio.current_task() is test_task:
            steps.append(statement)

    monkeypatch.setattr(platform.host.passwords, "_matches", record_hash)
    monkeypatch.setattr(platform.host.later, "run", discard)
    engines = [platform.host.database._app.sync_engine, platform.host.database._service.sync_engine]
    for engine in engines:
        event.listen(engine, "before_cursor_execute", record_statement)
    costs = []
    try:
        for email in (address(), known, inactive, service, invited):
            steps.clear()
            await attempt(platform, email)
            costs.append(list(steps))
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", record_statement)
    # The platform computes one hash for each organization, but at most eight.
    (organizations,) = platform.sql("SELECT least(8, count(*)) FROM tenants WHERE deleted_at IS NULL")[0]
    assert costs[0].count("a hash") == organizations
    assert len(costs[0]) > 1
    assert costs == [costs[0]] * len(costs)


async def test_an_address_and_password_that_two_tenants_share_need_the_tenant(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, member: Member
) -> None:
    email = address()
    mine, theirs = await member(tenant, email), await member(other_tenant, email)
    body = {"email": email, "password": PASSWORD}
    several = await platform.anonymous.post(LOGIN, json=body)
    assert (several.status_code, several.json()["error"]) == (400, "tenant_required")
    assert several.json()["tenants"] == [tenant.slug, other_tenant.slug]
    wrong = await platform.anonymous.post(LOGIN, json={**body, "password": "a wrong password"})
    assert (wrong.status_code, set(wrong.json())) == (401, {"detail"})
    for where, who in ((tenant, mine), (other_tenant, theirs)):
        answer = await platform.anonymous.post(LOGIN, json={**body, "tenant": where.slug})
        assert answer.json()["user"]["id"] == str(who)
    platform.sql("UPDATE users SET is_active = false WHERE id = %s", [theirs])
    assert (await platform.anonymous.post(LOGIN, json=body)).json()["user"]["id"] == str(mine)


async def test_an_account_with_the_same_address_in_another_organization_does_not_prevent_a_sign_in(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, member: Member
) -> None:
    """Any organization can create users with addresses of domains that it has not verified."""
    email = address()
    mine = await member(tenant, email)
    body = {"email": email, "password": PASSWORD}
    twin = {"email": email, "password": "what the other administrator chose"}
    assert (await other_tenant.admin.client.post("/api/admin/users", json=twin)).status_code == 201
    username = f"{uuid4().hex[:10]}-shared"
    assert (await platform.anonymous.post(LOGIN, json=body)).json()["user"]["id"] == str(mine)
    theirs = (await platform.anonymous.post(LOGIN, json=twin)).json()["user"]
    assert theirs["tenant_id"] == str(other_tenant.id)
    # Several organizations can have the same user name, as with addresses.
    platform.sql("UPDATE users SET username = %s WHERE email = %s", [username, email])
    by_name = {"username": username, "password": PASSWORD}
    assert (await platform.anonymous.post(LOGIN, json=by_name)).json()["user"]["id"] == str(mine)


async def test_the_eight_oldest_accounts_with_a_password_are_tried(platform: RunningPlatform, member: Member) -> None:
    email, tenants = address(), [await platform.new_tenant() for _ in range(10)]
    for index, item in enumerate(tenants):
        columns = {"password_hash": None} if index == 0 else {}
        await member(item, email, created_at=f"2026-01-{index + 1:02d}", **columns)
    several = await platform.anonymous.post(LOGIN, json={"email": email, "password": PASSWORD})
    assert several.json()["tenants"] == [tenant.slug for tenant in tenants[1:9]]
    named = {"email": email, "password": PASSWORD, "tenant": tenants[9].slug}
    assert (await platform.anonymous.post(LOGIN, json=named)).status_code == 200


async def test_the_sign_in_page_offers_a_choice_of_organizations(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, member: Member
) -> None:
    email = address()
    await member(tenant, email)
    await member(other_tenant, email)
    visitor = Visitor(platform)
    await visitor.sign_in(email, PASSWORD)
    assert visitor.page.status_code == 400
    for item in (tenant, other_tenant):
        assert f'<option value="{item.slug}">' in visitor.page.text
    await visitor.client.aclose()


async def test_a_password_replaced_during_a_sign_in_opens_no_session(
    platform: RunningPlatform, tenant: Tenant, member: Member
) -> None:
    """The sign-in also does not write the old hash again."""
    email = address()
    user_id = await member(tenant, email)
    passwords, release = platform.host.passwords, threading.Event()
    # All hashing threads are busy, so the sign-in waits after it has read the old hash.
    busy = [asyncio.ensure_future(passwords._run_in_thread(release.wait)) for _ in range(2)]
    try:
        body = {"email": email, "password": PASSWORD, "tenant": tenant.slug}
        signing_in = asyncio.create_task(platform.anonymous.post(LOGIN, json=body))
        while passwords._pool.pending < 3:
            await asyncio.sleep(0)
        other = hash_now("quite another password")
        platform.sql("UPDATE users SET password_hash = %s WHERE id = %s", [other, user_id])
    finally:
        release.set()
        await asyncio.gather(*busy)
    assert (await signing_in).status_code == 401
    assert platform.sql("SELECT password_hash FROM users WHERE id = %s", [user_id]) == [(other,)]
    assert platform.sql("SELECT 1 FROM sessions WHERE user_id = %s", [user_id]) == []


async def test_an_address_of_a_proven_domain_belongs_to_its_tenant(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, member: Member
) -> None:
    domain = f"{uuid4().hex[:10]}.test"
    email = address(domain)
    await member(other_tenant, email)
    prove(platform, tenant, domain)
    body = {"email": email, "password": PASSWORD}
    # A user with this address in another organization cannot sign in, with or without the name of the tenant.
    assert (await platform.anonymous.post(LOGIN, json=body)).status_code == 401
    foreign = await platform.anonymous.post(LOGIN, json={**body, "tenant": other_tenant.slug})
    assert foreign.status_code == 401
    mine = await member(tenant, email)
    assert (await platform.anonymous.post(LOGIN, json=body)).json()["user"]["id"] == str(mine)


async def test_an_unproven_domain_does_not_claim_addresses(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, member: Member
) -> None:
    domain = f"{uuid4().hex[:10]}.test"
    email = address(domain)
    mine = await member(tenant, email)
    platform.sql("INSERT INTO allowed_domains (tenant_id, domain) VALUES (%s, %s)", [other_tenant.id, domain])
    answer = await platform.anonymous.post(LOGIN, json={"email": email, "password": PASSWORD})
    assert answer.json()["user"]["id"] == str(mine)


async def test_nobody_signs_in_to_a_deleted_tenant(platform: RunningPlatform, tenant: Tenant, member: Member) -> None:
    email = address()
    await member(tenant, email)
    platform.sql("UPDATE tenants SET deleted_at = now() WHERE id = %s", [tenant.id])
    assert (await platform.anonymous.post(LOGIN, json={"email": email, "password": PASSWORD})).status_code == 401


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"email": "a@b.test"}, ["body", "password"]),
        ({"email": "a@b.test", "password": 5}, ["body", "password"]),
        ({"email": "a\0@b.test", "password": "x"}, ["body", "email"]),
        ({"email": "a" * 255, "password": "x"}, ["body", "email"]),
        ({"email": "a@b.test", "username": "a", "password": "x"}, ["body"]),
        ({"password": "x"}, ["body"]),
        ({"email": "a@b.test", "password": "x" * 1025}, ["body", "password"]),
    ],
)
async def test_a_bad_field_is_named(platform: RunningPlatform, body: dict[str, object], field: list[str]) -> None:
    answer = await platform.anonymous.post(LOGIN, json=body)
    assert answer.status_code == 422
    assert [fault["loc"] for fault in answer.json()["detail"]] == [field]


async def test_the_first_administrator_signs_in(platform: RunningPlatform) -> None:
    body = {"email": "root@gatehouse.test", "password": "the first admin's password"}
    user = (await platform.anonymous.post(LOGIN, json=body)).json()["user"]
    assert (user["role"], user["operator"]) == ("admin", True)


async def test_concurrent_sign_ins_open_one_session_each(
    platform: RunningPlatform, tenant: Tenant, member: Member
) -> None:
    email = address()
    await member(tenant, email)
    logins = [platform.anonymous.post(LOGIN, json={"email": email, "password": PASSWORD}) for _ in range(10)]
    answers = await asyncio.gather(*logins)
    assert [answer.status_code for answer in answers] == [200] * 10
    assert len({answer.json()["refresh_token"] for answer in answers}) == 10


async def test_the_eleventh_attempt_at_one_address_in_a_minute_is_refused(
    platform: RunningPlatform, tenant: Tenant, member: Member
) -> None:
    email = address()
    await member(tenant, email)
    answers = [
        await platform.anonymous.post(LOGIN, json={"email": spelling, "password": "wrong password"})
        for spelling in (email, email.upper()) * 5
    ]
    assert {answer.status_code for answer in answers} == {401}
    # The right password is refused too, and both fields share the limit.
    for field in ("email", "username"):
        refused = await platform.anonymous.post(LOGIN, json={field: email, "password": PASSWORD})
        assert refused.status_code == 429
        assert 0 < int(refused.headers["retry-after"]) <= 60
    unknown = address()
    statuses = [
        (await platform.anonymous.post(LOGIN, json={"email": unknown, "password": "wrong password"})).status_code
        for _ in range(11)
    ]
    # An address without an account has the same limit.
    assert statuses == [401] * 10 + [429]


async def test_a_login_ignores_the_callers_earlier_credentials(
    platform: RunningPlatform, tenant: Tenant, member: Member
) -> None:
    """The login prevents session fixation: it opens a new session, whatever credentials the request contains."""
    email = address()
    await member(tenant, email)
    earlier_credentials = {"Authorization": f"Bearer {tenant.user.token}", "Cookie": "gatehouse_session=planted"}
    body = {"email": email, "password": PASSWORD}
    first = await platform.anonymous.post(LOGIN, json=body, headers=earlier_credentials)
    second = await platform.anonymous.post(LOGIN, json=body, headers=earlier_credentials)
    issuer = platform.host.issuer
    sessions = {
        jwt.verify(answer.json()["access_token"], platform.host.replica.signing_keys, issuer=issuer, audience=issuer)[
            "sid"
        ]
        for answer in (first, second)
    }
    assert len(sessions | {str(tenant.user.session_id)}) == 3

"""Sessions: refresh, end, and tokens that are refused (docs/sessions.md)."""

import asyncio
import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest
from tests.support.platform import PASSWORD, RunningPlatform, Tenant

from gatehouse.foundation import jwt
from gatehouse.foundation.ids import new_id
from gatehouse.foundation.secrets.passwords import hash_now

SESSIONS = "/api/auth/sessions"
HASH = hash_now(PASSWORD)


@dataclass
class SignedIn:
    id: UUID
    email: str
    refresh_token: str
    client: httpx2.AsyncClient


@pytest.fixture
async def ada(platform: RunningPlatform, tenant: Tenant) -> SignedIn:
    """A user who has just signed in."""
    user_id, email = new_id(), f"ada-{uuid4().hex[:10]}@example.test"
    platform.sql(
        "INSERT INTO users (id, tenant_id, email, password_hash) VALUES (%s, %s, %s, %s)",
        [user_id, tenant.id, email, HASH],
    )
    platform.touch("user", user_id)
    await platform.refresh()
    return await sign_in(platform, user_id, email)


async def sign_in(platform: RunningPlatform, user_id: UUID, email: str) -> SignedIn:
    answer = await platform.anonymous.post("/api/auth/login", json={"email": email, "password": PASSWORD})
    body = answer.json()
    return SignedIn(user_id, email, body["refresh_token"], platform.client(body["access_token"]))


async def refresh(platform: RunningPlatform, token: str) -> httpx2.Response:
    return await platform.anonymous.post("/api/auth/refresh", json={"refresh_token": token})


async def test_a_refresh_returns_new_tokens_of_the_same_session(
    platform: RunningPlatform, tenant: Tenant, ada: SignedIn
) -> None:
    answer = await refresh(platform, ada.refresh_token)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["refresh_token"] != ada.refresh_token
    client = platform.client(body["access_token"])
    assert [session["current"] for session in (await client.get(SESSIONS)).json()] == [True]
    assert (await refresh(platform, body["refresh_token"])).status_code == 200
    assert len(await platform.audit(tenant, "session.refreshed")) == 2
    stored = platform.sql("SELECT r.* FROM refresh_tokens r WHERE tenant_id = %s", [tenant.id])
    assert ada.refresh_token not in str(stored)


async def test_the_second_use_of_a_refresh_token_ends_the_session(
    platform: RunningPlatform, tenant: Tenant, ada: SignedIn
) -> None:
    newer = (await refresh(platform, ada.refresh_token)).json()
    again = await refresh(platform, ada.refresh_token)
    assert (again.status_code, set(again.json())) == (401, {"detail"})
    assert (await refresh(platform, newer["refresh_token"])).status_code == 401
    assert (await platform.client(newer["access_token"]).get(SESSIONS)).status_code == 401
    assert (await ada.client.get("/v1/models")).status_code == 401
    assert len(await platform.audit(tenant, "session.refresh_reused")) == 1


async def test_one_of_several_parallel_uses_of_a_token_succeeds_and_the_session_ends(
    platform: RunningPlatform, ada: SignedIn
) -> None:
    answers = await asyncio.gather(*(refresh(platform, ada.refresh_token) for _ in range(8)))
    successes = [answer for answer in answers if answer.status_code == 200]
    assert len(successes) == 1
    assert {answer.status_code for answer in answers} == {200, 401}
    assert (await refresh(platform, successes[0].json()["refresh_token"])).status_code == 401


async def test_other_sessions_continue(platform: RunningPlatform, ada: SignedIn) -> None:
    other = await sign_in(platform, ada.id, ada.email)
    await refresh(platform, ada.refresh_token)
    await refresh(platform, ada.refresh_token)
    assert (await other.client.get(SESSIONS)).status_code == 200
    assert (await refresh(platform, other.refresh_token)).status_code == 200


@pytest.mark.parametrize("column", ["refresh_tokens", "sessions"])
async def test_an_expired_refresh_token_is_refused(
    platform: RunningPlatform, tenant: Tenant, ada: SignedIn, column: str
) -> None:
    platform.sql(f"UPDATE {column} SET expires_at = now() - interval '1 s' WHERE tenant_id = %s", [tenant.id])
    assert (await refresh(platform, ada.refresh_token)).status_code == 401


@pytest.mark.parametrize("token", ["", "rt_unknown", "x" * 255, "ä"])
async def test_a_token_that_was_never_issued_is_refused(platform: RunningPlatform, token: str) -> None:
    assert (await refresh(platform, token)).status_code == 401


async def test_logging_out_ends_the_session_at_once(platform: RunningPlatform, tenant: Tenant, ada: SignedIn) -> None:
    assert (await ada.client.post("/api/auth/logout")).status_code == 204
    assert (await ada.client.get(SESSIONS)).status_code == 401
    assert (await refresh(platform, ada.refresh_token)).status_code == 401
    (event,) = await platform.audit(tenant, "session.ended")
    assert (event["actor_id"], event["reason"]) == (str(ada.id), "logout")


async def test_a_user_ends_another_of_their_sessions(platform: RunningPlatform, ada: SignedIn) -> None:
    other = await sign_in(platform, ada.id, ada.email)
    listed = (await other.client.get(SESSIONS)).json()
    assert [session["current"] for session in listed] == [True, False]
    assert (await other.client.delete(f"{SESSIONS}/{listed[1]['id']}")).status_code == 204
    assert (await ada.client.get(SESSIONS)).status_code == 401
    assert len((await other.client.get(SESSIONS)).json()) == 1
    assert (await other.client.delete(f"{SESSIONS}/{listed[1]['id']}")).status_code == 404


async def test_another_users_session_is_not_found(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, ada: SignedIn
) -> None:
    (mine,) = (await ada.client.get(SESSIONS)).json()
    for person in (tenant.user, tenant.admin, other_tenant.admin):
        answer = await person.client.delete(f"{SESSIONS}/{mine['id']}")
        assert (answer.status_code, answer.json()) == (404, {"detail": "Session not found"})
    assert (await ada.client.get(SESSIONS)).status_code == 200


async def test_an_administrator_ends_one_session_of_a_user(
    platform: RunningPlatform, tenant: Tenant, ada: SignedIn
) -> None:
    other = await sign_in(platform, ada.id, ada.email)
    path = f"/api/admin/users/{ada.id}/sessions"
    listed = await tenant.auditor.client.get(path)
    assert [session["current"] for session in listed.json()] == [False, False]
    newest, oldest = (session["id"] for session in listed.json())
    assert (await tenant.admin.client.delete(f"{path}/{oldest}")).status_code == 204
    assert (await ada.client.get(SESSIONS)).status_code == 401
    assert [session["id"] for session in (await other.client.get(SESSIONS)).json()] == [newest]
    (event,) = await platform.audit(tenant, "session.ended")
    assert (event["actor_id"], event["resource_id"]) == (str(tenant.admin.id), oldest)
    assert event["reason"] == "ended_by_administrator"
    # The first session has ended already, and the second belongs to another user.
    for session_id in (oldest, tenant.user.session_id):
        assert (await tenant.admin.client.delete(f"{path}/{session_id}")).status_code == 404
    assert (await tenant.user.client.get(SESSIONS)).status_code == 200


async def test_an_administrator_ends_all_sessions_of_a_user(
    platform: RunningPlatform, tenant: Tenant, ada: SignedIn
) -> None:
    other, key = await sign_in(platform, ada.id, ada.email), await platform.new_key(tenant.user)
    path = f"/api/admin/users/{ada.id}/sessions"
    assert (await tenant.admin.client.delete(path)).status_code == 204
    for client in (ada.client, other.client):
        assert (await client.get(SESSIONS)).status_code == 401
    assert (await refresh(platform, other.refresh_token)).status_code == 401
    assert (await tenant.admin.client.get(path)).json() == []
    assert [event["reason"] for event in await platform.audit(tenant, "session.ended")] == [
        "ended_by_administrator"
    ] * 2
    mine = f"/api/admin/users/{tenant.user.id}/sessions"
    assert (await tenant.admin.client.delete(mine)).status_code == 204
    assert (await platform.client(key).get("/v1/models")).status_code == 200


async def test_only_administrators_end_sessions_of_users(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant, ada: SignedIn
) -> None:
    path = f"/api/admin/users/{ada.id}/sessions"
    (mine,) = (await ada.client.get(SESSIONS)).json()
    one = f"{path}/{mine['id']}"
    for method, where in (("GET", path), ("DELETE", path), ("DELETE", one)):
        assert (await platform.anonymous.request(method, where)).status_code == 401
        assert (await ada.client.request(method, where)).status_code == 403
        assert (await other_tenant.admin.client.request(method, where)).status_code == 404
        if method == "DELETE":
            assert (await tenant.auditor.client.request(method, where)).status_code == 403
    operator = await platform.new_person(tenant.id, "admin", operator=True)
    refused = await tenant.admin.client.delete(f"/api/admin/users/{operator.id}/sessions")
    assert refused.status_code == 403
    assert (await ada.client.get(SESSIONS)).status_code == 200


async def test_keys_and_machines_have_no_sessions(platform: RunningPlatform, tenant: Tenant) -> None:
    assert (await platform.anonymous.get(SESSIONS)).status_code == 401
    key = platform.client(await platform.new_key(tenant.user))
    machine = await platform.new_m2m(tenant.id, "admin:write", "admin:read")
    for client, status in ((key, 403), (machine, 403)):
        assert (await client.get(SESSIONS)).status_code == status
        assert (await client.post("/api/auth/logout")).status_code == status


async def test_a_revocation_is_kept_until_its_tokens_expire(platform: RunningPlatform, ada: SignedIn) -> None:
    await ada.client.post("/api/auth/logout")
    ((until,),) = platform.sql(
        "SELECT r.expires_at FROM revocations r JOIN sessions s ON s.id = r.subject WHERE s.user_id = %s", [ada.id]
    )
    assert 900 < (until - datetime.now(UTC)).total_seconds() <= 960


def _part(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


async def test_forged_tokens_are_refused(platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant) -> None:
    person = tenant.admin
    claims = {"sub": str(person.id), "tid": str(tenant.id), "sid": str(person.session_id)}
    header, payload, signature = person.token.split(".")
    stranger = jwt.SigningKey.generate()
    full = {"iss": platform.host.issuer, "aud": platform.host.issuer, "iat": 1, "exp": 9_999_999_999, **claims}
    theirs = other_tenant.admin.token.split(".")
    forged = {
        "algorithm none": f"{_part({'alg': 'none', 'kid': 'x'})}.{payload}.",
        "no signature": f"{header}.{payload}.",
        "payload changed": f"{header}.{_part(full)}.{signature}",
        "another token's signature": f"{header}.{payload}.{theirs[2]}",
        "a stranger's key": jwt.sign(full, stranger),
        "expired": platform.signed(claims, lifetime=-60),
        "another issuer": platform.signed({**claims, "iss": "elsewhere"}),
        "another audience": platform.signed({**claims, "aud": "elsewhere"}),
        "no subject": platform.signed({"tid": str(tenant.id)}),
        "unknown subject": platform.signed({**claims, "sub": str(uuid4())}),
        "a subject that is not an id": platform.signed({**claims, "sub": "admin"}),
    }
    for name, token in forged.items():
        answer = await platform.client(token).get("/api/admin/users")
        assert answer.status_code == 401, name


async def test_a_tokens_tenant_and_role_are_checked_against_the_database(
    platform: RunningPlatform, tenant: Tenant, other_tenant: Tenant
) -> None:
    """The tenant and the role in a token have no effect: the platform reads them from the user's row."""
    claims = {"sub": str(tenant.user.id), "tid": str(other_tenant.id), "sid": str(uuid4()), "role": "admin"}
    client = platform.client(platform.signed(claims))
    assert (await client.get("/api/admin/users")).status_code == 403
    admin = platform.client(platform.signed({**claims, "sub": str(tenant.admin.id)}))
    listed = (await admin.get("/api/admin/users")).json()["items"]
    assert {user["tenant_id"] for user in listed} == {str(tenant.id)}


async def test_a_new_signing_key_is_used_after_workers_have_loaded_it(
    platform: RunningPlatform, tenant: Tenant, ada: SignedIn
) -> None:
    key = jwt.SigningKey.generate()
    sealed = platform.host.sealer.seal(key.private_pem(), context=f"signing_key:{key.kid}".encode())
    platform.sql(
        "INSERT INTO signing_keys (kid, public_jwk, sealed_private) VALUES (%s, %s, %s)",
        [key.kid, json.dumps(key.published()), str(sealed)],
    )
    try:
        platform.touch("signing_keys", key.kid)
        await platform.refresh()
        answer = (await refresh(platform, ada.refresh_token)).json()
        header = json.loads(base64.urlsafe_b64decode(answer["access_token"].split(".")[0] + "=="))
        assert (header["kid"], header["alg"]) == (key.kid, "RS256")
        assert (await platform.client(answer["access_token"]).get(SESSIONS)).status_code == 200
        # Tokens of the previous key stay valid.
        assert (await ada.client.get(SESSIONS)).status_code == 200
    finally:
        platform.sql("DELETE FROM signing_keys WHERE kid = %s", [key.kid])
        platform.touch("signing_keys", key.kid)
        await platform.refresh()

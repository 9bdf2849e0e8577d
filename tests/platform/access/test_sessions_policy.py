"""The effect of an organization's session policy on new and on open sessions (docs/sessions.md)."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from psycopg.types.json import Jsonb
from tests.support.members import Member, code_of, enrol, member, sign_in, use
from tests.support.platform import RunningPlatform, Tenant

SESSIONS = "/api/auth/sessions"


@pytest.fixture
async def ada(platform: RunningPlatform, tenant: Tenant) -> Member:
    return await member(platform, tenant, signed_in=False)


async def set_policy(platform: RunningPlatform, tenant: Tenant, **values: Any) -> None:
    platform.sql("UPDATE tenants SET session_policy = %s WHERE id = %s", [Jsonb(values), tenant.id])
    platform.touch("tenant", tenant.id)
    await platform.refresh()


async def sign_in_user(platform: RunningPlatform, who: Member) -> dict[str, Any]:
    answer = await sign_in(who)
    assert answer.status_code == 200, answer.text
    await use(platform, who, answer.json())
    body: dict[str, Any] = answer.json()
    return body


async def refresh(platform: RunningPlatform, token: str | None) -> httpx2.Response:
    return await platform.anonymous.post("/api/auth/refresh", json={"refresh_token": token})


def age_sessions(platform: RunningPlatform, who: Member, time: timedelta) -> None:
    """Move all times of the user's sessions into the past."""
    platform.sql(
        "UPDATE sessions SET created_at = created_at - %(time)s, last_seen_at = last_seen_at - %(time)s,"
        " expires_at = expires_at - %(time)s WHERE user_id = %(user)s",
        {"time": time, "user": who.id},
    )
    platform.sql(
        "UPDATE refresh_tokens SET expires_at = expires_at - %(time)s WHERE session_id IN"
        " (SELECT id FROM sessions WHERE user_id = %(user)s)",
        {"time": time, "user": who.id},
    )


def expiry(platform: RunningPlatform, who: Member) -> timedelta:
    ((until,),) = platform.sql("SELECT expires_at FROM sessions WHERE user_id = %s", [who.id])
    return timedelta(seconds=round((until - datetime.now(UTC)).total_seconds(), -1))


async def test_a_session_ends_after_its_timeout(platform: RunningPlatform, tenant: Tenant, ada: Member) -> None:
    await set_policy(platform, tenant, session_timeout_minutes=60, idle_timeout_minutes=60)
    body = await sign_in_user(platform, ada)
    assert expiry(platform, ada) == timedelta(minutes=60)
    age_sessions(platform, ada, timedelta(minutes=59))
    body = (await refresh(platform, body["refresh_token"])).json()
    assert expiry(platform, ada) == timedelta(minutes=60)
    age_sessions(platform, ada, timedelta(minutes=61))
    assert (await refresh(platform, body["refresh_token"])).status_code == 401


async def test_an_idle_session_ends(platform: RunningPlatform, tenant: Tenant, ada: Member) -> None:
    await set_policy(platform, tenant, idle_timeout_minutes=20)
    body = await sign_in_user(platform, ada)
    age_sessions(platform, ada, timedelta(minutes=19))
    answer = await refresh(platform, body["refresh_token"])
    assert answer.status_code == 200
    age_sessions(platform, ada, timedelta(minutes=21))
    assert (await refresh(platform, answer.json()["refresh_token"])).status_code == 401


@pytest.mark.parametrize(("idle", "seconds"), [(10, 300), (20, 600), (480, 900)])
async def test_an_active_client_refreshes_before_the_session_is_idle(
    platform: RunningPlatform, tenant: Tenant, ada: Member, idle: int, seconds: int
) -> None:
    await set_policy(platform, tenant, idle_timeout_minutes=idle)
    assert (await sign_in_user(platform, ada))["expires_in"] == seconds


async def test_refreshing_ends_with_the_refresh_tokens_lifetime(
    platform: RunningPlatform, tenant: Tenant, ada: Member
) -> None:
    await set_policy(
        platform, tenant, refresh_token_ttl_days=1, session_timeout_minutes=1440, idle_timeout_minutes=1440
    )
    body = await sign_in_user(platform, ada)
    age_sessions(platform, ada, timedelta(hours=20))
    body = (await refresh(platform, body["refresh_token"])).json()
    # Refreshes do not prolong the lifetime of the first refresh token.
    assert expiry(platform, ada) == timedelta(hours=4)
    age_sessions(platform, ada, timedelta(hours=3, minutes=55))
    body = (await refresh(platform, body["refresh_token"])).json()
    assert 0 < body["expires_in"] <= 300
    age_sessions(platform, ada, timedelta(minutes=6))
    assert (await refresh(platform, body["refresh_token"])).status_code == 401


async def test_without_refresh_tokens_the_access_token_is_valid_as_long_as_the_session(
    platform: RunningPlatform, tenant: Tenant, ada: Member
) -> None:
    await set_policy(platform, tenant, refresh_token_enabled=False, session_timeout_minutes=120)
    body = await sign_in_user(platform, ada)
    assert (body["refresh_token"], round(body["expires_in"], -1)) == (None, 7200)
    assert platform.sql("SELECT 1 FROM refresh_tokens WHERE tenant_id = %s", [tenant.id]) == []


async def test_the_revocation_of_a_long_token_is_kept_until_it_expires(
    platform: RunningPlatform, tenant: Tenant, ada: Member
) -> None:
    await set_policy(platform, tenant, refresh_token_enabled=False, session_timeout_minutes=120)
    await sign_in_user(platform, ada)
    # The policy changes before the revocation, but not the lifetime of the issued token.
    await set_policy(platform, tenant)
    assert (await ada.client.post("/api/auth/logout")).status_code == 204
    assert (await ada.client.get(SESSIONS)).status_code == 401
    ((until,),) = platform.sql("SELECT expires_at FROM revocations WHERE subject = %s", [ada.session_id])
    assert 7200 < (until - datetime.now(UTC)).total_seconds() <= 7261


async def test_stepping_up_does_not_prolong_a_session(platform: RunningPlatform, tenant: Tenant, ada: Member) -> None:
    await set_policy(platform, tenant, refresh_token_enabled=False, session_timeout_minutes=120)
    await sign_in_user(platform, ada)
    secret, _ = await enrol(platform, ada)
    age_sessions(platform, ada, timedelta(minutes=90))
    body = {"method": "totp", "code": code_of(secret, 1)}
    answer = await ada.client.post("/api/auth/mfa/verify", json=body)
    assert round(answer.json()["expires_in"], -1) == 1800


@pytest.mark.parametrize(
    ("values", "max_sessions"),
    [
        ({"concurrent_sessions": "1"}, 1),
        ({"concurrent_sessions": "2"}, 2),
        ({"concurrent_sessions": "5"}, 5),
        ({"enforce_single_session": True}, 1),
        ({"enforce_single_session": True, "concurrent_sessions": "5"}, 1),
    ],
)
async def test_the_oldest_sessions_end_when_the_limit_is_exceeded(
    platform: RunningPlatform, tenant: Tenant, ada: Member, values: dict[str, Any], max_sessions: int
) -> None:
    await set_policy(platform, tenant, **values)
    opened = []
    for _ in range(max_sessions + 1):
        await sign_in_user(platform, ada)
        opened.append(ada.client)
    assert [(await client.get(SESSIONS)).status_code for client in opened] == [401, *[200] * max_sessions]
    (event,) = await platform.audit(tenant, "session.ended")
    assert (event["reason"], event["actor_id"]) == ("too_many_sessions", str(ada.id))


async def test_the_number_of_sessions_is_unlimited_by_default(platform: RunningPlatform, ada: Member) -> None:
    for _ in range(7):
        await sign_in_user(platform, ada)
    assert len((await ada.client.get(SESSIONS)).json()) == 7


async def test_one_session_remains_after_parallel_sign_ins(
    platform: RunningPlatform, tenant: Tenant, ada: Member
) -> None:
    await set_policy(platform, tenant, enforce_single_session=True)
    answers = await asyncio.gather(*(sign_in(ada) for _ in range(6)))
    clients = [platform.client(answer.json()["access_token"]) for answer in answers]
    assert sorted([(await client.get(SESSIONS)).status_code for client in clients]) == [200, *[401] * 5]


async def test_sessions_of_other_users_do_not_count(platform: RunningPlatform, tenant: Tenant, ada: Member) -> None:
    await set_policy(platform, tenant, enforce_single_session=True)
    await sign_in_user(platform, ada)
    bob = await member(platform, tenant)
    assert [(await who.client.get(SESSIONS)).status_code for who in (ada, bob)] == [200, 200]


@pytest.mark.parametrize(
    ("values", "age"),
    [
        ({"session_timeout_minutes": 30, "idle_timeout_minutes": 30}, timedelta(minutes=31)),
        ({"idle_timeout_minutes": 30}, timedelta(minutes=31)),
        ({"refresh_token_ttl_days": 1, "idle_timeout_minutes": 10_000, "session_timeout_minutes": 1440}, None),
        ({"refresh_token_enabled": False}, timedelta(minutes=1)),
    ],
)
async def test_a_shorter_policy_applies_to_open_sessions(
    platform: RunningPlatform, tenant: Tenant, ada: Member, values: dict[str, Any], age: timedelta | None
) -> None:
    body = await sign_in_user(platform, ada)
    if age is None:
        platform.sql("UPDATE sessions SET created_at = created_at - interval '25 h' WHERE user_id = %s", [ada.id])
    else:
        age_sessions(platform, ada, age)
    await set_policy(platform, tenant, **values)
    assert (await refresh(platform, body["refresh_token"])).status_code == 401


async def test_a_shorter_timeout_applies_to_issued_tokens(
    platform: RunningPlatform, tenant: Tenant, ada: Member
) -> None:
    await set_policy(platform, tenant, refresh_token_enabled=False, session_timeout_minutes=1440)
    await sign_in_user(platform, ada)
    issued = int(datetime.now(UTC).timestamp()) - 31 * 60
    claims = {"sub": str(ada.id), "sid": ada.session_id, "iat": issued, "exp": issued + 86_400}
    long = platform.client(platform.signed(claims))
    assert (await long.get(SESSIONS)).status_code == 200
    await set_policy(platform, tenant, refresh_token_enabled=False, session_timeout_minutes=30)
    assert (await long.get(SESSIONS)).status_code == 401
    assert (await long.get("/v1/models")).status_code == 401


async def test_a_lower_session_limit_applies_at_the_next_refresh(
    platform: RunningPlatform, tenant: Tenant, ada: Member
) -> None:
    older = await sign_in_user(platform, ada)
    newer = await sign_in_user(platform, ada)
    await set_policy(platform, tenant, concurrent_sessions="1")
    assert (await refresh(platform, older["refresh_token"])).status_code == 401
    assert (await platform.client(older["access_token"]).get(SESSIONS)).status_code == 401
    assert (await refresh(platform, newer["refresh_token"])).status_code == 200


async def test_a_longer_policy_applies_from_the_next_refresh_on(
    platform: RunningPlatform, tenant: Tenant, ada: Member
) -> None:
    await set_policy(platform, tenant, session_timeout_minutes=15, idle_timeout_minutes=15)
    body = await sign_in_user(platform, ada)
    await set_policy(platform, tenant, session_timeout_minutes=60, idle_timeout_minutes=60)
    assert (await refresh(platform, body["refresh_token"])).status_code == 200
    assert expiry(platform, ada) == timedelta(minutes=60)

"""Only pages of the platform can exchange the session cookie for an access token."""

from typing import Any

import httpx2
import pytest
from psycopg.types.json import Jsonb
from tests.support.members import Member, member
from tests.support.pages import Visitor
from tests.support.platform import RunningPlatform, Tenant

PATH = "/api/auth/session/token"


@pytest.fixture
async def ada(public: RunningPlatform, tenant: Tenant, visitor: Visitor) -> Member:
    """A user who is signed in, in the visitor's browser."""
    who = await member(public, tenant, signed_in=False)
    await visitor.sign_in(who.email)
    assert visitor.cookie()
    return who


def base_of(visitor: Visitor) -> str:
    return str(visitor.client.base_url).rstrip("/")


async def exchange(visitor: Visitor, **headers: str) -> httpx2.Response:
    sent = {"origin": base_of(visitor), "sec-fetch-site": "same-origin", **headers}
    return await visitor.client.post(PATH, headers={name: value for name, value in sent.items() if value})


async def test_a_page_gets_a_short_lived_token_that_the_api_accepts(
    public: RunningPlatform, tenant: Tenant, ada: Member, visitor: Visitor
) -> None:
    answer = await exchange(visitor)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    assert set(body) == {"access_token", "token_type", "expires_in", "user", "organization", "has_password"}
    assert (body["token_type"], body["expires_in"]) == ("bearer", 300)
    assert (body["user"]["id"], body["user"]["role"]) == (str(ada.id), "user")
    assert body["organization"] == {"slug": tenant.slug, "name": tenant.slug}
    assert body["has_password"] is True
    assert answer.headers["cache-control"] == "no-store"
    listed = await public.client(body["access_token"]).get("/api/auth/sessions")
    assert [session["current"] for session in listed.json()] == [True]


async def test_the_exchange_is_audited_and_keeps_the_session_in_use(
    public: RunningPlatform, tenant: Tenant, ada: Member, visitor: Visitor
) -> None:
    public.sql("UPDATE sessions SET last_seen_at = now() - interval '1 hour' WHERE user_id = %s", [ada.id])
    await exchange(visitor)
    (event,) = await public.audit(tenant, "session.token_issued")
    ((session_id, idle_seconds),) = public.sql(
        "SELECT id, extract(epoch FROM now() - last_seen_at)::int FROM sessions WHERE user_id = %s", [ada.id]
    )
    assert (event["actor_id"], event["resource_id"]) == (str(ada.id), str(session_id))
    assert idle_seconds < 60


async def test_a_browser_without_a_session_is_refused(public: RunningPlatform, visitor: Visitor) -> None:
    for cookie in (None, "gws_unknown", ""):
        visitor.client.cookies.clear()
        if cookie is not None:
            visitor.client.cookies.set("gatehouse_session", cookie, domain="gatehouse.test")
        answer = await exchange(visitor)
        assert answer.status_code == 401
        assert answer.json() == {"detail": "No session is open in this browser. Sign in at /login."}


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": ""},
        {"origin": "null"},
        {"origin": "https://evil.example"},
        {"origin": "http://evil.gatehouse.test"},
        {"origin": "http://gatehouse.test.evil.example"},
        {"origin": "http://gatehouse.test:8080"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
    ],
)
async def test_other_origins_are_refused(
    public: RunningPlatform, tenant: Tenant, ada: Member, visitor: Visitor, headers: dict[str, str]
) -> None:
    answer = await exchange(visitor, **headers)
    assert answer.status_code == 403
    assert "access_token" not in answer.text
    assert await public.audit(tenant, "session.token_issued") == []


async def test_the_exchange_works_without_fetch_metadata(ada: Member, visitor: Visitor) -> None:
    assert (await exchange(visitor, **{"sec-fetch-site": ""})).status_code == 200


async def test_a_session_that_has_ended_gets_no_token_and_its_token_is_refused(
    public: RunningPlatform, ada: Member, visitor: Visitor
) -> None:
    client = public.client((await exchange(visitor)).json()["access_token"])
    assert (await client.post("/api/auth/logout")).status_code == 204
    assert (await exchange(visitor)).status_code == 401
    assert (await client.get("/api/auth/sessions")).status_code == 401


async def test_a_deactivated_user_gets_no_token(public: RunningPlatform, ada: Member, visitor: Visitor) -> None:
    public.sql("UPDATE users SET is_active = false WHERE id = %s", [ada.id])
    assert (await exchange(visitor)).status_code == 401


async def test_a_session_that_a_stricter_policy_does_not_allow_gets_no_token(
    public: RunningPlatform, tenant: Tenant, ada: Member, visitor: Visitor
) -> None:
    newer = Visitor(public)
    await newer.sign_in(ada.email)
    assert (await exchange(visitor)).status_code == 200
    public.sql("UPDATE tenants SET session_policy = %s WHERE id = %s", [Jsonb({"concurrent_sessions": "1"}), tenant.id])
    assert (await exchange(visitor)).status_code == 401
    assert (await exchange(newer)).status_code == 200


async def test_the_token_ends_with_its_session(
    public: RunningPlatform, tenant: Tenant, ada: Member, visitor: Visitor
) -> None:
    policy = {"refresh_token_enabled": False, "session_timeout_minutes": 60}
    public.sql("UPDATE tenants SET session_policy = %s WHERE id = %s", [Jsonb(policy), tenant.id])
    public.sql("UPDATE sessions SET created_at = now() - interval '58 minutes' WHERE user_id = %s", [ada.id])
    assert 0 < (await exchange(visitor)).json()["expires_in"] <= 120


@pytest.mark.parametrize("path", ["/api/auth/sessions", "/api/auth/api-keys", "/api/v1/usage/records", "/v1/models"])
async def test_the_api_refuses_the_cookie_itself(ada: Member, visitor: Visitor, path: str) -> None:
    headers = {"origin": base_of(visitor), "sec-fetch-site": "same-origin"}
    assert (await visitor.client.get(path, headers=headers)).status_code == 401

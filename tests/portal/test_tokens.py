"""Organization tokens (docs/portal.md, Tokens)."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx2
import psycopg
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet
from tests.support.portal import Org, RunningPortal

from gatehouse.portal.settings import PortalSettings
from gatehouse.portal.status_cache import CACHE_SECONDS


async def test_a_token_has_the_documented_claims_and_a_published_key(portal: RunningPortal, org: Org) -> None:
    answer = await portal.admin.post(f"{org.path}/tokens", json={"plan": "business", "expires_in": 120})
    assert answer.status_code == 201, answer.text
    issued = answer.json()
    assert (issued["expires_in"], issued["token_type"]) == (120, "Bearer")
    published = (await portal.anonymous.get("/.well-known/jwks.json")).json()
    token = jwt.decode(issued["token"], KeySet.import_key_set(published), algorithms=["RS256"])
    assert {name: token.claims[name] for name in ("sub", "plan", "jti")} == {
        "sub": str(org.id), "plan": "business", "jti": issued["jti"],
    }  # fmt: skip
    assert token.claims["exp"] - token.claims["iat"] == 120
    assert abs(token.claims["iat"] - time.time()) < 60
    assert not {"d", "p", "q"} & {name for key in published["keys"] for name in key}


async def test_by_default_a_token_has_the_organizations_plan_for_an_hour(portal: RunningPortal) -> None:
    org = await portal.new_org("starter")
    issued = (await portal.admin.post(f"{org.path}/tokens", json={})).json()
    claims = await portal.host.keys.verify(issued["token"])
    assert (claims["plan"], issued["expires_in"]) == ("starter", 3600)


async def test_the_issue_of_a_token_is_in_the_audit_without_the_token(portal: RunningPortal, org: Org) -> None:
    (row,) = portal.audit(org.id, "token.issued")
    assert (row["actor_type"], row["resource_id"]) == ("admin_key", org.jti)
    assert "eyJ" not in str(row)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"plan": "free"}, "plan"),
        ({"expires_in": 59}, "expires_in"),
        ({"expires_in": 365 * 86_400 + 1}, "expires_in"),
        ({"expires_in": "60"}, "expires_in"),
        ({"sub": "x"}, "sub"),
    ],
)
async def test_a_bad_field_is_named(portal: RunningPortal, org: Org, body: dict[str, Any], field: str) -> None:
    answer = await portal.admin.post(f"{org.path}/tokens", json=body)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(f"{field}: ")


async def test_all_tokens_are_revoked_and_a_new_one_is_valid(portal: RunningPortal, org: Org) -> None:
    member = await portal.new_member(org)
    assert (await org.client.get(org.path)).status_code == 200
    answer = await portal.admin.post(f"{org.path}/tokens/revoke")
    assert answer.status_code == 200
    body = answer.json()
    assert (set(body), body["org_id"]) == ({"org_id", "tokens_revoked_before", "message"}, str(org.id))
    assert abs(datetime.fromisoformat(body["tokens_revoked_before"]) - datetime.now(UTC)).total_seconds() < 60
    for client in (org.client, member.client):
        refused = await client.get(org.path)
        assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
    fresh = (await portal.admin.post(f"{org.path}/tokens", json={})).json()["token"]
    assert (await portal.client(fresh).get(org.path)).status_code == 200
    assert len(portal.audit(org.id, "token.all_revoked")) == 1


async def test_a_token_issued_at_the_same_moment_is_revoked_too(portal: RunningPortal, org: Org) -> None:
    portal.sql("UPDATE organizations SET tokens_revoked_before = to_timestamp(%s) WHERE id = %s", [2_000, org.id])
    for issued_at, status in ((1_999, 403), (2_000, 403), (2_001, 200)):
        token = await portal.signed({"sub": str(org.id), "jti": str(uuid4())}, iat=issued_at)
        assert (await portal.client(token).get(org.path)).status_code == status


async def test_one_token_is_revoked_by_its_jti(portal: RunningPortal, org: Org) -> None:
    second_client = portal.client((await portal.admin.post(f"{org.path}/tokens", json={})).json()["token"])
    assert (await org.client.get(org.path)).status_code == 200
    answer = await portal.admin.post(f"{org.path}/tokens/revoke/{org.jti}", json={"reason": "lost laptop"})
    assert answer.status_code == 200
    body = answer.json()
    assert (set(body)) == {"jti", "org_id", "revoked_at", "reason", "message"}
    assert (body["jti"], body["org_id"], body["reason"]) == (org.jti, str(org.id), "lost laptop")
    assert (await org.client.get(org.path)).status_code == 403
    assert (await second_client.get(org.path)).status_code == 200
    repeated = await portal.admin.post(f"{org.path}/tokens/revoke/{org.jti}", json={"reason": "again"})
    assert (repeated.status_code, repeated.json()["error"]) == (409, "conflict")
    (row,) = portal.audit(org.id, "token.revoked")
    assert (row["resource_id"], row["details"]) == (org.jti, {"reason": "lost laptop"})


@pytest.mark.parametrize(("body", "field"), [({}, "reason"), ({"reason": ""}, "reason")])
async def test_a_bad_revocation_names_the_field(
    portal: RunningPortal, org: Org, body: dict[str, Any], field: str
) -> None:
    answer = await portal.admin.post(f"{org.path}/tokens/revoke/{org.jti}", json=body)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(f"{field}: ")


async def test_a_token_that_was_not_issued_here_cannot_be_revoked(
    portal: RunningPortal, org: Org, other_org: Org
) -> None:
    for jti in (uuid4(), other_org.jti, "malformed"):
        answer = await portal.admin.post(f"{org.path}/tokens/revoke/{jti}", json={"reason": "lost laptop"})
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
    assert portal.audit(org.id, "token.revoked") == []
    assert (await other_org.client.get(other_org.path)).status_code == 200


async def refreshed(client: httpx2.AsyncClient) -> dict[str, Any]:
    answer = await client.post("/v1/auth/sso/refresh")
    assert answer.status_code == 200, answer.text
    token: dict[str, Any] = answer.json()
    return token


async def test_a_token_of_the_admin_keys_is_refreshed_with_its_plan_and_lifetime(
    portal: RunningPortal, org: Org
) -> None:
    issued = (await portal.admin.post(f"{org.path}/tokens", json={"plan": "business", "expires_in": 120})).json()
    first = await portal.host.keys.verify(issued["token"])
    client = portal.client(issued["token"])
    answer = await refreshed(client)
    assert (answer["expires_in"], answer["token_type"], answer["org_id"]) == (120, "Bearer", str(org.id))
    second = await portal.host.keys.verify(answer["token"])
    assert {name: second[name] for name in ("sub", "plan", "auth_time", "family")} == {
        "sub": str(org.id), "plan": "business", "auth_time": first["iat"], "family": issued["jti"],
    }  # fmt: skip
    assert "uid" not in second
    # The new token has the rights of the first one, which is now refused.
    fresh = portal.client(answer["token"])
    assert (await fresh.patch(f"{org.path}/settings", json={"name": "Another"})).status_code == 200
    assert (await client.get(org.path)).status_code == 403
    assert (await client.post("/v1/auth/sso/refresh")).status_code == 403


async def test_revoking_a_token_also_revokes_the_token_that_replaced_it(portal: RunningPortal, org: Org) -> None:
    second = await refreshed(org.client)
    third = await refreshed(portal.client(second["token"]))
    newest = portal.client(third["token"])
    assert (await newest.get(org.path)).status_code == 200
    path, body = f"{org.path}/tokens/revoke/{org.jti}", {"reason": "lost laptop"}
    answer = await portal.admin.post(path, json=body)
    claims = await portal.host.keys.verify(third["token"])
    assert (answer.status_code, answer.json()["jti"]) == (200, claims["jti"])
    assert (await newest.get(org.path)).status_code == 403
    assert (await portal.admin.post(path, json=body)).status_code == 409


async def test_a_concurrent_refresh_and_revocation_leave_no_valid_token(portal: RunningPortal, org: Org) -> None:
    body = {"reason": "lost laptop"}
    for _ in range(5):
        issued = (await portal.admin.post(f"{org.path}/tokens", json={})).json()
        path = f"{org.path}/tokens/revoke/{issued['jti']}"
        client = portal.client(issued["token"])
        answers = await asyncio.gather(client.post("/v1/auth/sso/refresh"), portal.admin.post(path, json=body))
        assert answers[1].status_code == 200, answers[1].text
        if answers[0].status_code == 200:
            assert (await portal.client(answers[0].json()["token"]).get(org.path)).status_code == 403
        assert (await client.get(org.path)).status_code == 403


async def test_tokens_cannot_be_refreshed_forever(portal: RunningPortal, org: Org) -> None:
    year, now = 365 * 86_400, int(portal.host.clock.now())
    claims = {"sub": str(org.id), "plan": "business", "family": str(uuid4())}
    for age, seconds_left in ((year - 600, 600), (year, None)):
        token = await portal.signed(claims | {"auth_time": now - age})
        answer = await portal.client(token).post("/v1/auth/sso/refresh")
        if seconds_left is None:
            assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized")
        else:
            assert seconds_left - 30 <= answer.json()["expires_in"] <= seconds_left


async def test_a_token_revoked_with_all_others_cannot_be_refreshed(portal: RunningPortal, org: Org) -> None:
    await portal.admin.post(f"{org.path}/tokens/revoke")
    assert (await org.client.post("/v1/auth/sso/refresh")).status_code == 403


async def test_a_token_revoked_during_its_refresh_has_no_successor(portal: RunningPortal, org: Org) -> None:
    async with await psycopg.AsyncConnection.connect(portal.installed.owner_url) as connection:
        await connection.execute(
            "UPDATE portal.organizations SET tokens_revoked_before = now() WHERE id = %s", [org.id]
        )
        refreshing = asyncio.create_task(org.client.post("/v1/auth/sso/refresh"))
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        async with asyncio.timeout(60):
            while (await (await connection.execute(waiting)).fetchone()) == (0,):
                assert not refreshing.done()
                await asyncio.sleep(0.01)
        await connection.commit()
    assert (await refreshing).status_code == 409
    assert len(portal.audit(org.id, "token.issued")) == 1


async def test_another_process_applies_a_revocation_within_a_second(
    portal: RunningPortal, portal_settings: PortalSettings, org: Org
) -> None:
    async with RunningPortal.start(portal_settings) as elsewhere:
        second_portal = elsewhere.client(org.client.headers["Authorization"].removeprefix("Bearer "))
        assert (await second_portal.get(org.path)).status_code == 200
        await portal.admin.post(f"{org.path}/tokens/revoke/{org.jti}", json={"reason": "lost"})
        revoked_at = time.monotonic()
        while (await second_portal.get(org.path)).status_code == 200:
            await asyncio.sleep(0.02)
        # The cached status was as old as the first response.
        assert time.monotonic() - revoked_at < CACHE_SECONDS + 0.5


@pytest.mark.parametrize(("plan", "limit"), [("starter", 60), ("business", 300), ("enterprise", 1200)])
async def test_each_plan_has_its_rate_limit(portal: RunningPortal, plan: str, limit: int) -> None:
    org = await portal.new_org(plan)
    answer = await org.client.get(org.path)
    assert (answer.headers["X-RateLimit-Limit"], answer.headers["X-RateLimit-Remaining"]) == (
        str(limit),
        str(limit - 1),
    )


async def test_all_tokens_of_an_organization_share_one_limit(portal: RunningPortal, other_org: Org) -> None:
    org = await portal.new_org("starter")
    member = await portal.new_member(org)
    answers: list[httpx2.Response] = []
    for client in (org.client, member.client):
        answers += [await client.get(org.path) for _ in range(30)]
    assert {answer.status_code for answer in answers} == {200}
    refused = await org.client.get(org.path)
    assert refused.status_code == 429
    body = refused.json()
    assert set(body) == {"error", "detail", "limit", "reset_at", "message"}
    assert (body["error"], body["limit"]) == ("rate_limit_exceeded", 60)
    wait = datetime.fromisoformat(body["reset_at"]).timestamp() - time.time()
    assert 0 < wait <= 61
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    assert (await other_org.client.get(other_org.path)).status_code == 200
    # The current plan determines the limit, and not the plan in the token.
    await portal.admin.patch(org.path, json={"plan_tier": "business"})
    assert (await org.client.get(org.path)).status_code == 200

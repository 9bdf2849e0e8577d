"""POST /oauth/token and the key set (docs/authentication.md, OAuth clients; RFC 6749)."""

import asyncio
import base64
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode
from uuid import uuid4

import httpx2
import pytest
from joserfc import jwt as jose
from joserfc.jwk import KeySet
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.clock import SYSTEM_CLOCK
from gatehouse.platform.access.tokens import service
from gatehouse.platform.access.tokens.failures import FailureThrottle
from gatehouse.platform.changes.change import DEFAULT_TENANT

BASE = "/api/admin/oauth-clients"
TOKEN = "/oauth/token"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
SCOPES = ["chat:write", "api:read", "admin:read"]


@pytest.fixture
async def created(tenant: Tenant) -> dict[str, Any]:
    answer = await tenant.admin.client.post(
        f"{BASE}/", json={"name": "a machine", "scopes": SCOPES, "token_lifetime_seconds": 600}
    )
    body: dict[str, Any] = answer.json()
    return body


def form_of(created: dict[str, Any], **more: str) -> dict[str, str]:
    return {
        "grant_type": "client_credentials",
        "client_id": created["client_id"],
        "client_secret": created["client_secret"],
        **more,
    }


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def assert_error(answer: httpx2.Response, status: int, error: str) -> None:
    assert (answer.status_code, answer.json()["error"]) == (status, error), answer.text
    assert answer.json().keys() == {"error", "error_description"}
    assert answer.headers["Cache-Control"] == "no-store"
    assert ("WWW-Authenticate" in answer.headers) == (status == 401)


# success ------------------------------------------------------------------------------------------------------------


async def test_a_client_secret_gets_a_token(platform: RunningPlatform, created: dict[str, Any]) -> None:
    answer = await platform.anonymous.post(TOKEN, data=form_of(created))
    assert answer.status_code == 200
    body = answer.json()
    token = body.pop("access_token")
    assert body == {"token_type": "bearer", "expires_in": 600, "scope": "chat:write api:read admin:read"}
    assert (answer.headers["Cache-Control"], answer.headers["Pragma"]) == ("no-store", "no-cache")
    keys = KeySet.import_key_set((await platform.anonymous.get("/.well-known/jwks.json")).json())
    claims = jose.decode(token, keys, algorithms=["RS256"]).claims
    assert claims["exp"] - claims["iat"] == 600
    assert {name: claims[name] for name in ("sub", "client_id", "tid", "token_type", "scope", "rate_limit_tier")} == {
        "sub": created["client_id"],
        "client_id": created["client_id"],
        "tid": created["tenant_id"],
        "token_type": "m2m",
        "scope": body["scope"],
        "rate_limit_tier": "standard",
    }
    assert claims["jti"]


async def test_a_token_permits_only_its_scopes(platform: RunningPlatform, created: dict[str, Any]) -> None:
    answer = await platform.anonymous.post(TOKEN, data=form_of(created, scope="api:read"))
    assert answer.json()["scope"] == "api:read"
    client = platform.client(answer.json()["access_token"])
    assert (await client.get("/v1/models")).status_code == 200
    refused = await client.post("/v1/chat/completions", json={"model": "x", "messages": []})
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "authentication_error")
    assert (await client.get(f"{BASE}/")).status_code == 403


async def test_scopes_have_an_effect_only_while_they_are_enforced(
    platform: RunningPlatform, created: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = await platform.anonymous.post(TOKEN, data=form_of(created, scope="chat:write"))
    client = platform.client(answer.json()["access_token"])
    assert (await client.get(f"{BASE}/")).status_code == 403
    monkeypatch.setattr(platform.host.credentials, "_enforce_scopes", False)
    assert (await client.get(f"{BASE}/")).status_code == 200


async def test_issuing_sets_last_used(platform: RunningPlatform, tenant: Tenant, created: dict[str, Any]) -> None:
    path = f"{BASE}/{created['client_id']}"
    await platform.anonymous.post(TOKEN, data=form_of(created) | {"client_secret": "wrong"})
    assert (await tenant.admin.client.get(path)).json()["last_used"] is None
    await platform.anonymous.post(TOKEN, data=form_of(created))
    used = datetime.fromisoformat((await tenant.admin.client.get(path)).json()["last_used"])
    assert abs((datetime.now(UTC) - used).total_seconds()) < 60


@pytest.mark.parametrize("space", ["+", "%20"])
@pytest.mark.parametrize("suffix", ["", "; charset=utf-8", ";charset=UTF-8"])
async def test_the_usual_request_formats_are_accepted(
    platform: RunningPlatform, created: dict[str, Any], space: str, suffix: str
) -> None:
    body = urlencode(form_of(created)) + f"&scope=chat%3Awrite{space}api:read"
    headers = {"Content-Type": FORM["Content-Type"] + suffix}
    answer = await platform.anonymous.post(f"{TOKEN}/", content=body, headers=headers)
    assert answer.json()["scope"] == "chat:write api:read"


@pytest.mark.parametrize("repeated", [False, True])
async def test_a_client_may_authenticate_by_basic(
    platform: RunningPlatform, created: dict[str, Any], repeated: bool
) -> None:
    fields = {"grant_type": "client_credentials"} | ({"client_id": created["client_id"]} if repeated else {})
    client_id, secret = created["client_id"], created["client_secret"]
    for headers in (basic(client_id, secret), basic(quote(client_id, safe=""), secret.replace("_", "%5F"))):
        answer = await platform.anonymous.post(TOKEN, data=fields, headers=headers)
        assert answer.status_code == 200


async def test_unknown_and_empty_fields_are_ignored(platform: RunningPlatform, created: dict[str, Any]) -> None:
    answer = await platform.anonymous.post(TOKEN, data=form_of(created, scope="", audience="somewhere"))
    assert answer.json()["scope"] == " ".join(SCOPES)


async def test_a_platform_wide_clients_token_names_no_organization(platform: RunningPlatform) -> None:
    operator = await platform.operator()
    body = {"name": "portal", "tenant_id": None, "scopes": ["admin:write"]}
    m2m_client = (await operator.client.post(f"{BASE}/", json=body)).json()
    token = (await platform.anonymous.post(TOKEN, data=form_of(m2m_client))).json()["access_token"]
    keys = KeySet.import_key_set((await platform.anonymous.get("/.well-known/jwks.json")).json())
    assert "tid" not in jose.decode(token, keys, algorithms=["RS256"]).claims
    refused = await platform.client(token).get("/v1/models")
    assert refused.status_code == 403


@pytest.mark.parametrize(("tier", "limit"), [("standard", "1000"), ("premium", "5000"), ("unlimited", None)])
async def test_the_tokens_tier_sets_the_rate_limit(
    platform: RunningPlatform, tenant: Tenant, tier: str, limit: str | None
) -> None:
    body = {"name": "x", "scopes": ["api:read"], "rate_limit_tier": tier}
    m2m_client = (await tenant.admin.client.post(f"{BASE}/", json=body)).json()
    client = platform.client((await platform.anonymous.post(TOKEN, data=form_of(m2m_client))).json()["access_token"])
    # The token contains the tier, so a change applies only to later tokens.
    await tenant.admin.client.put(f"{BASE}/{m2m_client['client_id']}", json={"rate_limit_tier": "premium"})
    assert (await client.get("/v1/models")).headers.get("X-RateLimit-Limit") == limit


# refusals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "status", "error"),
    [
        ({"grant_type": ""}, 400, "invalid_request"),
        ({"grant_type": "password"}, 400, "unsupported_grant_type"),
        ({"grant_type": "CLIENT_CREDENTIALS"}, 400, "unsupported_grant_type"),
        ({"client_id": ""}, 400, "invalid_request"),
        ({"client_secret": ""}, 400, "invalid_request"),
        ({"client_id": str(uuid4())}, 401, "invalid_client"),
        ({"client_id": "not an id"}, 401, "invalid_client"),
        ({"client_id": "\x00"}, 401, "invalid_client"),
        ({"client_id": "' OR 1=1 --"}, 401, "invalid_client"),
        ({"client_secret": "wrong"}, 401, "invalid_client"),
        ({"client_secret": "\x00 ü 日本"}, 401, "invalid_client"),
        ({"scope": "chat:write root"}, 400, "invalid_scope"),
        ({"scope": "chat:write audit:read"}, 400, "invalid_scope"),
        ({"scope": "chat:write,api:read"}, 400, "invalid_scope"),
        ({"scope": "\x00"}, 400, "invalid_scope"),
    ],
)
async def test_every_invalid_request_gets_its_error(
    platform: RunningPlatform, created: dict[str, Any], change: dict[str, str], status: int, error: str
) -> None:
    answer = await platform.anonymous.post(TOKEN, data=form_of(created) | change)
    assert_error(answer, status, error)
    # RFC 6749, 5.2, permits neither quotes nor backslashes in a description.
    assert not set('"\\') & set(answer.json()["error_description"])


async def test_a_wrong_secret_does_not_disclose_the_clients_scopes(
    platform: RunningPlatform, created: dict[str, Any]
) -> None:
    form = form_of(created, scope="root") | {"client_secret": "wrong"}
    assert_error(await platform.anonymous.post(TOKEN, data=form), 401, "invalid_client")


async def test_an_unknown_id_a_disabled_client_and_a_wrong_secret_get_the_same_response(
    platform: RunningPlatform, tenant: Tenant, created: dict[str, Any]
) -> None:
    unknown = await platform.anonymous.post(TOKEN, data=form_of(created) | {"client_id": str(uuid4())})
    wrong = await platform.anonymous.post(TOKEN, data=form_of(created) | {"client_secret": "wrong"})
    await tenant.admin.client.put(f"{BASE}/{created['client_id']}", json={"enabled": False})
    disabled = await platform.anonymous.post(TOKEN, data=form_of(created))
    assert_error(disabled, 401, "invalid_client")
    assert unknown.content == wrong.content == disabled.content


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"", FORM),
        (b"{}", {"Content-Type": "application/json"}),
        (b"grant_type=client_credentials", {}),
        (b"grant_type=client_credentials", {"Content-Type": "text/plain"}),
        (b"grant_type=client_credentials", {"Content-Type": "multipart/form-data; boundary=x"}),
        (b"grant_type=client_credentials&grant_type=client_credentials", FORM),
        (b"grant_type=client_credentials&scope=a&scope=b", FORM),
        (b"grant_type=client_credentials&x=%ff", FORM),
        (b"\xff\xfe", FORM),
        (b"&".join(b"f%d=1" % n for n in range(100)), FORM),
        (b"x=" + b"y" * 20_000, FORM),
        (b"&" * 10_000, FORM),
    ],
)
async def test_a_malformed_form_is_an_invalid_request(
    platform: RunningPlatform, body: bytes, headers: dict[str, str]
) -> None:
    assert_error(await platform.anonymous.post(TOKEN, content=body, headers=headers), 400, "invalid_request")


async def test_json_credentials_are_refused(platform: RunningPlatform, created: dict[str, Any]) -> None:
    assert_error(await platform.anonymous.post(TOKEN, json=form_of(created)), 400, "invalid_request")


async def test_two_ways_of_authentication_are_an_invalid_request(
    platform: RunningPlatform, created: dict[str, Any]
) -> None:
    header = basic(created["client_id"], created["client_secret"])
    assert_error(await platform.anonymous.post(TOKEN, data=form_of(created), headers=header), 400, "invalid_request")
    other = {"grant_type": "client_credentials", "client_id": str(uuid4())}
    assert_error(await platform.anonymous.post(TOKEN, data=other, headers=header), 400, "invalid_request")


@pytest.mark.parametrize(
    "authorization", ["Basic", "Basic !!!!", "Basic /w==", "Basic eA==", "Basic eDp5", "basic eA=="]
)
async def test_a_malformed_basic_header_is_an_invalid_client(platform: RunningPlatform, authorization: str) -> None:
    answer = await platform.anonymous.post(
        TOKEN, data={"grant_type": "client_credentials"}, headers={"Authorization": authorization}
    )
    assert_error(answer, 401, "invalid_client")
    assert answer.headers["WWW-Authenticate"].startswith("Basic ")


async def test_an_expired_bearer_token_is_ignored_if_the_form_has_valid_credentials(
    platform: RunningPlatform, created: dict[str, Any]
) -> None:
    answer = await platform.anonymous.post(
        TOKEN, data=form_of(created), headers={"Authorization": "Bearer expired.to.ken"}
    )
    assert answer.status_code == 200


async def test_only_post_is_allowed(platform: RunningPlatform) -> None:
    answer = await platform.anonymous.get(TOKEN, params={"grant_type": "client_credentials"})
    assert (answer.status_code, set(answer.json())) == (405, {"error", "error_description"})


async def test_a_deleted_organizations_clients_get_no_token(
    platform: RunningPlatform, tenant: Tenant, created: dict[str, Any]
) -> None:
    platform.sql("UPDATE tenants SET deleted_at = now() WHERE id = %s", [tenant.id])
    assert_error(await platform.anonymous.post(TOKEN, data=form_of(created)), 401, "invalid_client")


async def test_requests_beyond_the_limit_of_waiting_requests_are_refused(
    platform: RunningPlatform, created: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_MAX_WAITING_REQUESTS", 5)
    answers = await asyncio.gather(*[platform.anonymous.post(TOKEN, data=form_of(created)) for _ in range(60)])
    assert {answer.status_code for answer in answers} == {200, 503}
    assert sum(answer.status_code == 200 for answer in answers) >= 7
    busy = next(answer for answer in answers if answer.status_code == 503)
    assert (busy.json()["error"], busy.headers["Retry-After"]) == ("temporarily_unavailable", "1")
    assert (await platform.anonymous.post(TOKEN, data=form_of(created))).status_code == 200


# audit of failures --------------------------------------------------------------------------------------------------


async def test_failures_of_a_known_client_are_recorded_once_a_minute(
    platform: RunningPlatform, tenant: Tenant, created: dict[str, Any]
) -> None:
    for _ in range(5):
        await platform.anonymous.post(TOKEN, data=form_of(created) | {"client_secret": "guess"})
    (event,) = await platform.audit(tenant, "oauth_token.refused")
    assert (event["outcome"], event["reason"], event["resource_id"]) == (
        "failure",
        "wrong_secret",
        created["client_id"],
    )
    assert event["details"] == {"attempts": 1}
    assert event["request_id"]
    assert "guess" not in str(event)
    await platform.anonymous.post(TOKEN, data=form_of(created))
    assert len(await platform.audit(tenant, "oauth_token.refused")) == 1


async def test_attempts_are_counted_between_records() -> None:
    class Clock:
        time = 100.0
        now = staticmethod(SYSTEM_CLOCK.now)

        def monotonic(self) -> float:
            return self.time

    clock, client = Clock(), uuid4()
    failures = FailureThrottle(clock)
    assert [failures.attempts_to_record(client) for _ in range(4)] == [1, None, None, None]
    assert failures.attempts_to_record(uuid4()) == 1
    clock.time += 61
    assert failures.attempts_to_record(client) == 4
    clock.time += 61
    assert failures.attempts_to_record(client) == 1


# the key set --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/.well-known/jwks.json", "/.well-known/jwks.json/"])
async def test_the_key_set_contains_only_public_keys(platform: RunningPlatform, path: str) -> None:
    answer = await platform.anonymous.get(path)
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "public, max-age=300"
    keys = answer.json()["keys"]
    assert keys
    assert all(key.keys() == {"kty", "use", "alg", "kid", "n", "e"} for key in keys)


async def test_a_client_of_the_default_organization_can_call_models(platform: RunningPlatform) -> None:
    """A client that names no organization belongs to the default organization, and can call models."""
    operator = await platform.operator()
    m2m_client = (await operator.client.post(f"{BASE}/", json={"name": "first", "scopes": ["api:read"]})).json()
    assert m2m_client["tenant_id"] == str(DEFAULT_TENANT)
    token = (await platform.anonymous.post(TOKEN, data=form_of(m2m_client))).json()["access_token"]
    assert (await platform.client(token).get("/v1/models")).status_code == 200

"""Attacks on the consent of users (docs/mcp.md)."""

import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from aiohttp import web
from tests.platform.mcp.connections.conftest import Browser
from tests.support.mcp_accounts import OWN, AccountServer, begin, come_back, connect, registered, user_oauth
from tests.support.mcp_servers import BASE, call, token_endpoint
from tests.support.members import Member, member
from tests.support.pages import Visitor
from tests.support.platform import RunningPlatform, Tenant


@pytest.fixture
async def server(platform: RunningPlatform, tenant: Tenant, upstream: AccountServer) -> dict[str, Any]:
    return await registered(platform, tenant, upstream)


@pytest.fixture
async def ada(platform: RunningPlatform, tenant: Tenant, server: dict[str, Any]) -> Member:
    return await member(platform, tenant)


async def status_of(who: Member) -> str:
    (listed,) = (await who.client.get(OWN)).json()["mcp_connections"]
    return str(listed["status"])


async def reasons(platform: RunningPlatform, tenant: Tenant) -> list[str]:
    return [event["reason"] for event in await platform.audit(tenant, "mcp_connection.failed")]


async def test_the_authorization_request_has_pkce_state_resource_and_the_exact_redirect_uri(
    upstream: AccountServer, ada: Member, browser: Browser
) -> None:
    visitor = await browser(ada)
    first, second = await begin(visitor), await begin(visitor)
    query, other = (dict(parse_qsl(urlsplit(url).query)) for url in (first, second))
    assert query["redirect_uri"] == "https://gatehouse.test/connect/weather/callback"
    assert (query["resource"], query["scope"]) == (upstream.url, "tools")
    assert query["state"] != other["state"]
    assert query["code_challenge"] != other["code_challenge"]


async def test_the_page_needs_a_signed_in_browser_and_a_form_of_the_platform(
    platform: RunningPlatform, ada: Member, browser: Browser
) -> None:
    stranger = Visitor(platform)
    page = await stranger.get("/connect/weather")
    assert (page.status_code, page.headers["location"]) == (303, "/login?next=%2Fconnect%2Fweather")
    visitor = await browser(ada)
    await visitor.get("/connect/weather")
    assert (await visitor.fill(proof="0" * 64)).status_code == 403
    await visitor.get("/connect/weather")
    forged = await visitor.client.post("/connect/weather", data={"proof": ""}, headers={"Origin": "https://evil.test"})
    assert forged.status_code == 403
    assert platform.sql("SELECT count(*) FROM mcp_consents WHERE user_id = %s", [ada.id]) == [(0,)]
    assert (await visitor.get("/connect/none")).status_code == 404


async def test_a_consent_cannot_be_finished_by_another_user_or_session(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, ada: Member, browser: Browser
) -> None:
    """An attacker begins, and a victim follows the link: neither gets the account of the other."""
    mallory = await member(platform, tenant)
    attacker, victim = await browser(mallory), await browser(ada)
    answer = upstream.consent(await begin(attacker))
    assert await come_back(victim, answer) == 400
    assert await status_of(ada) == await status_of(mallory) == "not_connected"
    # A state of the victim's own does not help either: the code belongs to another challenge.
    own = upstream.consent(await begin(victim))
    assert await come_back(victim, {**own, "code": answer["code"]}) == 400
    assert await status_of(ada) == "not_connected"
    # The same user in another session.
    again = upstream.consent(await begin(victim))
    assert await come_back(await browser(ada), again) == 400
    assert await come_back(Visitor(platform), again) == 400
    assert await come_back(victim, again) == 303
    assert await status_of(ada) == "connected"
    assert await reasons(platform, tenant) == ["another_session", "token_refused", "another_session"]


async def test_a_state_is_valid_once_for_one_server_and_for_a_short_time(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, ada: Member, browser: Browser
) -> None:
    visitor = await browser(ada)
    answer = upstream.consent(await begin(visitor))
    assert await come_back(visitor, answer) == 303
    assert await come_back(visitor, answer) == 400
    late = upstream.consent(await begin(visitor))
    platform.sql("UPDATE mcp_consents SET expires_at = now() WHERE user_id = %s", [ada.id])
    assert await come_back(visitor, late) == 400
    await registered(platform, tenant, upstream, name="other")
    mixed = upstream.consent(await begin(visitor, "weather"))
    assert await come_back(visitor, mixed, "other") == 400
    for parameters in ({}, {"state": ""}, {"state": "x" * 5_000}, {"code": "a", "state": "\x00"}):
        assert await come_back(visitor, parameters) == 400
    assert (await visitor.get("/connect/weather/callback?state=a&state=b")).status_code == 400


@pytest.mark.parametrize("issuer", [None, "https://evil.test"])
async def test_an_answer_of_another_issuer_is_refused(
    issuer: str | None,
    platform: RunningPlatform,
    tenant: Tenant,
    upstream: AccountServer,
    ada: Member,
    browser: Browser,
) -> None:
    visitor = await browser(ada)
    answer = upstream.consent(await begin(visitor))
    del answer["iss"]
    count = len(upstream.token_requests)
    assert await come_back(visitor, answer if issuer is None else {**answer, "iss": issuer}) == 400
    assert len(upstream.token_requests) == count
    assert await reasons(platform, tenant) == ["issuer_mismatch"]


async def test_a_user_who_declines_is_not_connected(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, ada: Member, browser: Browser
) -> None:
    visitor = await browser(ada)
    state = upstream.consent(await begin(visitor))["state"]
    answer = {"error": "access_denied", "error_description": "<b>no</b>", "state": state, "iss": upstream.origin}
    assert await come_back(visitor, answer) == 400
    assert "<b>no</b>" not in visitor.page.text
    assert "declined" in visitor.page.text
    assert await reasons(platform, tenant) == ["access_denied"]


HUGE = json.dumps({"access_token": "a", "expires_in": 60, "padding": "x" * 1_000_000})


@pytest.mark.parametrize(
    "body",
    [
        HUGE, "[" * 100_000, "{}", '{"access_token": "a b"}', '{"access_token": "a", "token_type": "mac"}',
        '{"access_token": "a", "expires_in": "soon"}', '{"access_token": "' + "a" * 20_000 + '"}',
    ],
)  # fmt: skip
async def test_bad_answers_of_the_token_endpoint_connect_nothing(
    body: str, upstream: AccountServer, ada: Member, browser: Browser
) -> None:
    visitor = await browser(ada)
    answer = upstream.consent(await begin(visitor))
    upstream.respond = lambda form: web.Response(text=body, content_type="application/json")
    assert await come_back(visitor, answer) == 400
    assert await status_of(ada) == "not_connected"


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.test"}, {"code_challenge_methods_supported": ["plain"]},
        {"code_challenge_methods_supported": []}, {"token_endpoint": "http://169.254.169.254/token"},
        {"authorization_endpoint": "javascript:alert(1)"}, {"authorization_endpoint": "https://a.test/#x"},
        {"revocation_endpoint": "file:///etc/passwd"}, {"token_endpoint": "https://10.0.0.5/token"},
        {"token_endpoint": "http://accounts.example.com/token"}, {"revocation_endpoint": "http://10.0.0.5/"},
    ],
)  # fmt: skip
async def test_bad_metadata_begins_no_consent(
    metadata: dict[str, Any], upstream: AccountServer, ada: Member, browser: Browser
) -> None:
    visitor = await browser(ada)
    upstream.metadata = metadata
    await visitor.get("/connect/weather")
    answer = await visitor.fill()
    assert answer.status_code == 400
    assert upstream.origin not in answer.text


async def test_a_changed_server_ends_consents_and_connections(
    tenant: Tenant, server: dict[str, Any], upstream: AccountServer, ada: Member, browser: Browser
) -> None:
    visitor = await browser(ada)
    await connect(upstream, visitor, "ada")
    pending = upstream.consent(await begin(visitor))
    changed = await tenant.admin.client.patch(
        f"{BASE}/{server['id']}", json={"user_oauth": user_oauth(upstream.origin, client_id="another")}
    )
    assert changed.status_code == 200, changed.text
    assert await status_of(ada) == "not_connected"
    assert await come_back(visitor, pending) == 400
    upstream.callers.clear()
    assert (await call(ada.client, "weather", "echo")).status_code == 403
    assert upstream.callers == []


async def test_tokens_are_not_sent_to_another_address_even_if_they_are_kept(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, ada: Member, browser: Browser
) -> None:
    """The second guard: a connection is bound to the address for which the user has consented."""
    await connect(upstream, await browser(ada), "ada")
    platform.sql("UPDATE mcp_connections SET server_url = 'https://old.test/mcp' WHERE user_id = %s", [ada.id])
    assert (await call(ada.client, "weather", "echo")).status_code == 403


async def test_sealed_tokens_of_one_user_are_void_in_the_row_of_another(
    platform: RunningPlatform, tenant: Tenant, upstream: AccountServer, ada: Member, browser: Browser
) -> None:
    ben = await member(platform, tenant)
    await connect(upstream, await browser(ada), "ada")
    await connect(upstream, await browser(ben), "ben")
    platform.sql(
        "UPDATE mcp_connections SET sealed_tokens = (SELECT sealed_tokens FROM mcp_connections WHERE user_id = %s)"
        " WHERE user_id = %s",
        [ada.id, ben.id],
    )
    assert (await call(ben.client, "weather", "echo")).status_code == 403
    assert upstream.callers == []


async def test_a_server_has_one_credential_and_complete_endpoints(
    tenant: Tenant, platform: RunningPlatform, upstream: AccountServer
) -> None:
    async with token_endpoint() as endpoint:
        client = {"token_url": endpoint.url, "client_id": "a", "client_secret": "b"}
        cases = [
            ({"oauth": client, "user_oauth": user_oauth(upstream.origin)}, "user_oauth"),
            ({"header": {"name": "X-Key", "value": "a"}, "user_oauth": user_oauth(upstream.origin)}, "user_oauth"),
            (
                {"user_oauth": user_oauth(upstream.origin, authorization_url="https://a.test/authorize")},
                "user_oauth.token_url",
            ),
            ({"user_oauth": user_oauth("http://169.254.169.254")}, "user_oauth.issuer"),
            ({"user_oauth": user_oauth(upstream.origin, client_id="")}, "user_oauth.client_id"),
            ({"user_oauth": {"client_id": "public"}}, "user_oauth.issuer"),
        ]
        for fields, field in cases:
            answer = await tenant.admin.client.post(BASE, json={"name": "other", "url": upstream.url, **fields})
            assert answer.status_code == 422, fields
            assert ".".join(answer.json()["detail"][0]["loc"][1:]) == field

"""Attacks on a sign-in: each ends before a session exists (RFC 6749, 10.12; RFC 9700, 4; docs/portal-sign-in.md)."""

import asyncio
from urllib.parse import parse_qsl, urlencode, urlsplit
from uuid import uuid4

import pytest
from tests.support.portal import RunningPortal
from tests.support.server import GatehouseServer
from tests.support.surfer import Surfer
from tests.support.town import Provisioned, Town
from tests.support.upstream import Connection, upstream

from gatehouse.portal.settings import PortalSettings

SSO = "/v1/auth/sso"
BEGUN = "gatehouse_portal_sign_in"


def address(query: dict[str, str]) -> str:
    return f"{SSO}/callback?{urlencode(query)}"


async def begun(surfer: Surfer) -> dict[str, str]:
    """Returns the parameters with which the browser is redirected to the platform."""
    await surfer.get(f"{SSO}/login")
    return dict(parse_qsl(urlsplit(surfer.page.headers["Location"]).query))


async def refused(surfer: Surfer, query: dict[str, str] | str) -> None:
    """Checks that the sign-in ends with an error page, without a session, and without the sent values."""
    await surfer.get(query if isinstance(query, str) else address(query))
    assert (surfer.page.status_code, surfer.page.headers["Content-Type"]) == (400, "text/html; charset=utf-8")
    assert "Location" not in surfer.page.headers
    assert (surfer.cookie(), surfer.cookie("gatehouse_portal_arrived")) == (None, None)
    if not isinstance(query, str) and query.get("code"):
        assert query["code"] not in surfer.page.text


# state ---------------------------------------------------------------------------------------------------------------


async def test_a_sign_in_started_in_another_browser_is_refused(
    org: Provisioned, surfer: Surfer, stranger: Surfer
) -> None:
    """A victim follows a link with a valid code of the attacker, and must not be signed in as the attacker."""
    await stranger.to_the_platform(org.owner)
    attackers_callback = stranger.coming_back
    await refused(surfer, attackers_callback)
    await begun(surfer)
    await refused(surfer, attackers_callback)
    # The code has not been used by this attempt.
    await stranger.follow_all()
    assert stranger.at == "/dashboard"


async def test_another_persons_code_is_refused_with_ones_own_state(
    org: Provisioned, surfer: Surfer, stranger: Surfer
) -> None:
    """The code was issued to another browser, so the verifier of this browser does not match (RFC 7636)."""
    await stranger.to_the_platform(org.owner)
    own_parameters = await begun(surfer)
    await refused(surfer, {**stranger.coming_back, "state": own_parameters["state"]})


async def test_a_code_is_valid_once(org: Provisioned, surfer: Surfer) -> None:
    await surfer.to_the_platform(org.owner)
    query, (name,) = surfer.coming_back, surfer.begun
    cookie_value = str(surfer.cookie(name))
    await surfer.follow_all()
    assert surfer.at == "/dashboard"
    await surfer.submit("/logout")
    await refused(surfer, query)
    surfer.client.cookies.set(name, cookie_value, domain="127.0.0.1", path="/")
    await refused(surfer, query)


@pytest.mark.parametrize(
    "change",
    [
        {"state": ""},
        {"state": "x"},
        {"code": ""},
        {"code": "gac_made-up"},
        {"iss": ""},
        {"iss": "https://evil.test"},
        {"error": "access_denied"},
        {"code": "", "error": "login_required", "error_description": "<script>alert(1)</script>"},
    ],
)
async def test_a_modified_callback_is_refused(org: Provisioned, surfer: Surfer, change: dict[str, str]) -> None:
    await surfer.to_the_platform(org.owner)
    await refused(surfer, {**surfer.coming_back, **change})
    assert "<script" not in surfer.page.text


@pytest.mark.parametrize("name", ["code", "state", "iss"])
async def test_a_missing_or_duplicate_parameter_is_refused(org: Provisioned, surfer: Surfer, name: str) -> None:
    await surfer.to_the_platform(org.owner)
    query = surfer.coming_back
    await refused(surfer, address(query) + "&" + urlencode({name: query[name]}))
    del query[name]
    await refused(surfer, query)


async def test_a_state_that_was_tampered_with_or_is_old_is_refused(
    portal: RunningPortal, org: Provisioned, surfer: Surfer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await surfer.to_the_platform(org.owner)
    query, (name,) = surfer.coming_back, surfer.begun
    cookie_value = str(surfer.cookie(name))
    sealed_elsewhere = portal.host.sealer.seal(b"{}", context=b"portal_signing_key:x")
    for value in (cookie_value[:-6] + "AAAAAA", "v1.x.y", sealed_elsewhere, "{}"):
        surfer.client.cookies.set(name, value, domain="127.0.0.1", path="/")
        await refused(surfer, query)
    surfer.client.cookies.set(name, cookie_value, domain="127.0.0.1", path="/")
    now = portal.host.clock.now()
    monkeypatch.setattr(type(portal.host.clock), "now", lambda self: now + 601)
    await refused(surfer, query)


# PKCE and nonce ----------------------------------------------------------------------------------------------------


async def test_every_sign_in_has_its_own_challenge_nonce_and_state(
    surfer: Surfer, server: GatehouseServer, settings: PortalSettings
) -> None:
    first, second = await begun(surfer), await begun(surfer)
    assert surfer.page.headers["Location"].startswith(f"{server.url}/oauth/authorize?")
    for item in (first, second):
        assert (item["response_type"], item["code_challenge_method"]) == ("code", "S256")
        assert item["redirect_uri"] == f"{settings.portal_public_url}{SSO}/callback"
        assert len(item["code_challenge"]) == len(item["state"]) == len(item["nonce"]) == 43
    assert all(first[name] != second[name] for name in ("state", "nonce", "code_challenge"))
    cookies = [f"{name}={surfer.cookie(name)}" for name in surfer.begun]
    assert len(cookies) == 2
    assert not any(item[name] in text for text in cookies for item in (first, second) for name in ("state", "nonce"))


@pytest.mark.parametrize(
    "change",
    [
        {"code_challenge": "", "code_challenge_method": ""},
        {"code_challenge_method": "plain"},
        {"code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"},
        {"nonce": ""},
        {"nonce": "another"},
    ],
)
async def test_a_weakened_authorization_request_is_refused(
    org: Provisioned, surfer: Surfer, change: dict[str, str]
) -> None:
    """An attacker changes the request: no challenge, a plain one, another one; no nonce, or another one."""
    await surfer.sign_in(org.owner)
    await surfer.submit("/logout")
    request = {name: value for name, value in {**await begun(surfer), **change}.items() if value}
    await surfer.get(f"{surfer.platform}/oauth/authorize?{urlencode(request)}")
    assert surfer.page.headers["Location"].startswith(f"{surfer.portal}{SSO}/callback?")
    await refused(surfer, surfer.coming_back)


# redirects ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.test",
        "https://evil.test/dashboard",
        "//evil.test/dashboard",
        "/\\evil.test",
        "\\\\evil.test",
        "/dashboard/../../evil.test",
        "/dashboard?next=//evil.test",
        "/dashboard#x",
        "/%2f%2fevil.test",
        "javascript:alert(1)",
        "/v1/auth/sso/login",
        "dashboard",
        " /dashboard",
        "/dashboard\n",
        "{portal}.evil.test/dashboard",
        "{portal}@evil.test/dashboard",
        "{portal}//evil.test",
        "x" * 5000,
    ],
)
async def test_a_sign_in_redirects_only_to_the_portals_own_pages(surfer: Surfer, target: str) -> None:
    path = f"{SSO}/login?{urlencode({'redirect_uri': target.replace('{portal}', surfer.portal)})}"
    answer = await surfer.client.get(surfer.portal + path)
    assert (answer.status_code, answer.json()["error"]) == (422, "validation_error")
    assert "redirect_uri" in answer.json()["detail"]
    assert "set-cookie" not in answer.headers
    await surfer.get(path)
    assert (surfer.page.status_code, surfer.page.headers["Content-Type"]) == (400, "text/html; charset=utf-8")


@pytest.mark.parametrize("target", ["https://evil.test", "//evil.test", "/v1/auth/sso/login?redirect_uri=//evil.test"])
async def test_the_sign_in_pages_link_redirects_only_to_own_pages(surfer: Surfer, target: str) -> None:
    await surfer.get(f"/login?{urlencode({'next': target, 'note': '<b>'})}")
    assert f"{SSO}/login?redirect_uri=%2Fdashboard" in surfer.page.text
    assert not {"evil", "<b>"} & set(surfer.page.text.split())
    assert "evil" not in surfer.page.text


# sessions ----------------------------------------------------------------------------------------------------------


async def test_no_session_can_be_fixed_in_advance(
    portal: RunningPortal, town: Town, org: Provisioned, second_org: Provisioned, surfer: Surfer, stranger: Surfer
) -> None:
    """A sign-in replaces the session that the browser had before."""
    await stranger.sign_in(second_org.owner)
    planted = str(stranger.cookie())
    surfer.client.cookies.set("gatehouse_portal", planted, domain="127.0.0.1", path="/")
    await surfer.sign_in(org.owner)
    assert surfer.cookie() not in {None, planted}
    assert (await portal.host.keys.verify(str(surfer.cookie())))["sub"] == str(org.id)
    # A person without an organization does not continue in the planted session.
    surfer.client.cookies.clear()
    surfer.client.cookies.set("gatehouse_portal", planted, domain="127.0.0.1", path="/")
    await surfer.sign_in(town.person(org))
    assert (surfer.at, surfer.cookie()) == ("/invitation", None)


async def test_a_partial_token_gives_no_access_to_an_organization(
    town: Town, org: Provisioned, second_org: Provisioned, surfer: Surfer
) -> None:
    person = town.person(org)
    town.join(org, person)
    town.join(second_org, person)
    await surfer.sign_in(person)
    partial = str(surfer.cookie("gatehouse_portal_arrived"))
    headers = {"Authorization": f"Bearer {partial}"}
    for method, path in (("GET", org.path), ("GET", f"{SSO}/session"), ("POST", f"{SSO}/refresh")):
        assert (await surfer.client.request(method, surfer.portal + path, headers=headers)).status_code == 401
    surfer.client.cookies.clear()
    surfer.client.cookies.set("gatehouse_portal", partial, domain="127.0.0.1", path="/")
    assert (await surfer.client.get(surfer.portal + f"{SSO}/session")).status_code == 401


async def test_an_invalid_token_cannot_choose_an_organization(
    portal: RunningPortal, org: Provisioned, surfer: Surfer, server: GatehouseServer
) -> None:
    now = portal.host.clock.now()
    claims = {"sub": org.owner.id, "tenant_id": org.owner.tenant_id, "email": org.owner.email}
    expired = await portal.signed(claims, aud=f"{portal.host.settings.issuer}#arrived", exp=int(now) - 100)
    for_others = await portal.signed(claims, aud="somebody else")
    for token in ("x.y.z", expired, for_others, server.key):
        for path, body in (("select-org", {"org_id": str(org.id)}), ("accept-invite", {"invite_token": "inv_x"})):
            answer = await surfer.client.post(
                f"{surfer.portal}{SSO}/{path}", json=body, headers={"Authorization": f"Bearer {token}"}
            )
            assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized")


@pytest.mark.parametrize("path", ["select-org", "accept-invite", "refresh", "logout"])
async def test_another_sites_request_with_the_cookie_is_refused(org: Provisioned, surfer: Surfer, path: str) -> None:
    page = "/invitation" if path == "accept-invite" else "/dashboard"
    await surfer.sign_in(org.owner, path=f"{SSO}/login?redirect_uri={page}")
    cookies = [surfer.cookie(name) for name in ("gatehouse_portal", "gatehouse_portal_arrived")]
    body = {"org_id": str(org.id)} if path == "select-org" else {"invite_token": "inv_x"}
    for origin in (None, "null", "https://evil.test", surfer.platform, f"{surfer.portal}.evil.test"):
        answer = await surfer.send(f"{SSO}/{path}", body, origin=origin, **{"Sec-Fetch-Site": "cross-site"})
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden"), origin
        assert "set-cookie" not in answer.headers
    assert [surfer.cookie(name) for name in ("gatehouse_portal", "gatehouse_portal_arrived")] == cookies
    await surfer.get(page)
    assert surfer.page.status_code == 200


@pytest.mark.parametrize("path", ["/logout", "/settings", "/organizations", "/invitation", "/settings/config-import"])
async def test_another_sites_form_is_refused(org: Provisioned, surfer: Surfer, path: str) -> None:
    await surfer.sign_in(org.owner)
    for headers in ({}, {"Origin": "https://evil.test"}, {"Origin": "null", "Sec-Fetch-Site": "cross-site"}):
        answer = await surfer.client.post(surfer.portal + path, data={"name": "Taken"}, headers=headers)
        assert answer.status_code == 403
    await surfer.get("/dashboard")
    assert (surfer.page.status_code, org.name in surfer.page.text) == (200, True)


async def test_a_request_with_another_same_origin_header_is_accepted(org: Provisioned, surfer: Surfer) -> None:
    await surfer.sign_in(org.owner)
    answer = await surfer.send(f"{SSO}/refresh", origin=None, **{"Sec-Fetch-Site": "same-origin"})
    assert answer.status_code == 200


async def test_over_https_cookies_are_secure_and_bound_to_the_host(
    settings: PortalSettings, portal: RunningPortal
) -> None:
    public = settings.model_copy(update={"portal_public_url": "https://portal.example.com"})
    async with RunningPortal.start(public) as over_https:
        answer = await over_https.anonymous.get(f"{SSO}/login")
        (cookie,) = answer.headers.get_list("set-cookie")
        assert cookie.startswith(f"__Host-{BEGUN}_")
        assert "; Secure" in cookie
        assert "Domain" not in cookie


async def test_cookies_with_names_that_nobody_may_set_do_not_end_a_sign_in(portal: RunningPortal) -> None:
    planted = "; ".join(f"{BEGUN}_({number})=x" for number in range(9))
    answer = await portal.anonymous.get(f"{SSO}/login", headers={"Cookie": planted})
    assert answer.status_code == 303, answer.text
    assert len(answer.headers.get_list("set-cookie")) == 1


# failures ----------------------------------------------------------------------------------------------------------


async def test_without_the_platform_a_sign_in_fails_with_a_message(
    settings: PortalSettings, portal: RunningPortal
) -> None:
    gone = settings.model_copy(update={"platform_url": "http://127.0.0.1:9"})
    async with RunningPortal.start(gone) as alone:
        answer = await alone.anonymous.get(f"{SSO}/login")
        assert (answer.status_code, answer.json()["error"]) == (503, "service_unavailable")
        assert "does not respond" in answer.json()["detail"]
    unset = settings.model_copy(update={"portal_public_url": None})
    async with RunningPortal.start(unset) as nameless:
        answer = await nameless.anonymous.get(f"{SSO}/login")
        assert (answer.status_code, "PORTAL_PUBLIC_URL" in answer.json()["detail"]) == (503, True)
        page = await nameless.anonymous.get("/login")
        assert "not set up" in page.text


@pytest.mark.parametrize("metadata", [b"{}", b"[]", b'{"issuer": "x", "authorization_endpoint": "https://x.test"}'])
async def test_an_invalid_discovery_document_stops_the_sign_in(
    settings: PortalSettings, portal: RunningPortal, metadata: bytes
) -> None:
    request_count = 0

    async def behave(connection: Connection) -> None:
        nonlocal request_count
        request_count += "openid-configuration" in connection.head
        await connection.answer(metadata)

    async with upstream(behave) as far:
        elsewhere = settings.model_copy(update={"platform_url": far.url})
        async with RunningPortal.start(elsewhere) as running:
            answers = await asyncio.gather(*(running.anonymous.get(f"{SSO}/login") for _ in range(5)))
            errors = {(answer.status_code, answer.json()["error"]) for answer in answers}
            assert errors == {(503, "service_unavailable")}
            assert all("PUBLIC_URL" in answer.json()["detail"] for answer in answers)
    # While the platform is unavailable, callers do not wait for each other's fetch.
    assert request_count == 1


async def test_a_person_with_a_partial_token_calls_sixty_times_a_minute(
    town: Town, org: Provisioned, surfer: Surfer
) -> None:
    """The person has no organization yet, so no plan determines the limit."""
    await surfer.sign_in(town.person(org))
    answers = [await surfer.send(f"{SSO}/select-org", {"org_id": str(org.id)}) for _ in range(61)]
    assert {answer.status_code for answer in answers[:50]} == {403}
    assert (answers[-1].status_code, answers[-1].json()["error"]) == (429, "rate_limit_exceeded")


async def test_an_error_is_html_for_browsers_and_json_for_programs(surfer: Surfer) -> None:
    path = f"{SSO}/callback?{urlencode({'state': str(uuid4()), 'code': 'x'})}"
    answer = await surfer.client.get(surfer.portal + path, headers={"Accept": "application/json"})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    await refused(surfer, path)

"""The sign-in page in a browser without scripts (docs/sign-in.md)."""

import re
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from psycopg.types.json import Jsonb
from tests.support.members import Member, code_of, enrol, member
from tests.support.pages import Visitor, forms_of, query_of
from tests.support.platform import PASSWORD, RunningPlatform, Tenant

from gatehouse.foundation.ids import new_id
from gatehouse.foundation.settings import Settings
from gatehouse.platform.access.sign_in import paths

WRONG = "The e-mail address, the user name or the password is wrong."


@pytest.fixture
async def ada(public: RunningPlatform, tenant: Tenant) -> Member:
    return await member(public, tenant, signed_in=False)


def cookies_set(visitor: Visitor) -> dict[str, str]:
    """Attributes by name of the cookies that the last response sets or removes."""
    lines = visitor.page.headers.get_list("set-cookie")
    return {line.partition("=")[0]: line.partition(";")[2] for line in lines}


# with a password ----------------------------------------------------------------------------------------------------


async def test_a_person_signs_in_and_out(
    public: RunningPlatform, tenant: Tenant, ada: Member, visitor: Visitor
) -> None:
    await visitor.sign_in(ada.email.upper())
    assert (visitor.page.status_code, visitor.page.headers["Location"]) == (303, "/login")
    await visitor.follow()
    assert f"You are signed in as <strong>{ada.email}</strong>" in visitor.page.text
    (event,) = await public.audit(tenant, "login.succeeded")
    assert (event["actor_id"], event["details"]["amr"]) == (str(ada.id), ["pwd"])
    cookie = visitor.cookie()
    assert cookie
    assert cookie not in str(event)

    await visitor.fill()
    assert visitor.page.headers["Location"] == "/login?done=out"
    assert visitor.cookie() is None
    await visitor.follow()
    assert "You are signed out." in visitor.page.text
    (ended,) = await public.audit(tenant, "session.ended")
    assert (ended["actor_id"], ended["details"], ended["reason"]) == (str(ada.id), {}, "logout")
    # A copied cookie is invalid.
    visitor.client.cookies.set("gatehouse_session", cookie, domain="gatehouse.test")
    await visitor.get("/login")
    assert "You are signed in" not in visitor.page.text


async def test_a_user_name_signs_in_too(public: RunningPlatform, ada: Member, visitor: Visitor) -> None:
    name = f"ada-{uuid4().hex[:8]}"
    public.sql("UPDATE users SET username = %s WHERE id = %s", [name, ada.id])
    await visitor.sign_in(name)
    assert visitor.page.status_code == 303


async def test_an_address_with_several_accounts_needs_the_organization(
    public: RunningPlatform, tenant: Tenant, other_tenant: Tenant, ada: Member, visitor: Visitor
) -> None:
    twin = await member(public, other_tenant, signed_in=False)
    public.sql("UPDATE users SET email = %s WHERE id = %s", [ada.email, twin.id])
    public.sql(
        "UPDATE users SET password_hash = (SELECT password_hash FROM users WHERE id = %s) WHERE id = %s",
        [ada.id, twin.id],
    )
    await visitor.sign_in(ada.email)
    assert visitor.page.status_code == 400
    await visitor.sign_in(ada.email, path=f"/login?tenant={tenant.slug}")
    assert visitor.page.status_code == 303


async def test_all_failures_look_the_same(public: RunningPlatform, tenant: Tenant, visitor: Visitor) -> None:
    known, inactive = await member(public, tenant, signed_in=False), await member(public, tenant, signed_in=False)
    public.sql("UPDATE users SET is_active = false WHERE id = %s", [inactive.id])
    results = set()
    for email, password in (
        (known.email, "wrong"),
        (known.email, ""),
        (inactive.email, PASSWORD),
        ("nobody@example.test", PASSWORD),
        ("nobody", PASSWORD),
        ("' OR 1=1 --", PASSWORD),
        ("a\0b@example.test", PASSWORD),
        ("x" * 255 + "@example.test", PASSWORD),
    ):
        await visitor.sign_in(email, password)
        assert visitor.page.status_code == 401
        assert WRONG in visitor.page.text
        assert 'role="alert"' in visitor.page.text
        assert visitor.cookie() is None
        result = visitor.page.text.replace(visitor.page.request.content.decode(), "")
        results.add(re.sub(r'(id="email"[^>]*) value="[^"]*"', r"\1", result))
    assert len(results) == 1
    await public.host.later.settle()
    (event, _) = await public.audit(tenant, "login.failed")
    assert event["resource_id"] == str(known.id)


async def test_the_form_keeps_its_input_except_the_password(visitor: Visitor) -> None:
    await visitor.sign_in('"><script>alert(1)</script>@x.test', "a secret password")
    assert "<script>alert" not in visitor.page.text
    assert "&lt;script&gt;alert(1)" in visitor.page.text
    assert "a secret password" not in visitor.page.text


# the cookie ---------------------------------------------------------------------------------------------------------


async def test_the_cookie_is_http_only(public: RunningPlatform, ada: Member, visitor: Visitor) -> None:
    await visitor.sign_in(ada.email)
    attributes = cookies_set(visitor)["gatehouse_session"]
    protected = {"httponly", "path=/", "samesite=lax", "secure"}
    assert {part.strip().lower() for part in attributes.split(";")} == protected
    await visitor.get("/login")
    proof = cookies_set(visitor)["gatehouse_form"]
    assert {part.strip().lower() for part in proof.split(";")} == protected
    cookie = visitor.cookie()
    assert cookie is not None
    rows = public.sql("SELECT b.digest, s.user_id FROM browser_sessions b JOIN sessions s ON s.id = b.session_id")
    assert ada.id in {row[1] for row in rows}
    assert cookie.encode() not in {bytes(row[0]) for row in rows}


async def test_without_tls_the_cookie_is_not_secure(platform: RunningPlatform, tenant: Tenant) -> None:
    """Browsers drop a secure cookie of a page without TLS. Only a developer's platform runs without TLS."""
    visitor = Visitor(platform)
    await visitor.sign_in((await member(platform, tenant, signed_in=False)).email)
    assert "secure" not in cookies_set(visitor)["gatehouse_session"].lower()
    await visitor.client.aclose()


async def test_a_session_cannot_be_fixed_in_advance(ada: Member, visitor: Visitor) -> None:
    planted = "gws_" + "x" * 43
    visitor.client.cookies.set("gatehouse_session", planted, domain="gatehouse.test")
    await visitor.sign_in(ada.email)
    first = visitor.cookie()
    assert first != planted
    await visitor.sign_in(ada.email, path="/login?next=/logout&done=out")
    assert visitor.cookie() not in {planted, first}


async def test_signing_in_again_ends_the_browsers_earlier_session(
    public: RunningPlatform, tenant: Tenant, other_tenant: Tenant, ada: Member, visitor: Visitor
) -> None:
    """A copy of the earlier cookie becomes invalid. If several people use one browser, only the last one is signed
    in."""
    bob = await member(public, other_tenant, signed_in=False)
    session_cookies = []
    for who in (ada, ada, bob):
        await visitor.sign_in(who.email, path="/login?next=/docs&done=out")
        assert visitor.page.status_code == 303
        session_cookies.append(visitor.cookie())
    rows = public.sql(
        "SELECT user_id, revoked_reason FROM sessions WHERE user_id IN (%s, %s) ORDER BY created_at", [ada.id, bob.id]
    )
    assert rows == [(ada.id, "signed_in_again"), (ada.id, "signed_in_again"), (bob.id, None)]
    # Each event is in the chain of the session's organization, with the session's user as the actor.
    ended = await public.audit(tenant, "session.ended")
    assert [(outcome["actor_id"], outcome["reason"]) for outcome in ended] == [(str(ada.id), "signed_in_again")] * 2
    assert await public.audit(other_tenant, "session.ended") == []
    visitor.client.cookies.set("gatehouse_session", session_cookies[1] or "", domain="gatehouse.test")
    assert "You are signed in" not in (await visitor.get("/login")).text


async def test_signing_in_again_does_not_end_sessions_of_other_devices(
    public: RunningPlatform, tenant: Tenant, ada: Member, visitor: Visitor
) -> None:
    public.sql('UPDATE tenants SET session_policy = \'{"concurrent_sessions": "2"}\' WHERE id = %s', [tenant.id])
    phone = Visitor(public)
    await phone.sign_in(ada.email)
    for _ in range(3):
        await visitor.sign_in(ada.email, path="/login?next=/docs&done=out")
    assert "You are signed in" in (await phone.get("/login")).text
    await phone.client.aclose()


@pytest.mark.parametrize(
    "end",
    [
        "UPDATE sessions SET revoked_at = now() WHERE user_id = %s",
        "UPDATE sessions SET expires_at = now() WHERE user_id = %s",
        "UPDATE users SET is_active = false WHERE id = %s",
        "UPDATE tenants SET deleted_at = now() WHERE id = (SELECT tenant_id FROM users WHERE id = %s)",
        "UPDATE tenants SET session_policy = '{\"session_timeout_minutes\": 15}'"
        " WHERE id = (SELECT tenant_id FROM users WHERE id = %s)",
    ],
)
async def test_the_cookie_ends_with_session_user_and_organization(
    public: RunningPlatform, ada: Member, visitor: Visitor, end: str
) -> None:
    await visitor.sign_in(ada.email)
    public.sql(
        "UPDATE sessions SET created_at = now() - interval '16 min', last_seen_at = now() - interval '16 min'"
        " WHERE user_id = %s",
        [ada.id],
    )
    assert "You are signed in" in (await visitor.get("/login")).text
    public.sql(end, [ada.id])
    assert "You are signed in" not in (await visitor.get("/login")).text


# forged forms -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/login", "/login/single-sign-on", "/login/reset", "/login/invitation", "/login/second-factor", "/logout",
        "/login/enrol/app", "/login/enrol/app/confirm", "/login/enrol/passkey",
    ],
)  # fmt: skip
async def test_a_form_without_the_csrf_token_is_refused(ada: Member, visitor: Visitor, path: str) -> None:
    await visitor.sign_in(ada.email)
    await visitor.get("/login?next=/x")
    form: dict[str, str] = {"email": ada.email, "password": PASSWORD}
    for proof in ({}, {"proof": ""}, {"proof": "0" * 64}):
        answer = await visitor.client.post(path, data=form | proof)
        assert answer.status_code == 403
        assert answer.headers["Content-Type"].startswith("text/html")
    assert "You are signed in" in (await visitor.get("/login")).text


async def test_a_csrf_token_of_another_browser_is_refused(
    public: RunningPlatform, ada: Member, visitor: Visitor
) -> None:
    stranger = Visitor(public)
    await stranger.get("/login")
    await visitor.get("/login")
    await visitor.fill(email=ada.email, password=PASSWORD, proof=forms_of(stranger.page)[0].fields["proof"])
    assert visitor.page.status_code == 403
    await stranger.client.aclose()


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://gatehouse.test", 303), (None, 303), ("https://evil.test", 403), ("https://gatehouse.test.evil", 403),
        ("null", 403), ("https://x.gatehouse.test", 403), ("http://gatehouse.test", 403),
        ("https://[", 403), ("HTTPS://GATEHOUSE.TEST", 303),
    ],
)  # fmt: skip
async def test_a_same_origin_header_is_accepted(ada: Member, visitor: Visitor, origin: str | None, status: int) -> None:
    """A page at another subdomain can set the cookie, but not the `Origin` header."""
    await visitor.get("/login")
    if origin is not None:
        visitor.client.headers["Origin"] = origin
    await visitor.fill(email=ada.email, password=PASSWORD)
    assert visitor.page.status_code == status


async def test_the_csrf_token_changes_at_sign_in_and_sign_out(ada: Member, visitor: Visitor) -> None:
    results = []
    await visitor.get("/login")
    for fields in ({"email": ada.email, "password": PASSWORD}, {}):
        results.append(visitor.cookie("gatehouse_form"))
        await visitor.fill(**fields)
        assert visitor.cookie("gatehouse_form") is None
        await visitor.follow()
    results.append(visitor.cookie("gatehouse_form"))
    assert len(set(results)) == 3


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (b"email=a&email=b", "application/x-www-form-urlencoded"),
        (b"email=%ff", "application/x-www-form-urlencoded"),
        (b"{}", "application/json"),
        (b"", ""),
    ],
)
async def test_malformed_forms_are_refused(visitor: Visitor, content: bytes, media_type: str) -> None:
    answer = await visitor.client.post("/login", content=content, headers={"Content-Type": media_type})
    assert answer.status_code == 400
    assert answer.headers["Content-Type"].startswith("text/html")


# redirects after the sign-in ----------------------------------------------------------------------------------------

FOREIGN_PATHS = [
    "https://evil.example", "//evil.example", "/\\evil.example", "\\\\evil.example", "/\t/evil.example", "javascript:x",
    "http:evil.example", "/ /evil.example", "///evil.example", "evil.example", "/\n/evil.example", "/ü", "",
    "https:/\\evil.example", "/" + "x" * 10_000,
]  # fmt: skip


@pytest.mark.parametrize("path", FOREIGN_PATHS)
def test_foreign_redirects_are_refused(path: str) -> None:
    assert paths.own_path(path) == "/login"


@pytest.mark.parametrize("path", ["/oauth/authorize?a=b&c=//d", "/docs", "/x?next=https://evil.example"])
def test_redirects_to_own_paths_are_allowed(path: str) -> None:
    assert paths.own_path(path) == path


@pytest.mark.parametrize("path", ["https://evil.example", "//evil.example", "/\\evil.example"])
async def test_a_link_does_not_redirect_to_foreign_addresses_after_signing_in(
    ada: Member, visitor: Visitor, path: str
) -> None:
    await visitor.get("/login?next=/docs")
    await visitor.fill(email=ada.email, password=PASSWORD, next=path)
    assert visitor.page.headers["Location"] == "/login"


async def test_a_sign_in_continues_to_the_requested_page(ada: Member, visitor: Visitor) -> None:
    await visitor.sign_in(ada.email, path="/login?next=/docs%3Fx%3D1")
    assert visitor.page.headers["Location"] == "/docs?x=1"


# second factors -----------------------------------------------------------------------------------------------------


@pytest.fixture
async def protected(public: RunningPlatform, tenant: Tenant) -> tuple[Member, str, list[str]]:
    """Return a member with an authenticator app, the secret of the app, and the recovery codes."""
    created = await member(public, tenant)
    return created, *await enrol(public, created)


async def test_a_sign_in_continues_after_the_second_factor(
    public: RunningPlatform, tenant: Tenant, protected: tuple[Member, str, list[str]], visitor: Visitor
) -> None:
    who, secret, _ = protected
    await visitor.sign_in(who.email, path="/login?next=/docs")
    assert visitor.page.headers["Location"] == "/login/second-factor?next=%2Fdocs"
    assert visitor.cookie() is None
    pending = cookies_set(visitor)["gatehouse_pending"].lower()
    assert {"httponly", "samesite=strict", "path=/login", "secure"} == {part.strip() for part in pending.split(";")}
    await visitor.follow()
    assert 'autocomplete="one-time-code"' in visitor.page.text
    await visitor.fill(code="000000")
    assert visitor.page.status_code == 401
    assert 'role="alert"' in visitor.page.text
    code = code_of(secret)
    await visitor.fill(code=f"{code[:3]} {code[3:]}")
    assert visitor.page.headers["Location"] == "/docs"
    assert visitor.cookie()
    assert visitor.cookie("gatehouse_pending") is None
    events = await public.audit(tenant, "login.succeeded")
    assert events[-1]["details"]["amr"] == ["pwd", "otp", "mfa"]


async def test_a_recovery_code_signs_in_once(protected: tuple[Member, str, list[str]], visitor: Visitor) -> None:
    who, _, codes = protected
    for status in (303, 401):
        await visitor.sign_in(who.email, path="/login?next=/docs&done=out")
        await visitor.follow()
        await visitor.fill(1, code=codes[0])
        assert visitor.page.status_code == status
    assert "<details open>" in visitor.page.text


async def test_five_wrong_codes_end_the_sign_in(protected: tuple[Member, str, list[str]], visitor: Visitor) -> None:
    await visitor.sign_in(protected[0].email)
    await visitor.follow()
    for _ in range(4):
        await visitor.fill(code="000000")
    await visitor.fill(code="000000")
    assert visitor.page.headers["Location"] == "/login?done=expired"
    assert visitor.cookie("gatehouse_pending") is None


async def test_the_second_factor_page_needs_a_correct_password_first(visitor: Visitor) -> None:
    for path in ("/login/second-factor", "/login/enrol"):
        await visitor.get(path)
        assert visitor.page.headers["Location"] == "/login?done=expired"
    visitor.client.cookies.set("gatehouse_pending", "mfa_" + "x" * 43, domain="gatehouse.test")
    await visitor.get("/login/second-factor")
    assert visitor.page.headers["Location"] == "/login?done=expired"


async def test_a_user_who_must_enrol_enrols_before_the_session_begins(
    public: RunningPlatform, tenant: Tenant, ada: Member, visitor: Visitor
) -> None:
    await public.require_mfa(tenant.id)
    await visitor.sign_in(ada.email, path="/login?next=/docs")
    assert visitor.page.headers["Location"] == "/login/enrol?next=%2Fdocs"
    await visitor.follow()
    apps = [form.action for form in forms_of(visitor.page)].index("/login/enrol/app")
    await visitor.fill(apps)
    secret = forms_of(visitor.page)[0].fields["secret"]
    assert "otpauth://totp/" in visitor.page.text
    assert 'class="qr"' in visitor.page.text
    await visitor.fill(code="000000")
    assert visitor.page.status_code == 400
    assert visitor.cookie() is None
    await visitor.fill(code=code_of(secret))
    assert visitor.page.status_code == 200
    codes = re.findall(r"<li>([0-9a-z-]+)</li>", visitor.page.text)
    assert len(codes) == 10
    assert 'href="/docs"' in visitor.page.text
    assert visitor.cookie()
    assert "You are signed in" in (await visitor.get("/login")).text


# single sign-on -----------------------------------------------------------------------------------------------------


def provider(public: RunningPlatform, tenant: Tenant, name: str, *, active: bool = True) -> Any:
    idp_id = new_id()
    public.sql(
        "INSERT INTO saml_identity_providers (id, tenant_id, name, entity_id, sso_url, x509_cert, is_active)"
        " VALUES (%s, %s, %s, %s, 'https://idp.example/sso', 'x', %s)",
        [idp_id, tenant.id, name, f"https://idp.example/{idp_id}", active],
    )
    return idp_id


async def test_an_organizations_identity_providers_are_offered(
    public: RunningPlatform, tenant: Tenant, other_tenant: Tenant, visitor: Visitor
) -> None:
    domain = f"{uuid4().hex[:12]}.example"
    public.sql(
        "INSERT INTO allowed_domains (tenant_id, domain, verified_at) VALUES (%s, %s, now())", [tenant.id, domain]
    )
    idp_id = provider(public, tenant, "Okta <1>")
    provider(public, tenant, "Old one", active=False)
    provider(public, other_tenant, "Somebody else's")
    link = f'href="/api/saml/login?idp_id={idp_id}&amp;relay_state=%2Fdocs">Continue with Okta &lt;1&gt;</a>'
    await visitor.get("/login?next=/docs")
    assert "Continue with" not in visitor.page.text
    # The response does not depend on whether the person exists.
    await visitor.fill(email=f"nobody@{domain}", action="/login/single-sign-on")
    assert link in visitor.page.text
    assert "Old one" not in visitor.page.text
    assert "else" not in visitor.page.text
    for path in (f"/login?next=/docs&tenant={tenant.slug}", f"/login?next=/docs&email=x@{domain}"):
        assert link in (await visitor.get(path)).text


@pytest.mark.parametrize("email", ["ada@nowhere.example", "ada", "@"])
async def test_the_page_shows_that_there_is_no_identity_provider(visitor: Visitor, email: str) -> None:
    await visitor.get("/login")
    await visitor.fill(email=email, action="/login/single-sign-on")
    assert "There is no single sign-on for this address." in visitor.page.text
    assert visitor.page.status_code == 200


async def test_an_unproven_domain_offers_no_identity_provider(
    public: RunningPlatform, tenant: Tenant, visitor: Visitor
) -> None:
    domain = f"{uuid4().hex[:12]}.example"
    public.sql("INSERT INTO allowed_domains (tenant_id, domain) VALUES (%s, %s)", [tenant.id, domain])
    provider(public, tenant, "Okta")
    assert "Okta" not in (await visitor.get(f"/login?email=ada@{domain}")).text


async def test_a_user_of_an_identity_provider_can_also_sign_out_of_it(
    public: RunningPlatform, tenant: Tenant, ada: Member, visitor: Visitor
) -> None:
    idp_id = provider(public, tenant, "Okta")
    public.sql("UPDATE saml_identity_providers SET slo_url = 'https://idp.example/slo' WHERE id = %s", [idp_id])
    await visitor.sign_in(ada.email)
    public.sql(
        "INSERT INTO saml_sessions (session_id, tenant_id, idp_id, name_id, name_id_attributes)"
        " SELECT id, tenant_id, %s, 'ada', '{}' FROM sessions WHERE user_id = %s",
        [idp_id, ada.id],
    )
    await visitor.get("/logout")
    await visitor.fill()
    assert visitor.page.status_code == 200
    assert 'href="https://idp.example/slo?SAMLRequest=' in visitor.page.text
    assert visitor.cookie() is None
    ((reason,),) = public.sql("SELECT revoked_reason FROM sessions WHERE user_id = %s", [ada.id])
    assert reason == "logout"


# one-time tokens ----------------------------------------------------------------------------------------------------


async def test_an_administrators_token_sets_a_new_password(
    public: RunningPlatform, tenant: Tenant, ada: Member, visitor: Visitor
) -> None:
    issued = (await tenant.admin.client.post(f"/api/admin/users/{ada.id}/password-reset")).json()
    await visitor.get(f"/login/reset?token={issued['token']}")
    await visitor.fill(password="another good one", repeated="another one")
    assert "The two passwords are not the same." in visitor.page.text
    await visitor.fill(password="short", repeated="short")
    assert visitor.page.status_code == 400
    assert "Password: " in visitor.page.text
    await visitor.fill(password="another good one", repeated="another good one")
    assert query_of(visitor.page) == {"done": "password"}
    await visitor.follow()
    assert "Your new password is set." in visitor.page.text
    await visitor.fill(email=ada.email, password="another good one")
    assert visitor.page.status_code == 303
    await visitor.get(f"/login/reset?token={issued['token']}")
    await visitor.fill(password="a third good one", repeated="a third good one")
    assert "not valid, was used already, or has expired" in visitor.page.text


@pytest.mark.parametrize("next_path", ["", "/console/start"])
async def test_an_accepted_invitation_signs_the_person_in(tenant: Tenant, visitor: Visitor, next_path: str) -> None:
    email = f"ada-{uuid4().hex[:10]}@example.test"
    invited = (await tenant.admin.client.post("/api/admin/users", json={"email": email})).json()
    query = {"token": invited["invitation_token"], "email": email, "next": next_path}
    await visitor.get(f"/login/invitation?{urlencode(query)}")
    await visitor.fill(email="eve@example.test", password=PASSWORD, repeated=PASSWORD)
    assert visitor.page.status_code == 400
    await visitor.fill(email=email, display_name="Ada", password=PASSWORD, repeated=PASSWORD)
    assert (visitor.page.status_code, visitor.page.headers["Location"]) == (303, next_path or "/console")
    token = await visitor.client.post(
        "/api/auth/session/token", headers={"Origin": str(visitor.client.base_url).rstrip("/")}
    )
    assert token.json()["user"]["display_name"] == "Ada", token.text


# limits of attempts -------------------------------------------------------------------------------------------------


async def test_passwords_tried_on_the_page_and_at_the_api_are_counted_together(
    settings: Settings, platform: RunningPlatform, tenant: Tenant
) -> None:
    limited = settings.model_copy(update={"rate_limit_tiers": "{}"})
    async with RunningPlatform.start(limited) as running:
        # Other tests of this minute make their attempts from the same address.
        running.sql("DELETE FROM sign_in_tries")
        ada = await member(running, tenant, signed_in=False)
        visitor = Visitor(running)
        for _ in range(5):
            await visitor.sign_in(ada.email.upper(), "wrong")
            assert visitor.page.status_code == 401
            body = {"email": ada.email, "password": "wrong"}
            assert (await running.anonymous.post("/api/auth/login", json=body)).status_code == 401
        await visitor.sign_in(f" {ada.email} ")
        assert visitor.page.status_code == 429
        assert int(visitor.page.headers["Retry-After"]) > 0
        assert visitor.page.headers["Content-Type"].startswith("text/html")
        assert "Too many attempts." in visitor.page.text
        assert (await running.anonymous.post("/api/auth/login", json=body)).status_code == 429
        await visitor.client.aclose()


# headers and static files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/login", "/login/reset", "/login/invitation", "/login?next=%0d", "/login/nothing"])
async def test_the_content_security_policy_forbids_foreign_content(visitor: Visitor, path: str) -> None:
    page = await visitor.get(path)
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["Cache-Control"] == "no-store"
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert not re.search(r"<style|style=|<script(?! src)|\son\w+=|javascript:", page.text)


async def test_static_files_exist_and_are_cacheable(visitor: Visitor) -> None:
    page = await visitor.get("/login")
    named = re.findall(r'(?:href|src)="(/login/static/[^"]+)"', page.text)
    assert len(set(named)) == 3
    for path in named:
        answer = await visitor.get(path)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["Cache-Control"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    for path in ("/login/static/pages.html", "/login/static/..%2frendering.py", "/login/static/x"):
        assert (await visitor.get(path)).status_code == 404


async def test_users_can_sign_in_during_maintenance(public: RunningPlatform, ada: Member, visitor: Visitor) -> None:
    public.sql(
        "INSERT INTO platform_state (key, value) VALUES ('maintenance', %s)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        [Jsonb({"enabled": True, "message": "Back soon."})],
    )
    try:
        public.touch("maintenance", "x")
        await public.refresh()
        await visitor.sign_in(ada.email)
        assert visitor.page.status_code == 303
        page = await visitor.get("/oauth/authorize")
        assert page.status_code == 503
        assert "Back soon." in page.text
    finally:
        public.sql("DELETE FROM platform_state WHERE key = 'maintenance'")
        public.touch("maintenance", "x")
        await public.refresh()


# other pages --------------------------------------------------------------------------------------------------------


async def test_the_front_page_lists_the_endpoints_for_programs(public: RunningPlatform) -> None:
    answer = await public.anonymous.get("/")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    for name in ("sign_in", "documentation", "openapi", "status"):
        assert (await public.anonymous.get(answer.json()[name])).status_code in {200, 503}
    page = await public.anonymous.get("/", headers={"Accept": "text/html,*/*;q=0.8"})
    assert (page.status_code, page.headers["location"]) == (303, "/console")


async def test_a_signed_in_user_is_redirected_without_a_sign_in(ada: Member, visitor: Visitor) -> None:
    await visitor.sign_in(ada.email)
    await visitor.get("/login?next=/docs")
    assert (visitor.page.status_code, visitor.page.headers["Location"]) == (303, "/docs")
    # An application may request another account or a fresh sign-in.
    await visitor.get("/login?next=/oauth/authorize?a=b")
    assert visitor.page.status_code == 200


async def test_a_signed_in_user_is_redirected_from_the_pages_of_a_sign_in(ada: Member, visitor: Visitor) -> None:
    await visitor.get("/login/enrol")
    assert visitor.page.headers["Location"] == "/login?done=expired"
    await visitor.sign_in(ada.email)
    for path in ("/login/enrol", "/login/second-factor"):
        await visitor.get(path)
        assert visitor.page.headers["Location"] == "/login"


@pytest.mark.parametrize("accept", ["application/json", "*/*", ""])
async def test_an_unknown_path_is_json_for_programs(public: RunningPlatform, accept: str) -> None:
    answer = await public.anonymous.get("/nothing", headers={"Accept": accept})
    assert (answer.status_code, answer.json()) == (404, {"detail": "Not found"})

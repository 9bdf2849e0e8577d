"""The platform as an OpenID provider: `/oauth/authorize`, codes, userinfo, discovery (docs/openid.md; OpenID Connect
Core 1.0; RFC 6749, 7636, 9207)."""

import asyncio
import hashlib
import secrets
from base64 import b64encode, urlsafe_b64encode
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit
from uuid import uuid4

import httpx2
import pytest
from joserfc import jwt as jose
from joserfc.jwk import KeySet
from tests.support.members import HASH, Member, member
from tests.support.pages import Visitor, query_of
from tests.support.platform import PASSWORD, RunningPlatform, Tenant

from gatehouse.platform.changes.change import DEFAULT_TENANT

CALLBACK = "https://portal.example.com/callback"
VERIFIER = secrets.token_urlsafe(48)
CLIENTS = "/api/admin/oauth-clients/"


def challenge_of(verifier: str) -> str:
    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


@pytest.fixture(scope="module")
async def portal(public: RunningPlatform) -> dict[str, Any]:
    """A confidential platform-wide client."""
    return await application(public)


@pytest.fixture
async def ada(public: RunningPlatform, tenant: Tenant) -> Member:
    return await member(public, tenant, signed_in=False)


async def application(public: RunningPlatform, /, **body: Any) -> dict[str, Any]:
    operator = await public.operator()
    values = {"name": "the portal", "tenant_id": None, "redirect_uris": [CALLBACK], **body}
    answer = await operator.client.post(CLIENTS, json=values)
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()
    return created


def authorize_url(client: dict[str, Any], /, **more: str | None) -> str:
    """The authorization URL of an application; None omits a parameter."""
    values = {
        "response_type": "code",
        "client_id": client["client_id"],
        "redirect_uri": CALLBACK,
        "scope": "openid email profile",
        "state": "a state & more",
        "nonce": "a nonce",
        "code_challenge": challenge_of(VERIFIER),
        "code_challenge_method": "S256",
        **more,
    }
    return "/oauth/authorize?" + urlencode({name: value for name, value in values.items() if value is not None})


def query(address: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(address).query))


async def authorize(visitor: Visitor, client: dict[str, Any], /, **more: str | None) -> str:
    """Follow the authorization URL as a signed-in user and return the code."""
    await visitor.get(authorize_url(client, **more))
    return query_of(visitor.page)["code"]


async def exchange_code(
    public: RunningPlatform, client: dict[str, Any], code: str, /, **more: str | None
) -> httpx2.Response:
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": CALLBACK,
        "code_verifier": VERIFIER,
        "client_id": client["client_id"],
        "client_secret": client["client_secret"],
        **more,
    }
    return await public.anonymous.post("/oauth/token", data={k: v for k, v in form.items() if v is not None})


async def userinfo(public: RunningPlatform, token: str) -> httpx2.Response:
    return await public.anonymous.get("/oauth/userinfo", headers={"Authorization": f"Bearer {token}"})


async def id_claims(public: RunningPlatform, id_token: str) -> dict[str, Any]:
    keys = KeySet.import_key_set((await public.anonymous.get("/.well-known/jwks.json")).json())
    return dict(jose.decode(id_token, keys, algorithms=["RS256"]).claims)


# sign-in for an application -----------------------------------------------------------------------------------------


async def test_a_person_signs_in_for_an_application(
    public: RunningPlatform, portal: dict[str, Any], ada: Member, tenant: Tenant, visitor: Visitor
) -> None:
    await visitor.get(authorize_url(portal))
    assert visitor.page.headers["Location"].startswith("/login?next=%2Foauth%2Fauthorize%3F")
    await visitor.follow()
    assert "the portal" in visitor.page.text
    await visitor.fill(email=ada.email, password=PASSWORD)
    await visitor.follow()
    assert visitor.page.status_code == 303
    assert visitor.page.headers["Location"].startswith(CALLBACK + "?")
    result = query_of(visitor.page)
    assert result.keys() == {"code", "state", "iss"}
    assert (result["state"], result["iss"]) == ("a state & more", "https://gatehouse.test")

    answer = await exchange_code(public, portal, result["code"])
    assert answer.status_code == 200, answer.text
    assert (answer.headers["Cache-Control"], answer.headers["Pragma"]) == ("no-store", "no-cache")
    tokens = answer.json()
    assert tokens.keys() == {"access_token", "token_type", "expires_in", "scope", "id_token"}
    assert (tokens["token_type"], tokens["scope"], tokens["expires_in"]) == ("Bearer", "openid email profile", 900)
    claims = await id_claims(public, tokens["id_token"])
    assert (claims["iss"], claims["aud"], claims["sub"]) == (
        "https://gatehouse.test",
        portal["client_id"],
        str(ada.id),
    )
    assert (claims["nonce"], claims["amr"], claims["tenant_id"]) == ("a nonce", ["pwd"], str(tenant.id))
    assert (claims["email"], claims["email_verified"], claims["role"]) == (ada.email, False, "user")
    assert 0 <= claims["iat"] - claims["auth_time"] < 60

    info = await userinfo(public, tokens["access_token"])
    assert info.status_code == 200
    assert (await public.client(tokens["access_token"]).post("/oauth/userinfo")).json() == info.json()
    shared_claims = ("sub", "tenant_id", "role", "email", "email_verified", "updated_at")
    assert info.json() == {name: claims[name] for name in shared_claims}
    (event,) = await public.audit(tenant, "oauth_code.issued")
    assert (event["actor_id"], event["resource_id"]) == (str(ada.id), portal["client_id"])
    assert result["code"] not in str(event)


async def test_a_signed_in_user_is_redirected_at_once(portal: dict[str, Any], ada: Member, visitor: Visitor) -> None:
    await visitor.sign_in(ada.email)
    for more in ({}, {"prompt": "none"}):
        await visitor.get(authorize_url(portal, **more))
        assert visitor.page.headers["Location"].startswith(CALLBACK)
        assert "code" in query_of(visitor.page)


async def test_an_authorization_request_may_be_a_form(portal: dict[str, Any], ada: Member, visitor: Visitor) -> None:
    """OpenID Connect Core, 3.1.2.1. Browsers send no session cookie with a form of another site, so the response
    redirects to the same request by GET, which has the cookie."""
    fields = query(authorize_url(portal))
    await visitor.sign_in(ada.email)
    visitor.page = await visitor.client.post("/oauth/authorize", data=fields)
    assert visitor.page.status_code == 303
    assert visitor.page.headers["Location"].startswith("/oauth/authorize?")
    assert query(visitor.page.headers["Location"]) == fields
    await visitor.follow()
    assert visitor.page.headers["Location"].startswith(CALLBACK)
    assert query_of(visitor.page)["state"] == fields["state"]


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (b"client_id=a&client_id=b", "application/x-www-form-urlencoded"),
        (b"state=%ff", "application/x-www-form-urlencoded"),
        (b"\xff", "application/x-www-form-urlencoded"),
        (b"", "application/x-www-form-urlencoded"),
        (b"state=" + b"x" * 9000, "application/x-www-form-urlencoded"),
        (b"state=x%0d%0aLocation:+https://evil.test", "application/x-www-form-urlencoded"),
        (b"{}", "application/json"),
    ],
)
async def test_a_malformed_form_redirects_nowhere(visitor: Visitor, content: bytes, media_type: str) -> None:
    answer = await visitor.client.post("/oauth/authorize", content=content, headers={"Content-Type": media_type})
    assert (answer.status_code, answer.headers["Content-Type"]) == (400, "text/html; charset=utf-8")
    assert "Location" not in answer.headers


async def test_claims_follow_the_scopes(
    public: RunningPlatform, portal: dict[str, Any], ada: Member, visitor: Visitor
) -> None:
    public.sql("UPDATE users SET display_name = 'Ada Lovelace', username = %s WHERE id = %s", [f"a{uuid4()}", ada.id])
    await visitor.sign_in(ada.email)
    code = await authorize(visitor, portal, scope="openid made-up")
    tokens = (await exchange_code(public, portal, code)).json()
    assert tokens["scope"] == "openid"
    assert (await userinfo(public, tokens["access_token"])).json().keys() == {"sub", "tenant_id", "role"}
    code = await authorize(visitor, portal, scope="profile openid")
    tokens = (await exchange_code(public, portal, code)).json()
    claims = await id_claims(public, tokens["id_token"])
    assert claims["name"] == "Ada Lovelace"
    assert "email" not in claims


async def test_a_request_without_state_and_nonce_gets_none_back(
    public: RunningPlatform, portal: dict[str, Any], ada: Member, visitor: Visitor
) -> None:
    await visitor.sign_in(ada.email)
    await visitor.get(authorize_url(portal, state=None, nonce=None))
    assert query_of(visitor.page).keys() == {"code", "iss"}
    tokens = (await exchange_code(public, portal, query_of(visitor.page)["code"])).json()
    assert "nonce" not in await id_claims(public, tokens["id_token"])


async def test_a_redirect_uri_keeps_its_query(public: RunningPlatform, ada: Member, visitor: Visitor) -> None:
    uri = CALLBACK + "?org=1"
    client = await application(public, redirect_uris=[uri])
    await visitor.sign_in(ada.email)
    await visitor.get(authorize_url(client, redirect_uri=uri))
    assert visitor.page.headers["Location"].startswith(uri + "&code=")


# verified addresses -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("domain_owner", "marked_verified", "verified"),
    [("own", True, True), ("own", False, False), ("none", True, False), ("another's", True, False)],
)
async def test_an_address_is_verified_only_if_its_domain_is_proven(
    public: RunningPlatform,
    portal: dict[str, Any],
    tenant: Tenant,
    other_tenant: Tenant,
    visitor: Visitor,
    domain_owner: str,
    marked_verified: bool,
    verified: bool,
) -> None:
    """An address of a domain that the tenant has not verified is unverified, even if the user's row marks it as
    verified."""
    domain = f"{uuid4().hex[:12]}.example"
    prover = {"own": tenant, "another's": other_tenant}.get(domain_owner)
    ada = await member(public, tenant, signed_in=False)
    await visitor.sign_in(ada.email)
    public.sql(
        "UPDATE users SET email = %s, email_verified = %s WHERE id = %s", [f"ada@{domain}", marked_verified, ada.id]
    )
    if prover is not None:
        public.sql(
            "INSERT INTO allowed_domains (tenant_id, domain, verified_at) VALUES (%s, %s, now())", [prover.id, domain]
        )
    tokens = (await exchange_code(public, portal, await authorize(visitor, portal))).json()
    assert (await id_claims(public, tokens["id_token"]))["email_verified"] is verified
    assert (await userinfo(public, tokens["access_token"])).json()["email_verified"] is verified


# invalid requests ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        {"client_id": None},
        {"client_id": "x"},
        {"client_id": str(uuid4())},
        {"redirect_uri": None},
        {"redirect_uri": CALLBACK + "/"},
        {"redirect_uri": CALLBACK + "?x=1"},
        {"redirect_uri": CALLBACK.upper()},
        {"redirect_uri": "https://evil.example/callback"},
        {"redirect_uri": "https://portal.example.com.evil.example/callback"},
    ],
)
async def test_an_unregistered_redirect_uri_is_refused(
    portal: dict[str, Any], ada: Member, visitor: Visitor, more: dict[str, str | None]
) -> None:
    await visitor.sign_in(ada.email)
    await visitor.get(authorize_url(portal, **more))
    assert visitor.page.status_code == 400
    assert "Location" not in visitor.page.headers
    assert visitor.page.headers["Content-Type"].startswith("text/html")
    assert "evil" not in visitor.page.text


@pytest.mark.parametrize("duplicate", ["client_id", "redirect_uri", "state", "scope"])
async def test_a_duplicate_parameter_is_refused(portal: dict[str, Any], visitor: Visitor, duplicate: str) -> None:
    await visitor.get(authorize_url(portal) + f"&{duplicate}=x")
    assert visitor.page.status_code == 400


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": None}, "unsupported_response_type"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"scope": "email"}, "invalid_scope"),
        ({"scope": None}, "invalid_scope"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"prompt": "none login"}, "invalid_request"),
        ({"max_age": "-1"}, "invalid_request"),
        ({"max_age": "soon"}, "invalid_request"),
        ({"nonce": "n" * 1025}, "invalid_request"),
        ({"nonce": "a\0b"}, "invalid_request"),
        ({"request": "e30.e30."}, "request_not_supported"),
        ({"request_uri": "https://portal.example.com/r"}, "request_uri_not_supported"),
        ({"prompt": "none"}, "login_required"),
    ],
)
async def test_other_errors_are_returned_to_the_application(
    portal: dict[str, Any], visitor: Visitor, more: dict[str, str | None], error: str
) -> None:
    await visitor.get(authorize_url(portal, **more))
    assert visitor.page.status_code == 303
    assert visitor.page.headers["Location"].startswith(CALLBACK + "?")
    result = query_of(visitor.page)
    assert (result["error"], result["state"], result["iss"]) == (error, "a state & more", "https://gatehouse.test")
    assert "code" not in result


async def test_an_organizations_application_signs_in_its_own_people_only(
    public: RunningPlatform, tenant: Tenant, other_tenant: Tenant, ada: Member, visitor: Visitor
) -> None:
    answer = await tenant.admin.client.post(CLIENTS, json={"name": "the wiki", "redirect_uris": [CALLBACK]})
    assert answer.status_code == 201, answer.text
    wiki = answer.json()
    eve = await member(public, other_tenant, signed_in=False)
    await visitor.sign_in(eve.email)
    await visitor.get(authorize_url(wiki))
    refusal = query_of(visitor.page)
    assert (refusal["error"], "code" in refusal) == ("access_denied", False)
    await visitor.get("/login")
    await visitor.client.post("/logout")
    visitor.client.cookies.clear()
    await visitor.sign_in(ada.email)
    tokens = (await exchange_code(public, wiki, await authorize(visitor, wiki))).json()
    assert (await id_claims(public, tokens["id_token"]))["sub"] == str(ada.id)


@pytest.mark.parametrize(
    "uri",
    [
        "http://portal.example.com/callback", "javascript:alert(1)", "https://portal.example.com/#x", "/callback",
        "https://user@portal.example.com/", "https://*.example.com/", "https://portal.example.com\\@evil.example/",
        "https://portal.example.com/a b", "https://portal.example.com:x/", "com.example.app:/callback", "https://",
        "http://127.0.0.1.evil.example/",
    ],
)  # fmt: skip
async def test_redirect_uris_are_validated_when_they_are_registered(public: RunningPlatform, uri: str) -> None:
    operator = await public.operator()
    answer = await operator.client.post(CLIENTS, json={"name": "x", "tenant_id": None, "redirect_uris": [uri]})
    assert answer.status_code == 422
    assert "redirect_uris" in answer.text


@pytest.mark.parametrize("uri", ["http://127.0.0.1:8123/cb", "http://localhost/cb", "http://[::1]:9/cb"])
async def test_a_loopback_redirect_uri_may_use_http(public: RunningPlatform, uri: str) -> None:
    assert (await application(public, redirect_uris=[uri], public=True))["redirect_uris"] == [uri]


# forced sign-in -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{"prompt": "login"}, {"max_age": "0"}, {"prompt": "select_account"}])
async def test_a_forced_sign_in_continues_to_the_application(
    portal: dict[str, Any], ada: Member, visitor: Visitor, more: dict[str, str]
) -> None:
    await visitor.sign_in(ada.email)
    before = visitor.cookie()
    await asyncio.sleep(0.01)  # `max_age` counts from the time of the sign-in
    await visitor.get(authorize_url(portal, **more))
    await visitor.follow()
    assert visitor.page.status_code == 200
    assert "Sign in" in visitor.page.text
    await visitor.fill(email=ada.email, password=PASSWORD)
    await visitor.follow()
    assert "code" in query_of(visitor.page)
    assert visitor.cookie() != before


async def test_the_proof_of_the_sign_in_time_cannot_be_forged(
    portal: dict[str, Any], ada: Member, visitor: Visitor
) -> None:
    await visitor.sign_in(ada.email)
    for forged in ("x", "0", "A" * 80):
        await visitor.get(authorize_url(portal, prompt="login", asked_at=forged))
        assert visitor.page.headers["Location"].startswith("/login?")


async def test_a_session_passes_max_age_only_while_it_is_recent(
    public: RunningPlatform, portal: dict[str, Any], ada: Member, visitor: Visitor
) -> None:
    await visitor.sign_in(ada.email)
    await visitor.get(authorize_url(portal, max_age="100"))
    assert "code" in query_of(visitor.page)
    public.sql("UPDATE sessions SET created_at = now() - interval '101 s' WHERE user_id = %s", [ada.id])
    await visitor.get(authorize_url(portal, max_age="100", prompt="none"))
    assert query_of(visitor.page)["error"] == "login_required"


async def test_the_login_hint_is_on_the_page(portal: dict[str, Any], visitor: Visitor) -> None:
    await visitor.get(authorize_url(portal, login_hint="ada@example.test"))
    await visitor.follow()
    assert 'value="ada@example.test"' in visitor.page.text


async def test_an_ip_address_outside_the_allowlist_gets_no_code(
    public: RunningPlatform, portal: dict[str, Any], tenant: Tenant, ada: Member, visitor: Visitor
) -> None:
    await visitor.sign_in(ada.email)
    public.sql(
        'UPDATE tenants SET ip_allowlist = \'{"enabled": true, "cidrs": ["10.9.8.0/24"]}\' WHERE id = %s',
        [tenant.id],
    )
    public.touch("policy", tenant.id)
    await public.refresh()
    await visitor.get(authorize_url(portal))
    assert query_of(visitor.page)["error"] == "access_denied"


# codes --------------------------------------------------------------------------------------------------------------


async def assert_refused(public: RunningPlatform, client: dict[str, Any], code: str, /, **more: str | None) -> None:
    answer = await exchange_code(public, client, code, **more)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant"), answer.text
    assert answer.headers["Cache-Control"] == "no-store"


async def test_a_code_is_valid_once_and_a_second_use_revokes_its_tokens(
    public: RunningPlatform, portal: dict[str, Any], ada: Member, tenant: Tenant, visitor: Visitor
) -> None:
    await visitor.sign_in(ada.email)
    code = await authorize(visitor, portal)
    access = (await exchange_code(public, portal, code)).json()["access_token"]
    assert (await userinfo(public, access)).status_code == 200
    await assert_refused(public, portal, code)
    assert (await userinfo(public, access)).status_code == 401
    await assert_refused(public, portal, code)
    assert len(await public.audit(tenant, "oauth_code.reused")) == 2


async def test_one_of_several_concurrent_exchanges_succeeds(
    public: RunningPlatform, portal: dict[str, Any], ada: Member, visitor: Visitor
) -> None:
    await visitor.sign_in(ada.email)
    code = await authorize(visitor, portal)
    answers = await asyncio.gather(*(exchange_code(public, portal, code) for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [200, 400, 400, 400]


@pytest.mark.parametrize(
    "more",
    [
        {"code": "gac_" + "x" * 43},
        {"redirect_uri": "https://portal.example.com/other"},
        {"code_verifier": "x" * 64},
        {"code_verifier": challenge_of(VERIFIER)},
        {"code_verifier": "ü" * 43},
    ],
)
async def test_a_code_is_valid_only_with_its_redirect_uri_and_verifier(
    public: RunningPlatform, portal: dict[str, Any], ada: Member, visitor: Visitor, more: dict[str, str]
) -> None:
    await visitor.sign_in(ada.email)
    code = await authorize(visitor, portal)
    await assert_refused(public, portal, more.pop("code", code), **more)
    # The code has not been used.
    assert (await exchange_code(public, portal, code)).status_code == 200


async def test_another_client_cannot_exchange_a_code(
    public: RunningPlatform, portal: dict[str, Any], ada: Member, visitor: Visitor
) -> None:
    other = await application(public)
    await visitor.sign_in(ada.email)
    await assert_refused(public, other, await authorize(visitor, portal))


async def test_a_code_expires_after_a_minute(
    public: RunningPlatform, portal: dict[str, Any], ada: Member, visitor: Visitor
) -> None:
    await visitor.sign_in(ada.email)
    code = await authorize(visitor, portal)
    ((lifetime,),) = public.sql("SELECT expires_at - created_at FROM authorization_codes WHERE user_id = %s", [ada.id])
    assert lifetime.total_seconds() == 60
    public.sql("UPDATE authorization_codes SET expires_at = now() WHERE user_id = %s", [ada.id])
    await assert_refused(public, portal, code)


async def test_a_code_ends_with_its_session(
    public: RunningPlatform, portal: dict[str, Any], ada: Member, visitor: Visitor
) -> None:
    await visitor.sign_in(ada.email)
    code = await authorize(visitor, portal)
    await visitor.get("/logout")
    await visitor.fill()
    await assert_refused(public, portal, code)


@pytest.mark.parametrize("missing", ["code", "redirect_uri", "code_verifier", "client_id"])
async def test_an_exchange_names_a_missing_parameter(
    public: RunningPlatform, portal: dict[str, Any], missing: str
) -> None:
    answer = await exchange_code(public, portal, "gac_x", **{missing: None})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert missing in answer.json()["error_description"]


@pytest.mark.parametrize("secret", [None, "wrong"])
async def test_a_confidential_client_needs_its_secret(
    public: RunningPlatform, portal: dict[str, Any], ada: Member, visitor: Visitor, secret: str | None
) -> None:
    await visitor.sign_in(ada.email)
    code = await authorize(visitor, portal)
    answer = await exchange_code(public, portal, code, client_secret=secret)
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    assert (await exchange_code(public, portal, code)).status_code == 200


async def test_basic_credentials_are_accepted(
    public: RunningPlatform, portal: dict[str, Any], ada: Member, visitor: Visitor
) -> None:
    await visitor.sign_in(ada.email)
    form = {
        "grant_type": "authorization_code", "code": await authorize(visitor, portal), "redirect_uri": CALLBACK,
        "code_verifier": VERIFIER,
    }  # fmt: skip
    pair = f"{portal['client_id']}:{quote(portal['client_secret'])}"
    headers = {"Authorization": "Basic " + b64encode(pair.encode()).decode()}
    assert (await public.anonymous.post("/oauth/token", data=form, headers=headers)).status_code == 200


async def test_a_public_client_exchanges_with_its_verifier_and_gets_no_machine_token(
    public: RunningPlatform, ada: Member, visitor: Visitor
) -> None:
    app = await application(public, public=True)
    await visitor.sign_in(ada.email)
    code = await authorize(visitor, app)
    assert (await exchange_code(public, app, code, client_secret=None)).status_code == 200
    form = {"grant_type": "client_credentials", "client_id": app["client_id"]}
    answer = await public.anonymous.post("/oauth/token", data=form)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


async def test_a_disabled_client_is_refused(public: RunningPlatform, ada: Member, visitor: Visitor) -> None:
    client = await application(public)
    await visitor.sign_in(ada.email)
    code = await authorize(visitor, client)
    access = (await exchange_code(public, client, code)).json()["access_token"]
    second = await authorize(visitor, client)
    operator = await public.operator()
    await operator.client.patch(CLIENTS + client["client_id"], json={"enabled": False})
    assert (await exchange_code(public, client, second)).json()["error"] == "invalid_client"
    assert (await userinfo(public, access)).status_code == 401
    assert (await visitor.get(authorize_url(client))).status_code == 400


# kinds of tokens ----------------------------------------------------------------------------------------------------


async def test_the_access_token_is_valid_only_for_userinfo(
    public: RunningPlatform, portal: dict[str, Any], ada: Member, visitor: Visitor
) -> None:
    await visitor.sign_in(ada.email)
    tokens = (await exchange_code(public, portal, await authorize(visitor, portal))).json()
    code = await authorize(visitor, portal)
    for token in (tokens["access_token"], tokens["id_token"], code):
        client = public.client(token)
        assert (await client.get("/api/auth/sessions")).status_code == 401
        assert (await client.get("/v1/models")).status_code == 401
    for token in (tokens["id_token"], code):
        assert (await userinfo(public, token)).status_code == 401


async def test_userinfo_refuses_other_tokens(public: RunningPlatform, portal: dict[str, Any], tenant: Tenant) -> None:
    signed_in = await public.anonymous.post(
        "/api/auth/login", json={"email": (await member(public, tenant, signed_in=False)).email, "password": PASSWORD}
    )
    m2m = await public.new_m2m(tenant.id, "api:read", "admin:read")
    key = await public.new_key(tenant.user)
    other_tokens = [signed_in.json()["access_token"], signed_in.json()["refresh_token"], key, "", "x.y.z"]
    for token in other_tokens:
        answer = await userinfo(public, token)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == 'Bearer error="invalid_token"'
        await assert_refused(public, portal, token or "x")
    assert (await m2m.get("/oauth/userinfo")).status_code == 401
    assert (await public.anonymous.get("/oauth/userinfo")).status_code == 401


async def test_the_api_ignores_the_session_cookie(ada: Member, visitor: Visitor) -> None:
    await visitor.sign_in(ada.email)
    assert visitor.cookie()
    for path in ("/api/auth/sessions", "/api/auth/api-keys", "/oauth/userinfo", "/v1/models"):
        assert (await visitor.get(path)).status_code == 401


# applications that act for users ------------------------------------------------------------------------------------


async def access_token(public: RunningPlatform, client: dict[str, Any], visitor: Visitor, scope: str) -> str:
    tokens = (await exchange_code(public, client, await authorize(visitor, client, scope=scope))).json()
    return str(tokens["access_token"])


async def test_an_application_acts_for_its_user_within_its_scopes(
    public: RunningPlatform, ada: Member, tenant: Tenant, visitor: Visitor
) -> None:
    client = await application(public, user_scopes=["api:read", "api:write"])
    await visitor.sign_in(ada.email)
    code = await authorize(visitor, client, scope="openid api:read admin:write")
    tokens = (await exchange_code(public, client, code)).json()
    assert tokens["scope"] == "openid api:read"
    app_client = public.client(tokens["access_token"])
    assert (await app_client.get("/v1/models")).status_code == 200
    assert (await app_client.get("/oauth/userinfo")).json()["sub"] == str(ada.id)
    forbidden = await app_client.put("/api/users/me/preferences", json={"theme": "dark"})
    assert forbidden.status_code == 403
    assert "api:write" in forbidden.text
    # One operation needs a session, and the user's role does not permit the other.
    assert (await app_client.get("/api/auth/sessions")).status_code == 403
    assert (await app_client.get("/api/admin/users")).status_code == 403


async def test_an_administrators_application_is_recorded_and_needs_the_second_factor(
    public: RunningPlatform, tenant: Tenant, visitor: Visitor
) -> None:
    client = await application(public, user_scopes=["admin:write"])
    admin = await member(public, tenant, role="admin", signed_in=False)
    await visitor.sign_in(admin.email)
    app_client = public.client(await access_token(public, client, visitor, "openid admin:write"))
    body = {
        "name": "words",
        "filter_type": "keyword_block",
        "config": {"keywords": ["word"]},
        "scope": "org",
        "priority": 1,
    }
    created = await app_client.post("/api/admin/content-filters/", json=body)
    assert created.status_code == 201, created.text
    (event,) = await public.audit(tenant, "content_filter.created")
    assert (event["actor_id"], event["actor_type"]) == (str(admin.id), "application")
    await public.require_mfa(tenant.id)
    refused_change = await app_client.post(CLIENTS, json={"name": "another"})
    assert (refused_change.status_code, refused_change.json()["error"]) == (403, "mfa_required")


@pytest.mark.parametrize("change", [{"user_scopes": ["api:write"]}, {"enabled": False}, None])
async def test_an_application_loses_its_rights_at_once(
    public: RunningPlatform, ada: Member, visitor: Visitor, change: dict[str, Any] | None
) -> None:
    client = await application(public, user_scopes=["api:read", "api:write"])
    await visitor.sign_in(ada.email)
    app_client = public.client(await access_token(public, client, visitor, "openid api:read"))
    assert (await app_client.get("/v1/models")).status_code == 200
    operator = (await public.operator()).client
    path = CLIENTS + client["client_id"]
    answer = await operator.delete(path) if change is None else await operator.patch(path, json=change)
    assert answer.status_code < 300, answer.text
    assert (await app_client.get("/v1/models")).status_code == 401


async def test_an_applications_token_ends_with_the_session_and_with_a_second_use_of_its_code(
    public: RunningPlatform, ada: Member, visitor: Visitor
) -> None:
    client = await application(public, user_scopes=["api:read"])
    await visitor.sign_in(ada.email)
    code = await authorize(visitor, client, scope="openid api:read")
    stolen_client = public.client((await exchange_code(public, client, code)).json()["access_token"])
    app_client = public.client(await access_token(public, client, visitor, "openid api:read"))
    assert [(await caller.get("/v1/models")).status_code for caller in (stolen_client, app_client)] == [200, 200]
    await assert_refused(public, client, code)
    assert [(await caller.get("/v1/models")).status_code for caller in (stolen_client, app_client)] == [401, 200]
    await visitor.get("/logout")
    await visitor.fill()
    assert (await app_client.get("/v1/models")).status_code == 401


async def test_an_organizations_application_acts_for_its_own_people_only(
    public: RunningPlatform, tenant: Tenant, other_tenant: Tenant, ada: Member, visitor: Visitor
) -> None:
    body = {"name": "own", "user_scopes": ["api:read"], "redirect_uris": [CALLBACK]}
    created = (await tenant.admin.client.post(CLIENTS, json=body)).json()
    await visitor.sign_in(ada.email)
    app_client = public.client(await access_token(public, created, visitor, "openid api:read"))
    assert (await app_client.get("/v1/models")).status_code == 200
    # If the client belonged to another organization, its tokens would be refused.
    public.sql("UPDATE oauth_clients SET tenant_id = %s WHERE id = %s", [other_tenant.id, created["id"]])
    await public.host.feed._load_all()
    assert (await app_client.get("/v1/models")).status_code == 401


@pytest.mark.parametrize(
    "change", [{"redirect_uris": ["https://evil.example/callback"]}, {"public": True}, {"enabled": True}]
)
async def test_a_machine_cannot_take_over_an_application_with_scopes_that_it_lacks(
    public: RunningPlatform, tenant: Tenant, change: dict[str, Any]
) -> None:
    body = {"name": "own", "user_scopes": ["chat:write"], "redirect_uris": [CALLBACK]}
    created = (await tenant.admin.client.post(CLIENTS, json=body)).json()
    path = CLIENTS + created["client_id"]
    assert (await tenant.admin.client.patch(path, json={"enabled": "enabled" not in change})).status_code == 200
    for scopes, status in ((["admin:write"], 403), (["admin:write", "chat:write"], 200)):
        machine = await public.new_m2m(tenant.id, *scopes)
        answer = await machine.patch(path, json=change)
        assert answer.status_code == status, answer.text


@pytest.mark.parametrize(("is_platform_wide", "status"), [(True, 200), (False, 404)])
async def test_an_organizations_application_has_no_rights_of_operators(
    public: RunningPlatform, portal: dict[str, Any], visitor: Visitor, is_platform_wide: bool, status: int
) -> None:
    client = await application(public, user_scopes=["admin:read"])
    if not is_platform_wide:
        public.sql("UPDATE oauth_clients SET tenant_id = %s WHERE id = %s", [DEFAULT_TENANT, client["id"]])
    operator, email = await public.operator(), f"{uuid4().hex}@example.test"
    public.sql("UPDATE users SET email = %s, password_hash = %s WHERE id = %s", [email, HASH, operator.id])
    await public.host.feed._load_all()
    await visitor.sign_in(email)
    app_client = public.client(await access_token(public, client, visitor, "openid admin:read"))
    assert (await app_client.get(CLIENTS)).status_code == 200
    # Only operators can read platform-wide clients.
    assert (await app_client.get(CLIENTS + portal["client_id"])).status_code == status


# end of access tokens -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "end",
    [
        "UPDATE sessions SET revoked_at = now() WHERE user_id = %s",
        "UPDATE sessions SET expires_at = now() WHERE user_id = %s",
        "UPDATE users SET is_active = false WHERE id = %s",
        "UPDATE authorization_codes SET access_expires_at = now() WHERE user_id = %s",
        "UPDATE tenants SET deleted_at = now() WHERE id = (SELECT tenant_id FROM users WHERE id = %s)",
        "DELETE FROM users WHERE id = %s",
    ],
)
async def test_the_access_token_ends_with_its_session_user_or_client(
    public: RunningPlatform, portal: dict[str, Any], ada: Member, visitor: Visitor, end: str
) -> None:
    await visitor.sign_in(ada.email)
    access = (await exchange_code(public, portal, await authorize(visitor, portal))).json()["access_token"]
    assert (await userinfo(public, access)).status_code == 200
    public.sql(end, [ada.id])
    assert (await userinfo(public, access)).status_code == 401


async def test_only_digests_are_stored(
    public: RunningPlatform, portal: dict[str, Any], ada: Member, visitor: Visitor
) -> None:
    await visitor.sign_in(ada.email)
    code = await authorize(visitor, portal)
    access = (await exchange_code(public, portal, code)).json()["access_token"]
    rows = public.sql("SELECT * FROM authorization_codes WHERE user_id = %s", [ada.id])
    rows += public.sql(
        "SELECT * FROM browser_sessions WHERE tenant_id = (SELECT tenant_id FROM users WHERE id = %s)", [ada.id]
    )
    for secret in (code, access, visitor.cookie() or "-"):
        assert secret not in str(rows)


# discovery ----------------------------------------------------------------------------------------------------------


async def test_discovery_describes_what_is_supported(public: RunningPlatform) -> None:
    answer = await public.anonymous.get("/.well-known/openid-configuration")
    assert answer.status_code == 200
    body = answer.json()
    assert body["issuer"] == "https://gatehouse.test"
    assert body["code_challenge_methods_supported"] == ["S256"]
    for name in ("authorization_endpoint", "userinfo_endpoint", "jwks_uri"):
        path = body[name].removeprefix("https://gatehouse.test")
        assert (await public.anonymous.get(path)).status_code != 404
    assert (await public.anonymous.post(body["token_endpoint"].removeprefix(body["issuer"]))).status_code == 400


async def test_without_a_public_url_there_is_no_openid_provider(platform: RunningPlatform) -> None:
    answer = await platform.anonymous.get("/.well-known/openid-configuration")
    assert answer.status_code == 404
    assert "PUBLIC_URL" in answer.text
    page = await platform.anonymous.get("/oauth/authorize")
    assert page.status_code == 404
    assert "PUBLIC_URL" in page.text


async def test_an_operators_change_of_redirects_is_in_the_audit_chain(public: RunningPlatform) -> None:
    client = await application(public)
    operator = await public.operator()
    uri = "https://portal.example.com/new"
    answer = await operator.client.put(CLIENTS + client["client_id"], json={"redirect_uris": [uri, uri]})
    assert answer.json()["redirect_uris"] == [uri]
    events = await public.audit(DEFAULT_TENANT, "oauth_client.updated")
    assert events[-1]["details"]["redirect_uris"] == [uri]

"""Single logout in both directions, with a provider that the test controls."""

from collections.abc import Callable
from dataclasses import replace

import httpx2
import pytest
from starlette.requests import Request
from tests.platform.access.saml.conftest import BASE, SignOn, configured, fields_of, new_browser
from tests.support import saml
from tests.support.platform import RunningPlatform, Tenant
from tests.support.saml import NS, Signer

from gatehouse.foundation.identity import TenantId
from gatehouse.platform.access.browser import current_session
from gatehouse.platform.access.saml import logout


async def send_request(sign_on: SignOn, message: bytes, signer: Signer | None = None, **more: str) -> httpx2.Response:
    query = saml.redirect_query("SAMLRequest", message, signer or sign_on.signer, **more)
    return await sign_on.browser.get(f"/api/saml/slo?{query}")


def request(sign_on: SignOn, **changes: object) -> bytes:
    return saml.logout_request(sign_on.entity_id, BASE, **{"name_id": "ada", **changes})  # type: ignore[arg-type]


def open_sessions(sign_on: SignOn) -> int:
    query = "SELECT count(*) FROM sessions WHERE tenant_id = %s AND amr @> '[\"saml\"]' AND revoked_at IS NULL"
    count: int = sign_on.platform.sql(query, [sign_on.tenant.id])[0][0]
    return count


async def test_a_logout_request_ends_the_sessions_of_the_named_user(sign_on: SignOn) -> None:
    async with new_browser(sign_on.platform) as browser:
        await replace(sign_on, browser=browser).sign_in(name_id="somebody else", email=sign_on.tenant.auditor.email)
    await sign_on.sign_in()
    message = request(sign_on)
    answer = await send_request(sign_on, message, relay_state="their own")
    assert answer.status_code == 302, answer.text
    assert open_sessions(sign_on) == 1
    assert answer.headers["location"].startswith("https://idp.test/slo?SAMLResponse=")
    assert fields_of(answer.headers["location"])["RelayState"] == "their own"
    result = saml.message_in_url(answer.headers["location"], "SAMLResponse")
    assert result.get("InResponseTo") == saml.tree(message.decode()).get("ID")
    assert result.find("samlp:Status/samlp:StatusCode", NS).get("Value") == saml.SUCCESS
    (event,) = await sign_on.platform.audit(sign_on.tenant, "session.ended")
    assert (event["reason"], event["details"]["idp_id"]) == ("saml_logout", sign_on.idp_id)
    assert "gatehouse_session" not in sign_on.browser.cookies


async def test_tokens_of_a_session_that_the_provider_ended_are_refused_at_once(
    sign_on: SignOn, platform: RunningPlatform
) -> None:
    await sign_on.sign_in()
    (session_id,) = sign_on.sessions()
    claims = {"sub": str(sign_on.tenant.user.id), "tid": str(sign_on.tenant.id), "sid": str(session_id)}
    client = platform.client(platform.signed(claims))
    assert (await client.get("/api/auth/sessions")).status_code == 200
    await send_request(sign_on, request(sign_on))
    assert (await client.get("/api/auth/sessions")).status_code == 401


async def test_a_session_index_ends_only_that_session(sign_on: SignOn) -> None:
    async with new_browser(sign_on.platform) as browser:
        await replace(sign_on, browser=browser).sign_in(session_index="two")
    await sign_on.sign_in(session_index="one")
    assert open_sessions(sign_on) == 2
    assert (await send_request(sign_on, request(sign_on, session_index="one"))).status_code == 302
    assert open_sessions(sign_on) == 1


async def test_another_organization_with_the_same_provider_gets_no_logout_response(
    sign_on: SignOn, platform: RunningPlatform, other_tenant: Tenant, signer: Signer
) -> None:
    """The provider's entity id and certificate are public, so another organization can configure the provider with its
    own `slo_url`. With the response it could redirect the browser anywhere."""
    async with new_browser(platform) as browser:
        own = {"entity_id": sign_on.entity_id, "slo_url": "https://attacker.test/slo"}
        await configured(platform, other_tenant, browser, signer, **own)
    await sign_on.sign_in()
    first = await send_request(sign_on, request(sign_on))
    assert first.headers["location"].startswith("https://idp.test/slo?SAMLResponse=")
    assert open_sessions(sign_on) == 0
    # No session has this name, so it is unknown which organization the request belongs to.
    second = await send_request(sign_on, request(sign_on, name_id="nobody"))
    assert (second.status_code, second.headers["location"]) == (302, "/login?done=out")


async def test_a_provider_without_slo_url_gets_no_response(sign_on: SignOn) -> None:
    await sign_on.sign_in()
    await sign_on.tenant.admin.client.put(f"/api/admin/saml/idp/{sign_on.idp_id}", json={"slo_url": None})
    answer = await send_request(sign_on, request(sign_on))
    assert (answer.status_code, answer.headers["location"]) == (302, "/login?done=out")
    assert open_sessions(sign_on) == 0


async def test_the_sessions_of_an_organization_that_shares_the_provider_end_too(
    sign_on: SignOn, platform: RunningPlatform, other_tenant: Tenant, signer: Signer, stranger: Signer
) -> None:
    async with new_browser(platform) as browser, new_browser(platform) as third_browser:
        shares = await configured(platform, other_tenant, browser, signer, entity_id=sign_on.entity_id)
        third = await platform.new_tenant()
        # Another provider with the same name, but another key.
        named_alike = await configured(platform, third, third_browser, stranger, entity_id=sign_on.entity_id)
        for item in (sign_on, shares, named_alike):
            assert (await item.sign_in()).status_code == 303
        await send_request(sign_on, request(sign_on))
        assert [open_sessions(item) for item in (sign_on, shares, named_alike)] == [0, 0, 1]


def signed_with_another_key(sign_on: SignOn, stranger: Signer) -> str:
    return saml.redirect_query("SAMLRequest", request(sign_on), stranger)


def unsigned(sign_on: SignOn, _: Signer) -> str:
    return saml.redirect_query("SAMLRequest", request(sign_on), sign_on.signer).partition("&SigAlg")[0]


def other_message(sign_on: SignOn, _: Signer) -> str:
    """A valid signature of another message."""
    good = saml.redirect_query("SAMLRequest", request(sign_on, name_id="nobody"), sign_on.signer)
    return unsigned(sign_on, _) + good[good.index("&SigAlg") :]


def added_relay_state(sign_on: SignOn, _: Signer) -> str:
    return saml.redirect_query("SAMLRequest", request(sign_on), sign_on.signer) + "&RelayState=x"


def repeated_parameter(sign_on: SignOn, _: Signer) -> str:
    good = saml.redirect_query("SAMLRequest", request(sign_on, name_id="nobody"), sign_on.signer)
    return f"{unsigned(sign_on, _)}&{good}"


def sha1(sign_on: SignOn, _: Signer) -> str:
    good = saml.redirect_query("SAMLRequest", request(sign_on), sign_on.signer)
    return good.replace("2001%2F04%2Fxmldsig-more%23rsa-sha256", "2000%2F09%2Fxmldsig%23rsa-sha1")


def wrong_destination(sign_on: SignOn, _: Signer) -> str:
    return saml.redirect_query("SAMLRequest", request(sign_on, destination="https://another.test/slo"), sign_on.signer)


def issued_yesterday(sign_on: SignOn, _: Signer) -> str:
    return saml.redirect_query("SAMLRequest", request(sign_on, issued=-86_400), sign_on.signer)


def issued_in_the_future(sign_on: SignOn, _: Signer) -> str:
    return saml.redirect_query("SAMLRequest", request(sign_on, issued=310), sign_on.signer)


def expired(sign_on: SignOn, _: Signer) -> str:
    until = f' NotOnOrAfter="{saml.moment(-301)}" Destination='.encode()
    return saml.redirect_query("SAMLRequest", request(sign_on).replace(b" Destination=", until), sign_on.signer)


def unknown_issuer(sign_on: SignOn, _: Signer) -> str:
    message = saml.logout_request("https://nobody.test", BASE, name_id="ada")
    return saml.redirect_query("SAMLRequest", message, sign_on.signer)


def decompression_bomb(sign_on: SignOn, _: Signer) -> str:
    return saml.redirect_query("SAMLRequest", b"<a>" + b" " * 50_000_000 + b"</a>", sign_on.signer)


def with_a_document_type(sign_on: SignOn, _: Signer) -> str:
    message = b'<!DOCTYPE r [<!ENTITY i SYSTEM "file:///etc/passwd">]>' + request(sign_on, name_id="&i;")
    return saml.redirect_query("SAMLRequest", message, sign_on.signer)


REQUESTS = [
    (signed_with_another_key, "invalid_signature"), (unsigned, "invalid_signature"),
    (other_message, "invalid_signature"),
    (added_relay_state, "invalid_signature"), (repeated_parameter, "invalid_signature"), (sha1, "invalid_signature"),
    (wrong_destination, "invalid_signature"), (issued_yesterday, "assertion_expired"),
    (issued_in_the_future, "assertion_expired"), (expired, "assertion_expired"), (unknown_issuer, "unknown_issuer"),
    (decompression_bomb, "invalid_signature"), (with_a_document_type, "invalid_signature"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "reason"), REQUESTS)
async def test_an_invalid_logout_request_ends_no_session(
    sign_on: SignOn, stranger: Signer, make: Callable[[SignOn, Signer], str], reason: str
) -> None:
    await sign_on.sign_in()
    refused = await sign_on.browser.get(f"/api/saml/slo?{make(sign_on, stranger)}")
    assert (refused.status_code, refused.json()["reason"]) == (400, reason), refused.text
    assert open_sessions(sign_on) == 1


async def test_a_logout_request_is_accepted_once(sign_on: SignOn) -> None:
    query = saml.redirect_query("SAMLRequest", request(sign_on), sign_on.signer)
    assert (await sign_on.browser.get(f"/api/saml/slo?{query}")).status_code == 302
    await sign_on.sign_in()
    again = await sign_on.browser.get(f"/api/saml/slo?{query}")
    assert (again.status_code, again.json()["reason"]) == (400, "assertion_expired")
    assert open_sessions(sign_on) == 1


@pytest.mark.parametrize("query", ["", "SAMLRequest=a&SAMLResponse=b"])
async def test_exactly_one_message_is_required(browser: httpx2.AsyncClient, query: str) -> None:
    refused = await browser.get(f"/api/saml/slo?{query}")
    assert (refused.status_code, refused.json()["detail"][0]["loc"][-1]) == (400, "SAMLRequest")


# sign-out that begins at the platform -------------------------------------------------------------------------------


async def provider_logout_url(sign_on: SignOn) -> str | None:
    """Return the URL to which the sign-out page sends the browser."""
    headers = [
        (b"host", b"127.0.0.1"),
        (b"cookie", f"gatehouse_session={sign_on.browser.cookies['gatehouse_session']}".encode()),
    ]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/logout",
        "headers": headers,
        "scheme": "http",
        "query_string": b"",
    }
    page = Request({**scope, "server": ("127.0.0.1", 80)})
    result = await current_session(page, sign_on.platform.host)
    assert result is not None
    return await logout.logout_request_url(page, sign_on.platform.host, TenantId(sign_on.tenant.id), result[1].id)


async def test_a_sign_out_at_the_platform_signs_out_at_the_provider_too(sign_on: SignOn) -> None:
    text = {"name_id": "ada@acme", "session_index": "s-77"}
    await sign_on.sign_in(**text)
    url = await provider_logout_url(sign_on)
    assert url is not None
    assert url.startswith("https://idp.test/slo?SAMLRequest=")
    result = saml.message_in_url(url, "SAMLRequest")
    assert result.findtext("saml:NameID", namespaces=NS) == "ada@acme"
    assert result.find("saml:NameID", NS).get("Format") == "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
    assert result.findtext("samlp:SessionIndex", namespaces=NS) == "s-77"
    answer = saml.logout_response(sign_on.entity_id, BASE, in_response_to=result.get("ID"))
    query = saml.redirect_query("SAMLResponse", answer, sign_on.signer)
    back = await sign_on.browser.get(f"/api/saml/slo?{query}")
    assert (back.status_code, back.headers["location"]) == (302, "/login?done=out-everywhere")
    assert "here and at your organization" in (await sign_on.browser.get(back.headers["location"])).text
    again = await sign_on.browser.get(f"/api/saml/slo?{query}")
    assert (again.status_code, again.json()["reason"]) == (400, "assertion_expired")


async def test_a_failed_sign_out_at_the_provider_is_reported(sign_on: SignOn) -> None:
    await sign_on.sign_in()
    request_id = saml.message_in_url(await provider_logout_url(sign_on) or "", "SAMLRequest").get("ID")
    answer = saml.logout_response(sign_on.entity_id, BASE, in_response_to=request_id)
    answer = answer.replace(saml.SUCCESS.encode(), b"urn:oasis:names:tc:SAML:2.0:status:Responder")
    back = await sign_on.browser.get(f"/api/saml/slo?{saml.redirect_query('SAMLResponse', answer, sign_on.signer)}")
    assert (back.status_code, back.headers["location"]) == (302, "/login?done=out-here")
    assert "may still know you" in (await sign_on.browser.get(back.headers["location"])).text


async def sign_out_at_the_api(sign_on: SignOn) -> httpx2.Response:
    """Sign out with a token of the browser's session, as the console does."""
    exchanged = await sign_on.browser.post("/api/auth/session/token", headers={"Origin": BASE})
    headers = {"Authorization": f"Bearer {exchanged.json()['access_token']}"}
    answer = await sign_on.browser.post("/api/auth/logout", params={"single_logout": True}, headers=headers)
    assert (await sign_on.browser.get("/api/auth/sessions", headers=headers)).status_code == 401
    return answer


async def test_a_sign_out_at_the_api_returns_the_logout_url_of_the_provider(sign_on: SignOn) -> None:
    await sign_on.sign_in()
    answer = await sign_out_at_the_api(sign_on)
    assert (answer.status_code, answer.json()["by_identity_provider"]) == (200, True), answer.text
    result = saml.message_in_url(answer.json()["provider_logout_url"], "SAMLRequest")
    assert result.findtext("saml:NameID", namespaces=NS) == "ada"
    assert open_sessions(sign_on) == 0
    (event,) = await sign_on.platform.audit(sign_on.tenant, "session.ended")
    assert (event["actor_id"], event["reason"]) == (str(sign_on.tenant.user.id), "logout")


async def test_a_sign_out_at_the_api_reports_that_the_provider_session_may_remain(sign_on: SignOn) -> None:
    await sign_on.sign_in()
    await sign_on.tenant.admin.client.put(f"/api/admin/saml/idp/{sign_on.idp_id}", json={"slo_url": None})
    answer = await sign_out_at_the_api(sign_on)
    assert answer.json() == {"by_identity_provider": True, "provider_logout_url": None}
    by_password = await sign_on.tenant.user.client.post("/api/auth/logout", params={"single_logout": True})
    assert by_password.json() == {"by_identity_provider": False, "provider_logout_url": None}


async def test_a_logout_response_signed_with_another_key_is_refused(sign_on: SignOn, stranger: Signer) -> None:
    await sign_on.sign_in()
    request_id = saml.message_in_url(await provider_logout_url(sign_on) or "", "SAMLRequest").get("ID")
    answer = saml.logout_response(sign_on.entity_id, BASE, in_response_to=request_id)
    refused = await sign_on.browser.get(f"/api/saml/slo?{saml.redirect_query('SAMLResponse', answer, stranger)}")
    assert (refused.status_code, refused.json()["reason"]) == (400, "invalid_signature")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"<saml:Issuer>", b"<saml:Issuer>https://another.test/", "unknown_issuer"),
        (b"/api/saml/slo", b"/elsewhere", "invalid_signature"),
    ],
)
async def test_a_logout_response_with_another_issuer_or_recipient_is_refused(
    sign_on: SignOn, old: bytes, new: bytes, reason: str
) -> None:
    """Both messages have valid signatures."""
    await sign_on.sign_in()
    request_id = saml.message_in_url(await provider_logout_url(sign_on) or "", "SAMLRequest").get("ID")
    answer = saml.logout_response(sign_on.entity_id, BASE, in_response_to=request_id).replace(old, new)
    query = saml.redirect_query("SAMLResponse", answer, sign_on.signer)
    refused = await sign_on.browser.get(f"/api/saml/slo?{query}")
    assert (refused.status_code, refused.json()["reason"]) == (400, reason)


async def test_a_logout_response_to_a_login_request_is_refused(sign_on: SignOn) -> None:
    answer = saml.logout_response(sign_on.entity_id, BASE, in_response_to=await sign_on.begin())
    query = saml.redirect_query("SAMLResponse", answer, sign_on.signer)
    refused = await sign_on.browser.get(f"/api/saml/slo?{query}")
    assert (refused.status_code, refused.json()["reason"]) == (400, "assertion_expired")


async def test_no_logout_request_is_sent_without_slo_url(sign_on: SignOn) -> None:
    await sign_on.sign_in()
    await sign_on.tenant.admin.client.put(f"/api/admin/saml/idp/{sign_on.idp_id}", json={"slo_url": None})
    assert await provider_logout_url(sign_on) is None


async def test_no_logout_request_is_sent_for_a_password_session(sign_on: SignOn) -> None:
    page = Request({"type": "http", "method": "POST", "path": "/logout", "headers": [(b"host", b"127.0.0.1")]})
    host, person = sign_on.platform.host, sign_on.tenant.user
    assert await logout.logout_request_url(page, host, TenantId(sign_on.tenant.id), person.session_id) is None

"""Refused sign-ins: browsers get a page and programs get JSON, with the same status, and nobody is signed in."""

import json
from typing import Any
from uuid import UUID

import httpx2
import pytest
from tests.platform.access.saml.conftest import SignOn
from tests.support import saml
from tests.support.platform import RunningPlatform, Tenant
from tests.support.saml import Signer, response_text, signed, tree

#: The `Accept` header of Chromium and Firefox for navigation.
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"


@pytest.mark.parametrize("accept", [BROWSER, "text/html", "text/*, application/json;q=0.1"])
async def test_a_browser_gets_a_page(sign_on: SignOn, accept: str) -> None:
    sign_on.browser.headers["Accept"] = accept
    refused = await sign_on.sign_in(conditions_from=-3600, conditions_until=-301)
    assert (refused.status_code, refused.headers["content-type"]) == (400, "text/html; charset=utf-8")
    assert "Sign in again." in refused.text
    assert "<code>assertion_expired</code>" in refused.text
    assert 'href="/login"' in refused.text
    assert refused.headers["vary"] == "Accept"
    assert "default-src 'none'" in refused.headers["content-security-policy"]
    assert sign_on.sessions() == []


@pytest.mark.parametrize("accept", ["application/json", "*/*", "", "text/html;q=0, */*", "application/json, text/html"])
async def test_a_program_gets_json(sign_on: SignOn, accept: str) -> None:
    sign_on.browser.headers["Accept"] = accept
    refused = await sign_on.sign_in(email=None)
    assert (refused.status_code, refused.headers["content-type"]) == (400, "application/json")
    assert refused.json()["reason"] == "missing_email"
    assert refused.headers["vary"] == "Accept"


async def test_input_is_never_markup_on_the_page(sign_on: SignOn, stranger: Signer) -> None:
    script = "<script>alert(1)</script>"
    sign_on.browser.headers["Accept"] = BROWSER
    fields = await sign_on.assertion_fields(name_id="x", issuer=script, response_issuer=script)
    for answer in (
        await sign_on.post(signed(fields, stranger)),
        await sign_on.browser.get("/api/saml/login", params={"idp_id": script}),
        await sign_on.browser.get("/api/saml/slo", params={"SAMLRequest": script}),
    ):
        assert (answer.status_code, answer.headers["content-type"]) == (400, "text/html; charset=utf-8")
        assert "script" not in answer.text


REFUSED_REQUESTS: dict[str, tuple[str, int, str]] = {
    "no such provider": (f"/api/saml/login?idp_id={UUID(int=0)}", 404, "Identity provider not found"),
    "no provider in the query": ("/api/saml/login", 400, "This link or form is not complete."),
    "no message": ("/api/saml/slo", 400, "This link or form is not complete."),
    "a malformed message": ("/api/saml/slo?SAMLResponse=x", 400, "<code>invalid_signature</code>"),
}  # fmt: skip


@pytest.mark.parametrize(("path", "status", "words"), REFUSED_REQUESTS.values(), ids=REFUSED_REQUESTS.keys())
async def test_every_refusal_has_a_page(sign_on: SignOn, path: str, status: int, words: str) -> None:
    answer = await sign_on.browser.get(path.format(idp=sign_on.idp_id), headers={"Accept": BROWSER})
    assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert words in answer.text


async def test_a_person_without_an_account_sees_instructions(sign_on: SignOn) -> None:
    sign_on.browser.headers["Accept"] = BROWSER
    sign_on.platform.sql("UPDATE users SET is_active = false WHERE id = %s", [sign_on.tenant.user.id])
    refused = await sign_on.sign_in()
    assert (refused.status_code, "Ask your administrator." in refused.text) == (403, True)
    assert "<code>not_admitted</code>" in refused.text


async def test_a_failure_that_the_provider_reports_is_named(sign_on: SignOn) -> None:
    """The response for a person who is not assigned to the application: a status without an assertion."""
    fields = await sign_on.assertion_fields(status="urn:oasis:names:tc:SAML:2.0:status:Responder")
    root = tree(response_text(fields))
    root.remove(saml.assertion_of(root))
    refused = await sign_on.post(root)
    assert (refused.status_code, refused.json()["reason"]) == (400, "invalid_signature")
    assert refused.json()["detail"] == "The identity provider did not sign a user in."


async def test_administration_returns_json_to_browsers(tenant: Tenant) -> None:
    """Browsers are not redirected through this path."""
    answer = await tenant.user.client.get("/api/admin/saml/idp", headers={"Accept": BROWSER})
    assert (answer.status_code, answer.headers["content-type"]) == (403, "application/json")


# IP allowlist -------------------------------------------------------------------------------------------------------


async def allow(platform: RunningPlatform, tenant: Tenant, **allowlist: Any) -> None:
    platform.sql(
        "UPDATE tenants SET ip_allowlist = %s WHERE id = %s", [json.dumps({"enabled": True, **allowlist}), tenant.id]
    )
    for topic in ("tenant", "policy"):
        platform.touch(topic, tenant.id)
    await platform.refresh()


async def test_an_address_outside_the_allowlist_is_not_signed_in(sign_on: SignOn, platform: RunningPlatform) -> None:
    await allow(platform, sign_on.tenant, cidrs=["198.51.100.0/24"])
    root = signed(await sign_on.assertion_fields(), sign_on.signer)
    refused = await sign_on.post(root)
    assert (refused.status_code, "gatehouse_session" in refused.cookies) == (403, False)
    assert refused.json() == {
        "detail": "Your address is not in the organization's allowlist.",
        "reason": "ip_not_allowed",
    }
    assert sign_on.sessions() == []
    (event,) = await platform.audit(sign_on.tenant, "saml.refused")
    assert (event["reason"], event["resource_id"]) == ("ip_not_allowed", sign_on.idp_id)
    # Nothing was consumed: from an allowed address, the same response is accepted.
    await allow(platform, sign_on.tenant, cidrs=["198.51.100.0/24", "127.0.0.0/8"])
    assert (await sign_on.post(root)).status_code == 303


async def test_users_who_can_bypass_the_allowlist_with_a_second_factor_can_sign_in(
    sign_on: SignOn, platform: RunningPlatform
) -> None:
    await allow(platform, sign_on.tenant, cidrs=["198.51.100.0/24"], bypass_for_mfa=True)
    assert (await sign_on.sign_in()).status_code == 303
    (session_id,) = sign_on.sessions()
    claims = {"sub": str(sign_on.tenant.user.id), "tid": str(sign_on.tenant.id), "sid": str(session_id)}
    client: httpx2.AsyncClient = platform.client(platform.signed(claims))
    assert (await client.get("/api/auth/sessions")).status_code == 403


async def test_another_organizations_allowlist_does_not_apply(
    sign_on: SignOn, platform: RunningPlatform, other_tenant: Tenant
) -> None:
    await allow(platform, other_tenant, cidrs=["198.51.100.0/24"])
    assert (await sign_on.sign_in()).status_code == 303

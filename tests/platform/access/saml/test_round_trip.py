"""SAML with an identity provider in a separate process, over real sockets: metadata, sign-in, sign-out, new keys."""

import html
import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from uuid import uuid4

import httpx2
import pytest
from lxml import etree
from onelogin.saml2.xml_utils import OneLogin_Saml2_XML
from tests.platform.access.saml.conftest import IDP, prove
from tests.support.identity_provider import IdentityProvider, identity_provider
from tests.support.platform import RunningPlatform, Tenant
from tests.support.saml import NS

from gatehouse.platform.access.saml.protocol import keys
from gatehouse.platform.changes.change import DEFAULT_TENANT


@pytest.fixture(scope="module")
async def base(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


@pytest.fixture(scope="module")
async def provider(base: str) -> AsyncIterator[IdentityProvider]:
    async with identity_provider() as running:
        await running.trust(base)
        yield running


@pytest.fixture
async def browser() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=60) as client:
        yield client


@pytest.fixture(autouse=True)
def linked(platform: RunningPlatform, tenant: Tenant) -> None:
    """Mark the organization's users as linked to their identity provider."""
    platform.sql("UPDATE users SET linked_at = now() WHERE tenant_id = %s", [tenant.id])


class _Form(HTMLParser):
    """The page's only form: its action, and the fields that a browser would send."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.action, self.fields = "", dict[str, str]()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.action = values["action"]
        elif tag == "input":
            self.fields[values["name"]] = values["value"]


async def walk(browser: httpx2.AsyncClient, base: str, idp_id: str, relay_state: str = "/there") -> httpx2.Response:
    """Complete a sign-in and return the platform's last response."""
    begun = await browser.get(f"{base}/api/saml/login", params={"idp_id": idp_id, "relay_state": relay_state})
    assert begun.status_code == 302
    page = await browser.get(begun.headers["location"])
    assert page.status_code == 200
    form = _Form(page.text)
    return await browser.post(form.action, data=form.fields)


async def configured(tenant: Tenant, provider: IdentityProvider) -> str:
    created = await tenant.admin.client.post(IDP, json=provider.config)
    assert created.status_code == 201, created.text
    idp_id: str = created.json()["id"]
    return idp_id


async def test_a_person_signs_in_and_out(
    platform: RunningPlatform, tenant: Tenant, provider: IdentityProvider, base: str, browser: httpx2.AsyncClient
) -> None:
    idp_id = await configured(tenant, provider)
    await provider.next(email=tenant.user.email, name_id="ada")
    entered = await walk(browser, base, idp_id)
    assert (entered.status_code, entered.headers["location"]) == (303, "/there"), entered.text
    (session,) = platform.sql("SELECT id FROM sessions WHERE tenant_id = %s AND amr @> '[\"saml\"]'", [tenant.id])
    leaving = await browser.get(f"{provider.url}/leave", params={"name_id": "ada"})
    left = await browser.get(leaving.headers["location"])
    assert left.status_code == 302, left.text
    assert (await browser.get(left.headers["location"])).text == "signed out"
    ((reason,),) = platform.sql("SELECT revoked_reason FROM sessions WHERE id = %s", session)
    assert reason == "saml_logout"


async def test_a_person_signs_out_of_the_platform_and_then_of_the_provider(
    platform: RunningPlatform, tenant: Tenant, provider: IdentityProvider, base: str, browser: httpx2.AsyncClient
) -> None:
    """Sign out like a browser: submit the page's form, follow its link, and return."""
    idp_id = await configured(tenant, provider)
    name = uuid4().hex
    await provider.next(email=tenant.user.email, name_id=name)
    assert (await walk(browser, base, idp_id, "/login")).status_code == 303
    assert tenant.user.email in (await browser.get(f"{base}/login")).text
    request = _Form((await browser.get(f"{base}/logout")).text)
    out = await browser.post(f"{base}{request.action}", data=request.fields, headers={"Origin": base})
    (link,) = [html.unescape(item) for item in re.findall(r'href="([^"]*SAMLRequest=[^"]*)"', out.text)]
    assert link.startswith(f"{provider.url}/slo?")
    back = await browser.get(link)
    assert name in await provider.left()
    end = await browser.get(back.headers["location"])
    assert (end.status_code, end.headers["location"]) == (302, "/login?done=out-everywhere"), end.text
    assert "You are signed out here and at" in (await browser.get(f"{base}{end.headers['location']}")).text
    query = "SELECT revoked_reason FROM sessions WHERE tenant_id = %s AND amr @> '[\"saml\"]'"
    assert platform.sql(query, [tenant.id]) == [("logout",)]


async def test_a_new_person_joins_with_their_groups(
    platform: RunningPlatform, tenant: Tenant, provider: IdentityProvider, base: str, browser: httpx2.AsyncClient
) -> None:
    idp_id, domain = await configured(tenant, provider), f"{uuid4().hex[:10]}.test"
    prove(platform, tenant, domain, jit=True)
    group = await tenant.admin.client.post("/api/admin/groups", json={"name": "red", "external_group_id": "d-1"})
    await provider.next(email=f"new@{domain}", name_id="new", attributes={"groups": ["d-1"]})
    assert (await walk(browser, base, idp_id)).status_code == 303
    members = (await tenant.admin.client.get(f"/api/admin/groups/{group.json()['id']}/members")).json()
    assert [member["user_email"] for member in members] == [f"new@{domain}"]


async def test_a_provider_changes_its_key(
    tenant: Tenant, provider: IdentityProvider, base: str, browser: httpx2.AsyncClient
) -> None:
    idp_id = await configured(tenant, provider)
    await provider.next(email=tenant.user.email)
    old = provider.certificate
    new = await provider.rotate()
    refused = await walk(browser, base, idp_id)
    assert (refused.status_code, refused.json()["reason"]) == (400, "invalid_signature")
    await tenant.admin.client.put(f"{IDP}/{idp_id}", json={"x509_cert": old + new})
    assert (await walk(browser, base, idp_id)).status_code == 303


async def test_this_platform_changes_its_key(
    platform: RunningPlatform, tenant: Tenant, provider: IdentityProvider, base: str, browser: httpx2.AsyncClient
) -> None:
    """In two steps, so that a provider that reads the metadata in between refuses no request."""
    idp_id, host = await configured(tenant, provider), platform.host
    await provider.next(email=tenant.user.email)
    old = await keys.certificates(host.database, host.sealer)
    prepared = await keys.prepare(host.database, host.sealer)
    both = await keys.certificates(host.database, host.sealer)
    assert both[0] == old[0]
    assert len(both) == len(old) + 1
    assert (await walk(browser, base, idp_id)).status_code == 303
    await provider.trust(base)
    assert (await keys.activate(host.database))[0] == prepared
    assert (await keys.signing_key(host.database, host.sealer)).id == prepared
    assert (await walk(browser, base, idp_id)).status_code == 303
    with pytest.raises(keys.NoNextKey):
        await keys.activate(host.database)
    assert len(await keys.certificates(host.database, host.sealer)) == 2
    event = (await platform.audit(DEFAULT_TENANT, "saml_key.rotated"))[-1]
    assert event["resource_id"] == prepared


async def test_the_metadata_matches_the_contract_and_the_schema(base: str, browser: httpx2.AsyncClient) -> None:
    answer = await browser.get(f"{base}/api/saml/metadata")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/xml")
    root = etree.fromstring(answer.content)
    assert not isinstance(OneLogin_Saml2_XML.validate_xml(root, "saml-schema-metadata-2.0.xsd"), str)
    assert root.get("entityID") == f"{base}/api/saml/metadata"
    described = root.find("md:SPSSODescriptor", NS)
    assert (described.get("AuthnRequestsSigned"), described.get("WantAssertionsSigned")) == ("true", "true")
    acs = described.find("md:AssertionConsumerService", NS)
    assert dict(acs.attrib) == {
        "Binding": "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST",
        "Location": f"{base}/api/saml/acs",
        "index": "1",
        "isDefault": "true",
    }
    slo = described.find("md:SingleLogoutService", NS)
    assert slo.get("Location") == f"{base}/api/saml/slo"
    assert slo.get("Binding") == "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"
    assert {key.get("use") for key in described.findall("md:KeyDescriptor", NS)} == {"signing"}


async def test_the_private_key_is_sealed(platform: RunningPlatform, base: str) -> None:
    await keys.signing_key(platform.host.database, platform.host.sealer)
    for (sealed,) in platform.sql("SELECT sealed_private FROM saml_keys"):
        assert sealed.startswith("v1.")
        assert "PRIVATE" not in sealed

"""The platform as a service provider with PUBLIC_URL: its metadata, limits, and the command that changes its key."""

import asyncio
import os
import subprocess
import threading
import time
from base64 import b64decode
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import unquote

import httpx2
import pytest
import xmlsec
from onelogin.saml2.xml_utils import OneLogin_Saml2_XML
from pydantic import SecretStr
from starlette.requests import Request
from tests.platform.access.saml.conftest import BASE, SignOn
from tests.support import saml
from tests.support.commands import run_command
from tests.support.platform import RunningPlatform

from gatehouse.foundation.identity import TenantId
from gatehouse.platform.access.saml import logout
from gatehouse.platform.access.saml.errors import SamlBusy
from gatehouse.platform.access.saml.protocol import keys
from gatehouse.platform.access.saml.protocol.messages import XML_THREADS

PUBLIC = "https://gateway.example.com"


@pytest.fixture
async def public(platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx2.AsyncClient]:
    """A browser for a platform whose settings contain its own address and the portal's."""
    public_urls = {"public_url": f"{PUBLIC}/", "portal_public_url": "https://portal.example.com"}
    monkeypatch.setattr(platform.host, "settings", platform.host.settings.model_copy(update=public_urls))
    transport = httpx2.ASGITransport(app=platform.app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url=PUBLIC) as client:
        yield client


async def test_administrators_see_the_addresses_that_providers_need(
    public: httpx2.AsyncClient, platform: RunningPlatform, sign_on: SignOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, client = "/api/admin/saml/service-provider", sign_on.tenant.auditor.client
    assert (await client.get(path)).json() == {
        "entity_id": f"{PUBLIC}/api/saml/metadata",
        "acs_url": f"{PUBLIC}/api/saml/acs",
        "slo_url": f"{PUBLIC}/api/saml/slo",
    }
    described = saml.tree((await public.get("/api/saml/metadata")).text.partition("?>")[2])
    assert described.get("entityID") == f"{PUBLIC}/api/saml/metadata"
    settings_without_url = platform.host.settings.model_copy(update={"public_url": None})
    monkeypatch.setattr(platform.host, "settings", settings_without_url)
    assert set((await client.get(path, headers={"Host": "somewhere.test"})).json().values()) == {None}


async def walk(sign_on: SignOn, browser: httpx2.AsyncClient, **query: str) -> tuple[httpx2.Response, httpx2.Response]:
    begun = await browser.get("/api/saml/login", params={"idp_id": sign_on.idp_id, **query})
    request_id = saml.message_in_url(begun.headers["location"], "SAMLRequest").get("ID")
    fields = await sign_on.assertion_fields(gatehouse_url=PUBLIC, in_response_to=request_id)
    return begun, await sign_on.post(saml.signed(fields, sign_on.signer), browser=browser)


async def test_messages_match_the_schema_and_libxmlsec_accepts_their_signature(sign_on: SignOn) -> None:
    """The messages are verified with the certificate of the metadata, and not with the platform's code."""
    browser = sign_on.browser
    described = saml.tree((await browser.get("/api/saml/metadata")).text.partition("?>")[2])
    certificate = described.find(".//ds:X509Certificate", saml.NS).text
    await sign_on.sign_in()
    ((session_id,),) = [sign_on.sessions()]
    request = saml.redirect_query(
        "SAMLRequest", saml.logout_request(sign_on.entity_id, BASE, name_id="ada"), sign_on.signer, "of theirs"
    )
    scope = {"type": "http", "method": "POST", "path": "/logout", "headers": [(b"host", b"127.0.0.1")]}
    scope |= {"scheme": "http", "query_string": b"", "server": ("127.0.0.1", 80)}
    page = Request(scope)
    sent = {
        "AuthnRequest": (await browser.get("/api/saml/login", params={"idp_id": sign_on.idp_id})).headers["location"],
        "LogoutRequest": await logout.logout_request_url(
            page, sign_on.platform.host, TenantId(sign_on.tenant.id), session_id
        ),
        "LogoutResponse": (await browser.get(f"/api/saml/slo?{request}")).headers["location"],
    }
    for kind, url in sent.items():
        assert url is not None
        message = saml.message_in_url(url, "SAMLResponse" if kind == "LogoutResponse" else "SAMLRequest")
        assert message.tag == f"{{{saml.NS['samlp']}}}{kind}"
        assert not isinstance(OneLogin_Saml2_XML.validate_xml(message, "saml-schema-protocol-2.0.xsd"), str), kind
        octets, _, signature = url.partition("?")[2].removeprefix("app=1&kind=2&").partition("&Signature=")
        assert is_valid_signature(certificate, octets, signature), kind
        assert not is_valid_signature(certificate, octets.replace("SAML", "SAMK", 1), signature), kind


def is_valid_signature(certificate: str, octets: str, signature: str) -> bool:
    """Return whether libxmlsec1 accepts the signature."""
    context = xmlsec.SignatureContext()
    context.key = xmlsec.Key.from_memory(b64decode(certificate), xmlsec.KeyFormat.CERT_DER)
    try:
        context.verify_binary(octets.encode(), xmlsec.Transform.RSA_SHA256, b64decode(unquote(signature)))
    except xmlsec.Error:
        return False
    return True


async def test_the_host_header_does_not_change_the_public_address(public: httpx2.AsyncClient) -> None:
    described = await public.get("/api/saml/metadata", headers={"Host": "attacker.test"})
    assert f'entityID="{PUBLIC}/api/saml/metadata"' in described.text
    assert "attacker" not in described.text


async def test_a_sign_in_without_relay_state_redirects_to_the_portal(
    sign_on: SignOn, public: httpx2.AsyncClient
) -> None:
    _, entered = await walk(sign_on, public)
    assert (entered.status_code, entered.headers["location"]) == (303, "https://portal.example.com")


async def test_a_sign_in_can_redirect_to_a_page_of_the_portal(sign_on: SignOn, public: httpx2.AsyncClient) -> None:
    target = "https://portal.example.com/orgs?x=1"
    _, entered = await walk(sign_on, public, relay_state=target)
    assert (entered.status_code, entered.headers["location"]) == (303, target)
    for elsewhere in ("http://portal.example.com/", "https://portal.example.com.attacker.test/"):
        _, entered = await walk(sign_on, public, relay_state=elsewhere)
        assert (entered.status_code, entered.headers["location"]) == (303, "https://portal.example.com")


async def test_over_tls_the_cookies_are_secure_and_bound_to_this_host(
    sign_on: SignOn, public: httpx2.AsyncClient
) -> None:
    begun, entered = await walk(sign_on, public)
    (sign_in_cookie,) = begun.headers.get_list("set-cookie")
    assert sign_in_cookie.startswith("__Host-gatehouse_saml=")
    for word in ("HttpOnly", "Secure", "SameSite=none", "Path=/"):
        assert word in sign_in_cookie
    assert "Domain" not in sign_in_cookie
    session_cookie = entered.headers["set-cookie"]
    assert "Secure" in session_cookie
    assert "HttpOnly" in session_cookie


async def test_an_assertion_for_another_address_of_the_platform_is_refused(
    sign_on: SignOn, public: httpx2.AsyncClient
) -> None:
    begun = await public.get("/api/saml/login", params={"idp_id": sign_on.idp_id})
    request_id = saml.message_in_url(begun.headers["location"], "SAMLRequest").get("ID")
    fields = await sign_on.assertion_fields(in_response_to=request_id)
    refused = await sign_on.post(saml.signed(fields, sign_on.signer), browser=public)
    assert (refused.status_code, refused.json()["reason"]) == (400, "invalid_signature")


async def test_work_on_messages_is_bounded_and_does_not_block_the_event_loop() -> None:
    """Too many waiting requests are refused at once, and nothing runs on the event loop."""
    gate = threading.Event()
    tasks = [asyncio.create_task(XML_THREADS.run(lambda: gate.wait(30))) for _ in range(50)]
    await asyncio.sleep(0)
    # If anything ran on the event loop, the gate could not be opened.
    gate.set()
    ended: list[Any] = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(outcome, SamlBusy) for outcome in ended) == 50 - 34
    assert all(outcome is True or isinstance(outcome, SamlBusy) for outcome in ended)


async def test_a_large_response_is_refused_quickly(sign_on: SignOn) -> None:
    """A message of the maximum size, with as much structure as possible."""
    raw = b"<a>" + b"<b/>" * 60_000 + b"</a>"
    started = time.monotonic()
    refused = await sign_on.post(saml.encoded(raw))
    assert (refused.status_code, time.monotonic() - started < 2) == (400, True)


async def test_the_command_prepares_and_activates_a_key(platform: RunningPlatform) -> None:
    async def command(*words: str) -> subprocess.CompletedProcess[str]:
        settings = platform.installed.settings
        environment = {**os.environ, "GATEHOUSE_HOME": str(settings.gatehouse_home)}
        if isinstance(settings.gatehouse_master_key, SecretStr):
            environment["GATEHOUSE_MASTER_KEY"] = settings.gatehouse_master_key.get_secret_value()
        return await asyncio.to_thread(run_command, "keys", "rotate-saml", *words, environment=environment)

    before = (await keys.signing_key(platform.host.database, platform.host.sealer)).id
    prepared = await command()
    assert prepared.returncode == 0, prepared.stderr
    assert (await keys.signing_key(platform.host.database, platform.host.sealer)).id == before
    activated = await command("--activate")
    after = (await keys.signing_key(platform.host.database, platform.host.sealer)).id
    assert after in prepared.stdout
    assert f"Key {after} signs SAML requests from now on. Key {before} no longer signs." in activated.stdout
    nothing = await command("--activate")
    assert nothing.returncode != 0
    assert "no key is prepared" in nothing.stderr

"""An administrator sends a provider's metadata and gets the fields of the provider's configuration."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from tests.platform.access.saml.conftest import IDP
from tests.support.platform import RunningPlatform, Tenant
from tests.support.receiver import Receiver
from tests.support.saml import NS, Signer, key_descriptor, provider_metadata

READ = "/api/admin/saml/metadata"
REDIRECT = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"
POST = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST"


def metadata(signer: Signer, **parts: str) -> str:
    return provider_metadata("https://idp.test", signer.certificate, entity="urn:acme", **parts)


async def test_metadata_returns_the_fields_of_a_new_provider(tenant: Tenant, signer: Signer, stranger: Signer) -> None:
    admin = tenant.admin.client
    keys = (
        key_descriptor(signer.bare_certificate)
        + key_descriptor(stranger.bare_certificate, "")
        + key_descriptor(signer.bare_certificate)
    )
    read = await admin.post(READ, json={"xml": metadata(signer, keys=keys)})
    assert read.status_code == 200, read.text
    fields = read.json()
    assert fields == {
        "entity_id": "urn:acme",
        "sso_url": "https://idp.test/sso",
        "slo_url": "https://idp.test/slo",
        "x509_cert": signer.certificate + stranger.certificate,
    }
    assert (await admin.get(IDP)).json()["total"] == 0
    assert (await admin.post(IDP, json={"name": "Acme", **fields})).status_code == 201


async def test_a_provider_in_a_list_of_entities_without_single_logout_is_read(tenant: Tenant, signer: Signer) -> None:
    sso = f'<md:SingleSignOnService Binding="{REDIRECT}" Location="https://idp.test/sso"/>'
    (inner,) = metadata(signer, services=sso).split("?>")[1:]
    service = f'<md:EntityDescriptor entityID="a service"><md:SPSSODescriptor/></md:EntityDescriptor>{inner}'
    xml = f'<md:EntitiesDescriptor xmlns:md="{NS["md"]}">{service}</md:EntitiesDescriptor>'
    read = await tenant.admin.client.post(READ, json={"xml": xml})
    assert (read.status_code, read.json().get("slo_url", "")) == (200, None), read.text


DOCUMENTS = {
    "no XML": (lambda _: "hello", "XML document"),
    "a document type": (lambda signer: "<!DOCTYPE a [<!ENTITY x 'y'>]>" + metadata(signer).split("?>")[1], "type"),
    "a service": (lambda signer: metadata(signer).replace("IDPSSO", "SPSSO"), "it describes 0"),
    "two providers": (lambda s: f"<a>{(metadata(s) * 2).replace(XML, '')}</a>", "it describes 2"),
    "no redirect": (lambda signer: metadata(signer).replace(REDIRECT, POST), "HTTP-Redirect"),
    "no key": (
        lambda signer: metadata(signer, keys=key_descriptor("bm8=", ' use="encryption"')),
        "signing certificate",
    ),
    "a bad key": (lambda signer: metadata(signer, keys=key_descriptor("bm8=")), "X.509"),
    "five keys": (
        lambda signer: metadata(signer, keys="".join(key_descriptor(f"{n}") for n in range(5))),
        "4 certificates",
    ),
}
XML = '<?xml version="1.0"?>'


@pytest.mark.parametrize("name", DOCUMENTS)
async def test_unusable_metadata_is_refused_with_the_reason(tenant: Tenant, signer: Signer, name: str) -> None:
    document, reason = DOCUMENTS[name]
    refused = await tenant.admin.client.post(READ, json={"xml": document(signer)})
    assert refused.status_code == 422, refused.text
    (fault,) = refused.json()["detail"]
    assert fault["loc"] == ["body", "xml"]
    assert reason in fault["msg"]


@pytest.mark.parametrize("body", [{}, {"xml": "<a/>", "url": "https://idp.test/"}, {"xml": None}])
async def test_exactly_one_source_is_required(tenant: Tenant, body: dict[str, str]) -> None:
    refused = await tenant.admin.client.post(READ, json=body)
    assert (refused.status_code, "one of them" in refused.text) == (422, True)


async def test_only_administrators_read_metadata_and_auditors_read_the_addresses_of_the_platform(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    for client, status in ((tenant.user.client, 403), (platform.anonymous, 401)):
        assert (await client.post(READ, json={"xml": "<a/>"})).status_code == status
        assert (await client.get("/api/admin/saml/service-provider")).status_code == status
    assert (await tenant.auditor.client.post(READ, json={"xml": "<a/>"})).status_code == 403
    assert (await tenant.auditor.client.get("/api/admin/saml/service-provider")).status_code == 200


# metadata from a URL ------------------------------------------------------------------------------------------------


@asynccontextmanager
async def publishing(platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Receiver]:
    """Run a web server on this machine that the platform may reach."""
    async with Receiver.listening() as server:
        receivers = server.trusted()
        monkeypatch.setattr(platform.host, "receivers", receivers)
        yield server
        await receivers.close()


async def test_metadata_is_fetched_from_its_address(
    platform: RunningPlatform, tenant: Tenant, signer: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with publishing(platform, monkeypatch) as server:
        server.answers.append(web.Response(text=metadata(signer)))
        read = await tenant.admin.client.post(READ, json={"url": f"{server.url}metadata"})
        assert (read.status_code, read.json().get("entity_id")) == (200, "urn:acme"), read.text
        assert [got.path for got in server.got] == ["/metadata"]
        for answer, reason in (
            (404, "answered 404"),
            (web.Response(status=302, headers={"Location": server.url}), "answered 302"),
            (web.Response(body=b"x" * 300_000), "larger than 256 KiB"),
            (200, "XML document"),
        ):
            server.answers.append(answer)
            refused = await tenant.admin.client.post(READ, json={"url": server.url})
            assert refused.status_code == 422, refused.text
            assert refused.json()["detail"][0]["loc"] == ["body", "url"]
            assert reason in refused.json()["detail"][0]["msg"]
        assert len(server.got) == 5


async def test_an_internal_address_is_not_called_and_is_recorded(platform: RunningPlatform, tenant: Tenant) -> None:
    for url in ("https://169.254.169.254/latest", "https://10.0.0.1/metadata"):
        refused = await tenant.admin.client.post(READ, json={"url": url})
        assert (refused.status_code, refused.json()["detail"][0]["loc"]) == (422, ["body", "url"])
    events = await platform.audit(tenant, "receiver.refused")
    assert [event["details"]["host"] for event in events] == ["169.254.169.254", "10.0.0.1"]
    plain = await tenant.admin.client.post(READ, json={"url": "http://idp.test/metadata"})
    assert (plain.status_code, "https" in plain.text.lower()) == (422, True)

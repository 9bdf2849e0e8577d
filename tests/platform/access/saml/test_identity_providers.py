"""The configuration of SAML identity providers (docs/saml.md)."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from tests.platform.access.saml.conftest import IDP
from tests.support.platform import RunningPlatform, Tenant
from tests.support.saml import Signer

FIELDS = {
    "id", "name", "entity_id", "sso_url", "slo_url", "x509_cert", "attribute_mapping", "is_active", "created_at",
    "updated_at",
    "allow_idp_initiated", "certificates",
}  # fmt: skip


@pytest.fixture
def body(signer: Signer) -> dict[str, Any]:
    """The required fields only."""
    return {
        "name": "Acme",
        "entity_id": f"https://{uuid4().hex[:8]}.test/saml",
        "sso_url": "https://idp.test/sso",
        "x509_cert": signer.certificate,
    }


async def test_a_provider_is_created_read_listed_and_removed(tenant: Tenant, body: dict[str, Any]) -> None:
    admin = tenant.admin.client
    resource = await admin.post(IDP, json=body)
    assert resource.status_code == 201
    assert resource.json().keys() == FIELDS
    assert resource.json() == {
        **{name: resource.json()[name] for name in ("id", "created_at", "updated_at", "certificates")},
        **body,
        "slo_url": None,
        "attribute_mapping": None,
        "is_active": True,
        "allow_idp_initiated": False,
    }
    path = f"{IDP}/{resource.json()['id']}"
    assert (await admin.get(path)).json() == resource.json()
    assert (await tenant.auditor.client.get(IDP)).json() == {"idps": [resource.json()], "total": 1}
    assert (await admin.delete(path)).status_code == 204
    assert (await admin.get(path)).status_code == 404
    assert (await admin.get(IDP)).json() == {"idps": [], "total": 0}


async def test_every_change_is_in_the_audit_chain(
    platform: RunningPlatform, tenant: Tenant, body: dict[str, Any]
) -> None:
    resource = (await tenant.admin.client.post(IDP, json=body)).json()
    await tenant.admin.client.put(f"{IDP}/{resource['id']}", json={"is_active": False})
    await tenant.admin.client.delete(f"{IDP}/{resource['id']}")
    (created,) = await platform.audit(tenant, "saml_idp.created")
    assert (created["actor_id"], created["details"]["entity_id"]) == (str(tenant.admin.id), body["entity_id"])
    (updated,) = await platform.audit(tenant, "saml_idp.updated")
    assert updated["details"]["is_active"] is False
    (deleted,) = await platform.audit(tenant, "saml_idp.deleted")
    assert deleted["resource_id"] == resource["id"]


async def test_an_update_changes_the_sent_fields_and_null_clears(tenant: Tenant, body: dict[str, Any]) -> None:
    admin = tenant.admin.client
    mapping = {"email": "urn:acme:mail", "username": None, "groups": "urn:acme:groups"}
    resource = (
        await admin.post(IDP, json={**body, "slo_url": "https://idp.test/slo", "attribute_mapping": mapping})
    ).json()
    assert resource["attribute_mapping"] == mapping
    path = f"{IDP}/{resource['id']}"
    renamed = (await admin.put(path, json={"name": "Other"})).json()
    assert renamed == {**resource, "name": "Other", "updated_at": renamed["updated_at"]}
    cleared = (await admin.put(path, json={"slo_url": None, "attribute_mapping": None})).json()
    assert (cleared["slo_url"], cleared["attribute_mapping"]) == (None, None)
    for name in ("name", "entity_id", "sso_url", "x509_cert", "is_active"):
        refused = await admin.put(path, json={name: None})
        assert (refused.status_code, refused.json()["detail"][0]["loc"][-1]) == (422, name)


async def test_an_entity_id_is_unique_in_an_organization(
    tenant: Tenant, other_tenant: Tenant, body: dict[str, Any]
) -> None:
    admin = tenant.admin.client
    assert (await admin.post(IDP, json=body)).status_code == 201
    assert (await admin.post(IDP, json=body)).status_code == 409
    other = (await admin.post(IDP, json={**body, "entity_id": "https://another.test"})).json()
    taken = await admin.put(f"{IDP}/{other['id']}", json={"entity_id": body["entity_id"]})
    assert (taken.status_code, taken.json()["detail"][:9]) == (409, "entity_id")
    assert (await other_tenant.admin.client.post(IDP, json=body)).status_code == 201


async def test_a_certificate_is_stored_unchanged(tenant: Tenant, body: dict[str, Any], signer: Signer) -> None:
    bare = signer.bare_certificate
    wrapped = "\n".join(bare[at : at + 64] for at in range(0, len(bare), 64))
    for index, value in enumerate((bare, wrapped, signer.certificate, "\n" + signer.certificate * 2)):
        resource = await tenant.admin.client.post(IDP, json={**body, "entity_id": f"e{index}", "x509_cert": value})
        assert (resource.status_code, resource.json().get("x509_cert")) == (201, value)


async def test_the_certificates_are_shown_with_their_end_and_fingerprint(
    tenant: Tenant, body: dict[str, Any], signer: Signer, stranger: Signer
) -> None:
    body["x509_cert"] = signer.certificate + stranger.certificate
    resource = (await tenant.admin.client.post(IDP, json=body)).json()
    expected = [x509.load_pem_x509_certificate(item.certificate.encode()) for item in (signer, stranger)]
    assert [
        (datetime.fromisoformat(shown["expires_at"]), bytes.fromhex(shown["sha256"]))
        for shown in resource["certificates"]
    ] == [(certificate.not_valid_after_utc, certificate.fingerprint(SHA256())) for certificate in expected]


def _ed25519() -> str:
    resource = Signer.new("ec")
    key = ed25519.Ed25519PrivateKey.generate()
    old = x509.load_pem_x509_certificate(resource.certificate.encode())
    builder = x509.CertificateBuilder(old.issuer, old.subject, key.public_key(), old.serial_number)
    builder = builder.not_valid_before(old.not_valid_before_utc).not_valid_after(old.not_valid_after_utc)
    return builder.sign(key, None).public_bytes(Encoding.PEM).decode()


CERTIFICATES = {
    "empty": lambda: "",
    "words": lambda: "not a certificate",
    "base64 of something else": lambda: "aGVsbG8=",
    "a private key": lambda: Signer.new().key,
    "a weak key": lambda: Signer.new(bits=1024).certificate,
    "another kind of key": _ed25519,
    "text after the certificate": lambda: Signer.new().certificate + "and more",
    "too many": lambda: Signer.new("ec").certificate * 5,
    "cut short": lambda: Signer.new().certificate[:400],
}


@pytest.mark.parametrize("make", CERTIFICATES.values(), ids=CERTIFICATES.keys())
async def test_an_unusable_certificate_is_refused(tenant: Tenant, body: dict[str, Any], make: Any) -> None:
    refused = await tenant.admin.client.post(IDP, json={**body, "x509_cert": make()})
    assert (refused.status_code, refused.json()["detail"][0]["loc"]) == (422, ["body", "x509_cert"])
    assert "PRIVATE" not in refused.text


BAD: list[tuple[str, Any]] = [
    ("name", ""), ("name", "x" * 256), ("entity_id", ""), ("entity_id", "x" * 1025), ("sso_url", "idp.test"),
    ("sso_url", "javascript:alert(1)"), ("sso_url", "https://"), ("sso_url", "https://u:p@idp.test"),
    ("sso_url", "https://idp.test/#x"), ("sso_url", "https://idp.test/\nX: y"), ("sso_url", "https://idp.test:0x"),
    ("slo_url", "ftp://idp.test"), ("slo_url", ""), ("is_active", "yes"), ("attribute_mapping", {"mail": "x"}),
    ("attribute_mapping", {"email": ""}), ("attribute_mapping", []), ("role", "admin"),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), BAD)
async def test_a_bad_field_is_named(tenant: Tenant, body: dict[str, Any], field: str, value: Any) -> None:
    refused = await tenant.admin.client.post(IDP, json={**body, field: value})
    assert refused.status_code == 422
    assert field in refused.json()["detail"][0]["loc"]


async def test_only_administrators_configure_identity_providers(
    platform: RunningPlatform, tenant: Tenant, body: dict[str, Any]
) -> None:
    resource = (await tenant.admin.client.post(IDP, json=body)).json()
    path = f"{IDP}/{resource['id']}"
    for client, status in ((platform.anonymous, 401), (tenant.user.client, 403), (tenant.auditor.client, 403)):
        assert (await client.post(IDP, json=body)).status_code == status
        assert (await client.put(path, json={"name": "x"})).status_code == status
        assert (await client.delete(path)).status_code == status
    assert (await tenant.user.client.get(path)).status_code == 403


async def test_another_organizations_provider_is_not_found(
    tenant: Tenant, other_tenant: Tenant, body: dict[str, Any]
) -> None:
    resource = (await tenant.admin.client.post(IDP, json=body)).json()
    path, stranger = f"{IDP}/{resource['id']}", other_tenant.admin.client
    assert (await stranger.get(path)).status_code == 404
    assert (await stranger.put(path, json={"name": "x"})).status_code == 404
    assert (await stranger.delete(path)).status_code == 404
    assert (await tenant.admin.client.get(path)).json() == resource


async def test_a_machine_cannot_configure_identity_providers(
    platform: RunningPlatform, tenant: Tenant, body: dict[str, Any]
) -> None:
    """With its own provider, the client could sign in as an administrator."""
    resource = (await tenant.admin.client.post(IDP, json=body)).json()
    machine = await platform.new_m2m(tenant.id, "admin:read", "admin:write")
    refused = await machine.post(IDP, json={**body, "entity_id": "https://its.own"})
    assert (refused.status_code, refused.json()["detail"]) == (
        403,
        "Only an administrator in person can configure identity providers, because a provider can sign in as any user"
        " of the organization. OAuth clients, and API keys with scopes, cannot.",
    )
    assert (await machine.put(f"{IDP}/{resource['id']}", json={"name": "x"})).status_code == 403
    assert (await machine.get(IDP)).json()["total"] == 1


async def test_changes_require_a_second_factor(platform: RunningPlatform, tenant: Tenant, body: dict[str, Any]) -> None:
    resource = (await tenant.admin.client.post(IDP, json=body)).json()
    await platform.require_mfa(tenant.id)
    path, admin = f"{IDP}/{resource['id']}", tenant.admin.client
    for refused in (
        await admin.post(IDP, json={**body, "entity_id": "x"}),
        await admin.put(path, json={"name": "x"}),
        await admin.delete(path),
    ):
        assert (refused.status_code, refused.json()["error"]) == (403, "mfa_required")
    fresh = await platform.new_person(tenant.id, "admin", mfa_at=datetime.now(UTC).timestamp())
    assert (await fresh.client.put(path, json={"name": "x"})).status_code == 200

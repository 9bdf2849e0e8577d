"""Providers' credentials that are sent to outposts, encrypted with the key of each outpost's certificate."""

import time
from base64 import urlsafe_b64decode
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.support.outposts import Outpost, Portal
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.secrets import ecies
from gatehouse.foundation.secrets.ecies import CannotDecrypt
from gatehouse.platform.changes.change import DEFAULT_TENANT
from gatehouse.policy.bundles import signing
from gatehouse.policy.bundles.contents import PolicyBundle, sealing_context

CONFIG = "/api/admin/config/outpost_provider_credentials"
SECRET = "sk-of-the-organization-alone"


async def send(tenant: Tenant, value: str = "sealed") -> None:
    answer = await tenant.admin.client.put(CONFIG, json={"value": value})
    assert answer.status_code == 200, answer.text


async def provider(tenant: Tenant, name: str = "own", key: str | None = SECRET) -> None:
    byoe: dict[str, Any] = {
        "id": name, "name": name, "base_url": "https://models.example.com/v1", "format": "openai", "api_key": key,
        "models": [
            {
                "model_id": "m", "display_name": "M", "context_window": 8_000, "input_cost_per_1k": 1,
                "output_cost_per_1k": 1,
            }
        ],
    }  # fmt: skip
    answer = await tenant.admin.client.post("/api/admin/providers/byoe", json=byoe)
    assert answer.status_code == 201, answer.text


async def taken(outpost: Outpost) -> tuple[str, str, PolicyBundle]:
    """Return the entity tag, the signed form and the contents of the bundle."""
    answer = await outpost.bundle()
    assert answer.status_code == 200, answer.text
    keys = outpost.platform.host.replica.signing_keys
    bundle = signing.verify(answer.text, keys, outpost_id=outpost.id, now=time.time())
    return answer.headers["etag"], answer.text, bundle


def opened(outpost: Outpost, bundle: PolicyBundle, name: str = "own") -> dict[str, str]:
    context = sealing_context(outpost.id, bundle.tenant_id, name)
    return msgspec.json.decode(ecies.unseal(bundle.credentials[name], outpost.key, context=context), type=dict)


async def test_credentials_are_sent_only_if_the_organization_chose_it(tenant: Tenant, outpost: Outpost) -> None:
    await provider(tenant)
    assert (await taken(outpost))[2].credentials == {}
    await send(tenant)
    etag, _, bundle = await taken(outpost)
    assert opened(outpost, bundle) == {"api_key": SECRET}
    assert all(provider.sealed_credentials is None for provider in bundle.policy.providers)
    await send(tenant, "off")
    other, _, bundle = await taken(outpost)
    assert (bundle.credentials, other != etag) == ({}, True)


async def test_each_credential_of_a_provider_is_sent_except_disabled_ones(tenant: Tenant, outpost: Outpost) -> None:
    await provider(tenant)
    path = "/api/admin/providers/own/credentials"
    for label, state in (("second", "draining"), ("third", "disabled")):
        new = {"label": label, "api_key": f"sk-{label}-0815", "state": state}
        answer = await tenant.admin.client.post(path, json=new)
        assert answer.status_code == 201, answer.text
    await send(tenant)
    _, signed, bundle = await taken(outpost)
    assert {name: opened(outpost, bundle, name)["api_key"] for name in bundle.credentials} == {
        "own": SECRET,
        "own/second": "sk-second-0815",
    }
    (record,) = bundle.policy.providers
    assert [(entry.label, entry.state, entry.sealed) for entry in record.credentials] == [
        ("second", "draining", None),
        ("third", "disabled", None),
    ]
    payload = urlsafe_b64decode(signed.split(".")[1] + "==")
    assert (b"own/second" in payload, b"sk-second" in payload, b"sk-third" in payload) == (True, False, False)


async def test_only_the_intended_outpost_can_decrypt_credentials(
    portal: Portal, tenant: Tenant, outpost: Outpost
) -> None:
    await provider(tenant)
    await provider(tenant, "second", "another secret")
    await send(tenant)
    second = await portal.enrol(tenant.id)
    _, signed, bundle = await taken(outpost)
    theirs = (await taken(second))[2]
    assert SECRET not in str(bundle)
    assert SECRET not in signed
    assert opened(second, theirs) == {"api_key": SECRET}
    assert opened(outpost, bundle, "second") == {"api_key": "another secret"}
    assert bundle.credentials["own"] != theirs.credentials["own"]
    for holder, sealed, context in (
        (second, bundle.credentials["own"], sealing_context(outpost.id, bundle.tenant_id, "own")),
        (outpost, bundle.credentials["own"], sealing_context(second.id, bundle.tenant_id, "own")),
        (outpost, bundle.credentials["own"], sealing_context(outpost.id, bundle.tenant_id, "second")),
        (outpost, bundle.credentials["own"], sealing_context(outpost.id, DEFAULT_TENANT, "own")),
    ):
        with pytest.raises(CannotDecrypt):
            ecies.unseal(sealed, holder.key, context=context)


async def test_the_bundle_changes_only_if_the_certificates_key_changes(
    portal: Portal, tenant: Tenant, outpost: Outpost
) -> None:
    await provider(tenant)
    await send(tenant)
    etag, _, _ = await taken(outpost)
    assert (await outpost.bundle(etag)).status_code == 304
    outpost.key = ec.generate_private_key(ec.SECP256R1())
    outpost.certificate = portal.authority.issue(outpost.key)
    await portal.vouch()
    answer = await outpost.bundle(etag)
    assert answer.status_code == 200
    assert opened(outpost, (await taken(outpost))[2]) == {"api_key": SECRET}
    assert (await outpost.bundle(answer.headers["etag"])).status_code == 304


async def test_without_credentials_a_renewed_certificate_does_not_change_the_bundle(
    portal: Portal, tenant: Tenant, outpost: Outpost
) -> None:
    await provider(tenant)
    etag, _, _ = await taken(outpost)
    outpost.key = ec.generate_private_key(ec.SECP256R1())
    outpost.certificate = portal.authority.issue(outpost.key)
    await portal.vouch()
    assert (await outpost.bundle(etag)).status_code == 304


async def test_changed_credentials_are_sent_and_those_of_disabled_providers_are_not(
    tenant: Tenant, outpost: Outpost
) -> None:
    await provider(tenant)
    await provider(tenant, "keyless", None)
    await send(tenant)
    etag, _, bundle = await taken(outpost)
    assert list(bundle.credentials) == ["own"]
    changed = await tenant.admin.client.patch("/api/admin/providers/byoe/own", json={"api_key": "sk-renewed-4711"})
    assert changed.status_code == 200, changed.text
    other, _, bundle = await taken(outpost)
    assert other != etag
    assert opened(outpost, bundle) == {"api_key": "sk-renewed-4711"}
    status = await tenant.admin.client.put("/api/admin/providers/own/status", json={"enabled": False})
    assert status.status_code == 200, status.text
    assert (await taken(outpost))[2].credentials == {}


async def test_credentials_that_cannot_be_decrypted_do_not_block_others(
    platform: RunningPlatform, tenant: Tenant, outpost: Outpost
) -> None:
    await provider(tenant)
    await provider(tenant, "broken")
    await send(tenant)
    platform.sql(
        "UPDATE providers SET sealed_credentials = 'v1.gone.AAAA' WHERE tenant_id = %s AND id = 'broken'", [tenant.id]
    )
    platform.touch("policy", tenant.id)
    await platform.refresh()
    assert list((await taken(outpost))[2].credentials) == ["own"]


async def test_only_permitted_callers_enable_sending_and_it_is_audited(
    platform: RunningPlatform, tenant: Tenant
) -> None:
    for caller, status in ((tenant.user, 403), (tenant.auditor, 403)):
        assert (await caller.client.put(CONFIG, json={"value": "sealed"})).status_code == status
    assert (await platform.anonymous.put(CONFIG, json={"value": "sealed"})).status_code == 401
    refused = await tenant.admin.client.put(CONFIG, json={"value": "clear"})
    assert (refused.status_code, refused.json()["detail"][0]["loc"]) == (422, ["body", "value"])
    await send(tenant)
    (event,) = await platform.audit(tenant, "system_config.changed")
    assert (event["resource_id"], event["details"]["value"]) == ("outpost_provider_credentials", "sealed")

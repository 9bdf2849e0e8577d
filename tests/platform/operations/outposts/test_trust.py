"""The outposts that the platform accepts as callers (docs/outpost-protocol.md)."""

from base64 import urlsafe_b64decode
from typing import Any
from uuid import uuid4

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from tests.support.outposts import Authority, Outpost, Portal
from tests.support.platform import RunningPlatform, Tenant

from gatehouse.foundation.certificates import x5c
from gatehouse.platform.changes.change import DEFAULT_TENANT

PATH = "/v1/platform/outpost-trust"
EMPTY: dict[str, Any] = {"ca_certificates": [], "organizations": [], "outposts": []}


async def test_an_outpost_is_accepted_once_the_portal_lists_it(portal: Portal, outpost: Outpost) -> None:
    assert (await outpost.bundle()).status_code == 200
    stranger = Outpost(portal.platform, outpost.tenant_id, uuid4(), portal.authority.issue(outpost.key), outpost.key)
    assert (await stranger.bundle()).status_code == 401


async def test_the_response_repeats_the_accepted_trust(portal: Portal, outpost: Outpost) -> None:
    word = portal.word()
    word["organizations"].append({"org_id": str(uuid4()), "tenant_id": str(uuid4())})
    body = (await portal.client.put(PATH, json=word)).json()
    assert (body["outposts"], body["serials"]) == (len(portal.outposts), len(portal.outposts))
    assert body["organizations"] == len(portal.outposts) + 1
    assert body["unknown_tenants"] == [word["organizations"][-1]["tenant_id"]]
    (authority,) = body["ca_certificates"]
    assert authority["not_after"].startswith(portal.authority.certificate.not_valid_after_utc.date().isoformat())


async def test_a_revoked_certificate_is_refused_from_the_response_on(portal: Portal, outpost: Outpost) -> None:
    assert (await outpost.bundle()).status_code == 200
    word = portal.word()
    word["outposts"][-1]["serials"] = []
    assert (await portal.client.put(PATH, json=word)).status_code == 200
    refused = await outpost.bundle()
    assert (refused.status_code, refused.json()["error"]) == (401, "invalid_token")


async def test_serials_are_compared_as_numbers(portal: Portal, outpost: Outpost) -> None:
    word = portal.word()
    word["outposts"][-1]["serials"] = [f"{outpost.certificate.serial_number:040X}"]
    assert (await portal.client.put(PATH, json=word)).status_code == 200
    assert (await outpost.bundle()).status_code == 200


async def test_an_outpost_belongs_to_the_organization_named_by_the_portal(
    portal: Portal, outpost: Outpost, other_tenant: Tenant
) -> None:
    await portal.switch(other_tenant.id, enabled=True)
    word = portal.word()
    word["organizations"][-1]["tenant_id"] = str(other_tenant.id)
    await portal.client.put(PATH, json=word)
    body = (await outpost.bundle()).text
    assert str(other_tenant.id) in _payload(body)
    assert str(outpost.tenant_id) not in _payload(body)


async def test_an_outpost_of_an_unknown_organization_is_refused(portal: Portal, outpost: Outpost) -> None:
    word = portal.word()
    word["organizations"][-1]["tenant_id"] = str(uuid4())
    assert (await portal.client.put(PATH, json=word)).status_code == 200
    assert (await outpost.bundle()).status_code == 401


async def test_the_outposts_of_a_deleted_tenant_are_refused(
    platform: RunningPlatform, portal: Portal, tenant: Tenant, outpost: Outpost
) -> None:
    assert (await portal.client.delete(f"/v1/platform/tenants/{tenant.id}")).status_code == 204
    assert (await outpost.bundle()).status_code == 401


async def test_only_changes_of_the_trust_are_in_the_operators_chain(
    platform: RunningPlatform, portal: Portal, outpost: Outpost
) -> None:
    before = await platform.audit(DEFAULT_TENANT, "outpost_trust.changed")
    await portal.vouch()
    assert len(await platform.audit(DEFAULT_TENANT, "outpost_trust.changed")) == len(before)
    await portal.client.put(PATH, json=EMPTY)
    event = (await platform.audit(DEFAULT_TENANT, "outpost_trust.changed"))[-1]
    assert (event["actor_type"], event["details"]["serials_removed"]) == ("oauth_client", len(portal.outposts))
    assert event["details"]["outposts"] == 0


async def test_only_the_portals_client_and_operators_set_the_trust(
    platform: RunningPlatform, portal: Portal, tenant: Tenant
) -> None:
    reader = await platform.new_m2m(None, "admin:read")
    own = await platform.new_m2m(tenant.id, "admin:write")
    for client in (tenant.admin.client, tenant.auditor.client, tenant.user.client, reader, own):
        assert (await client.put(PATH, json=EMPTY)).status_code == 403
        # 403 is checked before 422, so that unauthorized callers learn nothing.
        assert (await client.put(PATH, json={})).status_code == 403
    assert (await platform.anonymous.put(PATH, json=EMPTY)).status_code == 401
    assert (await (await platform.operator()).client.put(PATH, json=portal.word())).status_code == 200


def _bad(portal: Portal, **changed: Any) -> dict[str, Any]:
    return {**portal.word(), **changed}


async def test_a_bad_field_is_named(portal: Portal, outpost: Outpost) -> None:
    authority, word = Authority(), portal.word()
    leaf = authority.issue(ec.generate_private_key(ec.SECP256R1()))
    first = word["outposts"][0]
    table: list[tuple[dict[str, Any], str]] = [
        ({"ca_certificates": ["no certificate"]}, "ca_certificates.0"),
        ({"ca_certificates": [authority.pem, authority.pem + authority.pem]}, "ca_certificates.1"),
        ({"ca_certificates": [_pem(leaf)]}, "ca_certificates.0"),
        ({"ca_certificates": [authority.pem] * 9}, "ca_certificates"),
        ({"organizations": [word["organizations"][0]] * 2, "outposts": []}, "organizations.1.org_id"),
        ({"organizations": [{"org_id": "x", "tenant_id": str(uuid4())}]}, "organizations.0.org_id"),
        ({"outposts": [first, {**first, "serials": []}]}, "outposts.1.outpost_id"),
        ({"outposts": [{**first, "org_id": str(uuid4())}]}, "outposts.0.org_id"),
        ({"outposts": [{**first, "serials": ["0a", "A"]}]}, "outposts.0.serials.1"),
        ({"outposts": [{**first, "serials": ["xyz"]}]}, "outposts.0.serials.0"),
        ({"outposts": [{**first, "surprise": 1}]}, "outposts.0.surprise"),
        ({"surprise": 1}, "surprise"),
    ]
    for changed, field in table:
        answer = await portal.client.put(PATH, json=_bad(portal, **changed))
        assert answer.status_code == 422, (changed, answer.text)
        assert [".".join(map(str, fault["loc"][1:])) for fault in answer.json()["detail"]] == [field]
    # None of these calls changed anything.
    assert (await outpost.bundle()).status_code == 200


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another platform"},
        {"sub": str(uuid4())},
        {"sub": None},
        {"sub": "x"},
        {"aud": None},
    ],
)
async def test_a_token_for_another_audience_or_of_another_outpost_is_refused(
    outpost: Outpost, claims: dict[str, Any]
) -> None:
    token = outpost.token(**claims)
    answer = await outpost.platform.client(token).get("/v1/outposts/policy-bundle")
    assert answer.status_code == 401


@pytest.mark.parametrize(
    "path", ["/v1/models", "/api/admin/users", "/api/auth/api-keys", "/v1/audit/events", "/api/scim/v2/Users"]
)
async def test_an_outposts_token_is_valid_nowhere_else(outpost: Outpost, path: str) -> None:
    assert (await outpost.platform.client(outpost.token()).get(path)).status_code == 401


async def test_an_outpost_of_another_authority_is_refused(portal: Portal, outpost: Outpost) -> None:
    """The certificate has the serial number of a valid one."""
    impostor = Authority(portal.authority.certificate.subject.rfc4514_string().removeprefix("CN="))
    builder = impostor.issue(outpost.key)
    forged = x5c.sign(
        {"sub": str(outpost.id), "aud": outpost.platform.host.issuer},
        outpost.key,
        [builder, impostor.certificate],
    )
    assert (await outpost.platform.client(forged).get("/v1/outposts/policy-bundle")).status_code == 401


def _pem(certificate: Any) -> str:
    pem: bytes = certificate.public_bytes(Encoding.PEM)
    return pem.decode()


def _payload(signed: str) -> str:
    part = signed.split(".")[1]
    return urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode()

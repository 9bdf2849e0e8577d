"""Outposts: registration, certificates, heartbeats (docs/portal.md, Outposts)."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID
from starlette.types import Receive, Scope, Send
from tests.support.outposts import Authority
from tests.support.portal import Org, RunningPortal

from gatehouse.foundation.certificates import x5c
from gatehouse.foundation.clock import utc_now
from gatehouse.portal.outposts import jobs, service

HEARTBEAT = "/v1/outposts/heartbeat"


def registration_body(**more: Any) -> dict[str, Any]:
    return {"outpost_name": f"o-{uuid4().hex[:8]}", "region": "eu-central-1", "deployment_env": "production", **more}


async def registered(portal: RunningPortal, org: Org, **more: Any) -> dict[str, Any]:
    answer = await portal.admin.post(f"{org.path}/outposts", json=registration_body(**more))
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def path(org: Org, registration: dict[str, Any]) -> str:
    return f"{org.path}/outposts/{registration['outpost']['id']}"


def certificate(registration: dict[str, Any]) -> x509.Certificate:
    return x509.load_pem_x509_certificate(registration["client_cert"].encode())


def private(registration: dict[str, Any]) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(registration["client_key"].encode(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def token(registration: dict[str, Any], *, lifetime: int = 300, **claims: Any) -> str:
    payload = {"sub": registration["outpost"]["id"], "aud": "gatehouse-portal", **claims}
    return x5c.sign(payload, private(registration), [certificate(registration)], lifetime_seconds=lifetime)


async def beat(portal: RunningPortal, credential: str, **body: Any) -> httpx2.Response:
    return await portal.anonymous.post(HEARTBEAT, json=body, headers={"Authorization": f"Bearer {credential}"})


def set_last_seen(portal: RunningPortal, registration: dict[str, Any], minutes: float) -> None:
    """Sets the registration and the last heartbeat of the outpost to `minutes` before now."""
    portal.sql(
        "UPDATE outposts SET created_at = now() - make_interval(secs => %s), last_seen_at = CASE WHEN last_seen_at"
        " IS NOT NULL THEN now() - make_interval(secs => %s) END WHERE id = %s",
        [minutes * 60, minutes * 60, registration["outpost"]["id"]],
    )


# registration --------------------------------------------------------------------------------------------------------


async def test_a_registration_returns_everything_an_outpost_needs(portal: RunningPortal, org: Org) -> None:
    body = registration_body()
    answer = await portal.admin.post(f"{org.path}/outposts", json=body)
    assert answer.status_code == 201, answer.text
    response_body = answer.json()
    assert set(response_body) == {
        "outpost", "client_cert", "client_key", "ca_chain", "platform_url", "bundle_url", "heartbeat_url",
    }  # fmt: skip
    assert {name: response_body["outpost"][name] for name in body} == body
    assert (response_body["outpost"]["org_id"], response_body["outpost"]["status"]) == (str(org.id), "active")
    assert response_body["heartbeat_url"] == "http://portal.test/v1/outposts/heartbeat"
    shown = (await org.client.get(path(org, response_body))).json()
    assert shown == response_body["outpost"]
    assert (await org.client.get(f"{org.path}/outposts")).json() == [shown]


async def test_the_certificate_is_for_clients_and_expires_after_ninety_days(portal: RunningPortal, org: Org) -> None:
    registration = await registered(portal, org)
    leaf, (root,) = certificate(registration), x509.load_pem_x509_certificates(registration["ca_chain"].encode())
    leaf.verify_directly_issued_by(root)
    assert leaf.public_key() == private(registration).public_key()
    assert isinstance(private(registration).curve, ec.SECP256R1)
    assert isinstance(root.public_key(), ec.EllipticCurvePublicKey)
    usage = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert registration["outpost"]["cert_serial"] == f"{leaf.serial_number:x}"
    assert datetime.fromisoformat(registration["outpost"]["cert_expires_at"]) == leaf.not_valid_after_utc
    lasts = leaf.not_valid_after_utc - datetime.fromisoformat(registration["outpost"]["cert_issued_at"])
    assert timedelta(days=90) - lasts < timedelta(seconds=1)


async def test_the_private_key_is_not_stored(portal: RunningPortal, org: Org) -> None:
    registration = await registered(portal, org)
    secret = "".join(registration["client_key"].split("\n")[1:-2])
    for table in ("outposts", "outpost_certificates", "audit", "jobs"):
        assert secret[:60] not in str(portal.sql(f"SELECT * FROM {table}"))
    for at in (f"{org.path}/outposts", path(org, registration)):
        assert "PRIVATE" not in (await org.client.get(at)).text


async def test_an_outposts_name_is_unique_in_an_organization(portal: RunningPortal, org: Org, other_org: Org) -> None:
    body = registration_body()
    first = await registered(portal, org, **body)
    repeated = await portal.admin.post(f"{org.path}/outposts", json=body)
    assert (repeated.status_code, repeated.json()["error"]) == (409, "conflict")
    assert repeated.json()["detail"].startswith("outpost_name: ")
    await registered(portal, other_org, **body)
    assert (await portal.admin.delete(path(org, first))).status_code == 204
    await registered(portal, org, **body)


async def test_an_organization_has_a_limited_number_of_outposts(
    portal: RunningPortal, org: Org, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_OUTPOSTS", 2)
    first, _ = await registered(portal, org), await registered(portal, org)
    refused = await portal.admin.post(f"{org.path}/outposts", json=registration_body())
    assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    await portal.admin.delete(path(org, first))
    await registered(portal, org)


async def test_concurrent_registrations_stay_within_the_limit(
    portal: RunningPortal, org: Org, other_org: Org, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_OUTPOSTS", 1)
    posts = [portal.admin.post(f"{org.path}/outposts", json=registration_body()) for _ in range(5)]
    answers = await asyncio.gather(*posts, portal.admin.post(f"{other_org.path}/outposts", json=registration_body()))
    assert sorted(answer.status_code for answer in answers[:-1]) == [201, 409, 409, 409, 409]
    assert answers[-1].status_code == 201


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"outpost_name": ""}, "outpost_name"), ({"outpost_name": "x" * 129}, "outpost_name"),
        ({"outpost_name": "a\0b"}, "outpost_name"), ({"region": 5}, "region"), ({"region": ""}, "region"),
        ({"deployment_env": None}, "deployment_env"), ({"more": 1}, "more"),
    ],
)  # fmt: skip
async def test_a_bad_field_is_named(portal: RunningPortal, org: Org, body: dict[str, Any], field: str) -> None:
    answer = await portal.admin.post(f"{org.path}/outposts", json=registration_body(**body))
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(f"{field}: ")


async def test_registration_renewal_and_revocation_are_in_the_audit_without_a_key(
    portal: RunningPortal, org: Org
) -> None:
    registration = await registered(portal, org)
    renewed = (await org.client.post(f"{path(org, registration)}/renew")).json()
    await org.client.delete(path(org, registration))
    for action, by in (
        ("outpost.registered", "admin_key"), ("outpost.renewed", "org_token"), ("outpost.revoked", "org_token"),
    ):  # fmt: skip
        (row,) = portal.audit(org.id, action)
        assert (row["actor_type"], row["resource_id"]) == (by, registration["outpost"]["id"])
        assert "PRIVATE" not in str(row)
    assert portal.audit(org.id, "outpost.renewed")[0]["details"] == {
        "serial": renewed["outpost"]["cert_serial"], "previous": registration["outpost"]["cert_serial"],
    }  # fmt: skip


async def test_another_organizations_outpost_is_not_found(portal: RunningPortal, org: Org, other_org: Org) -> None:
    foreign = await registered(portal, other_org)
    for client in (org.client, portal.admin):
        for method, at in (("GET", ""), ("DELETE", ""), ("POST", "/renew")):
            answer = await client.request(method, path(org, foreign) + at)
            assert (answer.status_code, answer.json()["detail"]) == (404, "Outpost not found")
    assert (await org.client.get(f"{org.path}/outposts")).json() == []
    assert (await beat(portal, token(foreign))).status_code == 200


async def test_a_member_sees_outposts_and_the_admin_key_manages_them(portal: RunningPortal, org: Org) -> None:
    result, member = await registered(portal, org), await portal.new_member(org)
    assert (await member.client.get(path(org, result))).status_code == 200
    assert (await member.client.post(f"{path(org, result)}/renew")).status_code == 403
    assert (await portal.admin.get(path(org, result))).json() == result["outpost"]
    assert (await portal.admin.post(f"{path(org, result)}/renew")).status_code == 200
    assert (await portal.admin.delete(path(org, result))).status_code == 204


# renewal and revocation ----------------------------------------------------------------------------------------------


async def test_after_a_renewal_both_certificates_are_valid_for_a_day(portal: RunningPortal, org: Org) -> None:
    first = await registered(portal, org)
    renewed = (await org.client.post(f"{path(org, first)}/renew")).json()
    assert renewed["outpost"]["id"] == first["outpost"]["id"]
    assert renewed["outpost"]["cert_serial"] == f"{certificate(renewed).serial_number:x}"
    assert renewed["client_key"] != first["client_key"]
    for item in (first, renewed):
        answer = await beat(portal, token(item))
        assert (answer.status_code, answer.json()["cert_serial"]) == (200, renewed["outpost"]["cert_serial"])
    ((good_until,),) = portal.sql(
        "SELECT good_until FROM outpost_certificates WHERE serial = %s", [first["outpost"]["cert_serial"]]
    )
    assert abs(good_until - utc_now() - timedelta(hours=24)) < timedelta(minutes=1)
    portal.sql(
        "UPDATE outpost_certificates SET good_until = now() WHERE serial = %s", [first["outpost"]["cert_serial"]]
    )
    over = await beat(portal, token(first))
    assert (over.status_code, over.json()["error"]) == (403, "forbidden")
    assert (await beat(portal, token(renewed))).status_code == 200


async def test_a_revoked_outpost_is_refused_at_once_and_stays_revoked(portal: RunningPortal, org: Org) -> None:
    registration = await registered(portal, org)
    assert (await org.client.delete(path(org, registration))).status_code == 204
    assert (await beat(portal, token(registration))).status_code == 403
    assert (await org.client.get(path(org, registration))).json()["status"] == "revoked"
    for method, at in (("DELETE", ""), ("POST", "/renew")):
        answer = await org.client.request(method, path(org, registration) + at)
        assert (answer.status_code, answer.json()["error"]) == (409, "conflict")


# heartbeats ----------------------------------------------------------------------------------------------------------


async def test_a_heartbeats_fields_are_shown(portal: RunningPortal, org: Org) -> None:
    registration = await registered(portal, org)
    heartbeat = {"version": "0.1.0", "bundle_version": 7, "unsent_records": 0, "journal_bytes": 12, "status": "serving"}
    answer = await beat(portal, token(registration), **heartbeat, something="of a later version")
    assert answer.status_code == 200, answer.text
    assert (answer.json()["outpost_id"], answer.json()["status"]) == (registration["outpost"]["id"], "active")
    shown = (await org.client.get(path(org, registration))).json()
    assert (shown["last_seen_at"], shown["reported"]) == (answer.json()["received_at"], heartbeat)
    for field, value in (("bundle_version", -1), ("version", "1.0\0"), ("unsent_records", True)):
        bad = await beat(portal, token(registration), **{field: value})
        assert (bad.status_code, bad.json()["detail"].partition(":")[0]) == (422, field)


async def test_an_invalid_proof_of_an_outpost_is_refused(portal: RunningPortal, org: Org) -> None:
    result, second = await registered(portal, org), await registered(portal, org)
    stranger, key = Authority(), ec.generate_private_key(ec.SECP256R1())
    payload = {"sub": result["outpost"]["id"], "aud": "gatehouse-portal"}
    invalid_tokens = {
        "for the platform": token(result, aud="gatehouse"),
        "another outpost's name": token(result, sub=second["outpost"]["id"]),
        "no name": token(result, sub=None),
        "over": token(result, lifetime=-60),
        "for too long": token(result, lifetime=301),
        "another key": x5c.sign(payload, key, [certificate(result)]),
        "another authority": x5c.sign(payload, key, [stranger.issue(key)]),
        "cut": token(result)[:-6],
        "nothing": "x",
    }
    for why, credential in invalid_tokens.items():
        answer = await beat(portal, credential)
        assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized"), why
    assert (await portal.anonymous.post(HEARTBEAT, json={})).status_code == 401
    assert (await portal.admin.post(HEARTBEAT, json={})).status_code == 401
    assert (await org.client.post(HEARTBEAT, json={})).status_code == 401
    # The outpost's token is refused by all other operations.
    answer = await portal.client(token(result)).get(f"{org.path}/outposts")
    assert answer.status_code == 401


async def test_a_client_certificate_must_match_the_tokens(portal: RunningPortal, org: Org) -> None:
    result, second = await registered(portal, org), await registered(portal, org)
    for shown, status in ((result, 200), (second, 401), (None, 401)):

        async def behind_tls(scope: Scope, receive: Receive, send: Send, shown: dict[str, Any] | None = shown) -> None:
            """Sets the client certificate in the scope, as the server's protocol does."""
            der = None if shown is None else certificate(shown).public_bytes(Encoding.DER)
            await portal.app({**scope, "state": {"gatehouse.client_certificate": der}}, receive, send)

        transport = httpx2.ASGITransport(app=behind_tls)
        async with httpx2.AsyncClient(transport=transport, base_url="http://portal.test") as client:
            headers = {"Authorization": f"Bearer {token(result)}", "X-Forwarded-For": "203.0.113.9"}
            answer = await client.post(HEARTBEAT, json={}, headers=headers)
            assert answer.status_code == status
            # The token is valid, so the response names the missing certificate.
            assert (
                status == 200 or answer.json()["detail"] == "Present the token's certificate in the TLS handshake, too."
            )


async def test_the_outpost_of_a_cancelled_organization_is_not_found(portal: RunningPortal, org: Org) -> None:
    registration = await registered(portal, org)
    await portal.admin.delete(org.path)
    assert (await beat(portal, token(registration))).status_code == 404


async def test_an_outpost_that_calls_too_often_is_limited(portal: RunningPortal, org: Org) -> None:
    credential = token(await registered(portal, org))
    answers = [(await beat(portal, credential)).status_code for _ in range(61)]
    assert (answers[:60], answers[60]) == ([200] * 60, 429)


# stale ---------------------------------------------------------------------------------------------------------------


async def notifications(org: Org, **query: Any) -> list[dict[str, Any]]:
    answer = await org.client.get(f"{org.path}/notifications", params=query)
    assert answer.status_code == 200, answer.text
    assert answer.json()["total"] == len(answer.json()["items"])
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def test_an_outpost_that_is_not_seen_for_five_minutes_is_stale_until_it_is_seen(
    portal: RunningPortal, org: Org
) -> None:
    registration = await registered(portal, org, outpost_name="the one")
    set_last_seen(portal, registration, 4.9)
    await jobs.find_stale(portal.host.job_context)
    assert ((await org.client.get(path(org, registration))).json()["status"], await notifications(org)) == (
        "active",
        [],
    )
    set_last_seen(portal, registration, 5.1)
    for _ in range(2):
        await jobs.find_stale(portal.host.job_context)
    assert (await org.client.get(path(org, registration))).json()["status"] == "stale"
    (one,) = await notifications(org)
    assert one["message"] == "The outpost the one has never been seen."
    assert (one["type"], one["severity"], one["subject_id"], one["resolved_at"]) == (
        "outpost_stale", "warning", registration["outpost"]["id"], None,
    )  # fmt: skip
    assert (await beat(portal, token(registration))).json()["status"] == "active"
    (over,) = await notifications(org)
    assert (over["id"], over["resolved_at"] is None) == (one["id"], False)
    # The outpost becomes stale again, which creates another notification.
    time.sleep(0.001)
    portal.sql("UPDATE notifications SET created_at = now() - interval '1 hour' WHERE id = %s", [one["id"]])
    set_last_seen(portal, registration, 6)
    await jobs.find_stale(portal.host.job_context)
    newer, before = await notifications(org)
    assert (before["id"], newer["resolved_at"]) == (one["id"], None)
    assert newer["message"].startswith("The outpost the one was last seen at 20")
    assert [notification["id"] for notification in await notifications(org, resolved="false")] == [newer["id"]]
    assert [notification["id"] for notification in await notifications(org, resolved="true")] == [one["id"]]


async def test_a_resolved_notification_is_not_repeated(portal: RunningPortal, org: Org) -> None:
    result, member = await registered(portal, org), await portal.new_member(org)
    set_last_seen(portal, result, 6)
    await jobs.find_stale(portal.host.job_context)
    (notification,) = await notifications(org)
    at = f"{org.path}/notifications/{notification['id']}/resolve"
    assert (await member.client.post(at)).status_code == 403
    for _ in range(2):
        resolved = await org.client.post(at)
        assert (resolved.status_code, resolved.json()["resolved_at"] is None) == (200, False)
    await jobs.find_stale(portal.host.job_context)
    assert len(await notifications(org)) == 1
    (row,) = portal.audit(org.id, "notification.resolved")
    assert row["resource_id"] == notification["id"]


async def test_another_organizations_notification_is_not_found(portal: RunningPortal, org: Org, other_org: Org) -> None:
    set_last_seen(portal, await registered(portal, other_org), 6)
    await jobs.find_stale(portal.host.job_context)
    (foreign,) = await notifications(other_org)
    for notification_id in (foreign["id"], uuid4()):
        answer = await org.client.post(f"{org.path}/notifications/{notification_id}/resolve")
        assert answer.status_code == 404
    assert await notifications(org) == []


async def test_a_revoked_outpost_causes_no_notification(portal: RunningPortal, org: Org) -> None:
    result, quiet = await registered(portal, org), await registered(portal, org)
    for item in (result, quiet):
        set_last_seen(portal, item, 6)
    await portal.admin.delete(path(org, quiet))
    await jobs.find_stale(portal.host.job_context)
    (notification,) = await notifications(org)
    assert UUID(notification["subject_id"]) == UUID(result["outpost"]["id"])
    await portal.admin.delete(path(org, result))
    (over,) = await notifications(org)
    assert over["resolved_at"] is not None


def test_the_authorities_key_is_sealed(portal: RunningPortal) -> None:
    ((sealed, pem),) = portal.sql("SELECT sealed_private, certificate FROM authorities WHERE retired_at IS NULL")
    assert sealed.startswith("v1.")
    assert "PRIVATE" not in pem
    assert datetime.now(UTC) < x509.load_pem_x509_certificate(pem.encode()).not_valid_after_utc

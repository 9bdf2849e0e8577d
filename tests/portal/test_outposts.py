"""Outposts: registration, certificates, heartbeats (reference 2, Outpost; decisions 8, Outposts)."""

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


def wanted(**more: Any) -> dict[str, Any]:
    return {"outpost_name": f"o-{uuid4().hex[:8]}", "region": "eu-central-1", "deployment_env": "production", **more}


async def registered(portal: RunningPortal, org: Org, **more: Any) -> dict[str, Any]:
    answer = await portal.admin.post(f"{org.path}/outposts", json=wanted(**more))
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def path(org: Org, registration: dict[str, Any]) -> str:
    return f"{org.path}/outposts/{registration['outpost']['id']}"


def certificate(registration: dict[str, Any]) -> x509.Certificate:
    return x509.load_pem_x509_certificate(registration["client_cert"].encode())


def private(registration: dict[str, Any]) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(registration["client_key"].encode(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def token(registration: dict[str, Any], *, lifetime: int = 300, **claims: Any) -> str:
    named = {"sub": registration["outpost"]["id"], "aud": "gatehouse-portal", **claims}
    return x5c.sign(named, private(registration), [certificate(registration)], lifetime_seconds=lifetime)


async def beat(portal: RunningPortal, credential: str, **body: Any) -> httpx2.Response:
    return await portal.anonymous.post(HEARTBEAT, json=body, headers={"Authorization": f"Bearer {credential}"})


def not_seen(portal: RunningPortal, registration: dict[str, Any], minutes: float) -> None:
    """As if its last sign of life had been so long ago."""
    portal.sql(
        "UPDATE outposts SET created_at = now() - make_interval(secs => %s), last_seen_at = CASE WHEN last_seen_at"
        " IS NOT NULL THEN now() - make_interval(secs => %s) END WHERE id = %s",
        [minutes * 60, minutes * 60, registration["outpost"]["id"]],
    )


# registration --------------------------------------------------------------------------------------------------------


async def test_a_registration_answers_all_that_an_outpost_needs(portal: RunningPortal, org: Org) -> None:
    body = wanted()
    answer = await portal.admin.post(f"{org.path}/outposts", json=body)
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert set(told) == {
        "outpost", "client_cert", "client_key", "ca_chain", "platform_url", "bundle_url", "heartbeat_url",
    }  # fmt: skip
    assert {name: told["outpost"][name] for name in body} == body
    assert (told["outpost"]["org_id"], told["outpost"]["status"]) == (str(org.id), "active")
    assert told["heartbeat_url"] == "http://portal.test/v1/outposts/heartbeat"
    shown = (await org.client.get(path(org, told))).json()
    assert shown == told["outpost"]
    assert (await org.client.get(f"{org.path}/outposts")).json() == [shown]


async def test_its_certificate_is_for_clients_and_ends_after_ninety_days(portal: RunningPortal, org: Org) -> None:
    told = await registered(portal, org)
    leaf, (root,) = certificate(told), x509.load_pem_x509_certificates(told["ca_chain"].encode())
    leaf.verify_directly_issued_by(root)
    assert leaf.public_key() == private(told).public_key()
    assert isinstance(private(told).curve, ec.SECP256R1)
    assert isinstance(root.public_key(), ec.EllipticCurvePublicKey)
    usage = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert told["outpost"]["cert_serial"] == f"{leaf.serial_number:x}"
    assert datetime.fromisoformat(told["outpost"]["cert_expires_at"]) == leaf.not_valid_after_utc
    lasts = leaf.not_valid_after_utc - datetime.fromisoformat(told["outpost"]["cert_issued_at"])
    assert timedelta(days=90) - lasts < timedelta(seconds=1)


async def test_the_key_is_kept_nowhere(portal: RunningPortal, org: Org) -> None:
    told = await registered(portal, org)
    secret = "".join(told["client_key"].split("\n")[1:-2])
    for table in ("outposts", "outpost_certificates", "audit", "jobs"):
        assert secret[:60] not in str(portal.sql(f"SELECT * FROM {table}"))
    for at in (f"{org.path}/outposts", path(org, told)):
        assert "PRIVATE" not in (await org.client.get(at)).text


async def test_an_organization_has_a_name_once(portal: RunningPortal, org: Org, other_org: Org) -> None:
    body = wanted()
    first = await registered(portal, org, **body)
    again = await portal.admin.post(f"{org.path}/outposts", json=body)
    assert (again.status_code, again.json()["error"]) == (409, "conflict")
    assert again.json()["detail"].startswith("outpost_name: ")
    await registered(portal, other_org, **body)
    assert (await portal.admin.delete(path(org, first))).status_code == 204
    await registered(portal, org, **body)


async def test_an_organization_has_so_many_outposts_and_no_more(
    portal: RunningPortal, org: Org, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_OUTPOSTS", 2)
    first, _ = await registered(portal, org), await registered(portal, org)
    refused = await portal.admin.post(f"{org.path}/outposts", json=wanted())
    assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    await portal.admin.delete(path(org, first))
    await registered(portal, org)


async def test_outposts_registered_together_stay_within_the_limit(
    portal: RunningPortal, org: Org, other_org: Org, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_OUTPOSTS", 1)
    posts = [portal.admin.post(f"{org.path}/outposts", json=wanted()) for _ in range(5)]
    answers = await asyncio.gather(*posts, portal.admin.post(f"{other_org.path}/outposts", json=wanted()))
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
    answer = await portal.admin.post(f"{org.path}/outposts", json=wanted(**body))
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(f"{field}: ")


async def test_registration_renewal_and_revocation_are_in_the_audit_without_a_key(
    portal: RunningPortal, org: Org
) -> None:
    told = await registered(portal, org)
    renewed = (await org.client.post(f"{path(org, told)}/renew")).json()
    await org.client.delete(path(org, told))
    for action, by in (
        ("outpost.registered", "admin_key"), ("outpost.renewed", "org_token"), ("outpost.revoked", "org_token"),
    ):  # fmt: skip
        (row,) = portal.audit(org.id, action)
        assert (row["actor_type"], row["resource_id"]) == (by, told["outpost"]["id"])
        assert "PRIVATE" not in str(row)
    assert portal.audit(org.id, "outpost.renewed")[0]["details"] == {
        "serial": renewed["outpost"]["cert_serial"], "previous": told["outpost"]["cert_serial"],
    }  # fmt: skip


async def test_another_organizations_outpost_is_not_there(portal: RunningPortal, org: Org, other_org: Org) -> None:
    theirs = await registered(portal, other_org)
    for client in (org.client, portal.admin):
        for method, at in (("GET", ""), ("DELETE", ""), ("POST", "/renew")):
            answer = await client.request(method, path(org, theirs) + at)
            assert (answer.status_code, answer.json()["detail"]) == (404, "Outpost not found")
    assert (await org.client.get(f"{org.path}/outposts")).json() == []
    assert (await beat(portal, token(theirs))).status_code == 200


async def test_a_member_sees_outposts_and_the_admin_key_manages_them(portal: RunningPortal, org: Org) -> None:
    told, member = await registered(portal, org), await portal.new_member(org)
    assert (await member.client.get(path(org, told))).status_code == 200
    assert (await member.client.post(f"{path(org, told)}/renew")).status_code == 403
    assert (await portal.admin.get(path(org, told))).json() == told["outpost"]
    assert (await portal.admin.post(f"{path(org, told)}/renew")).status_code == 200
    assert (await portal.admin.delete(path(org, told))).status_code == 204


# renewal and revocation ----------------------------------------------------------------------------------------------


async def test_after_a_renewal_both_certificates_are_good_for_a_day(portal: RunningPortal, org: Org) -> None:
    first = await registered(portal, org)
    renewed = (await org.client.post(f"{path(org, first)}/renew")).json()
    assert renewed["outpost"]["id"] == first["outpost"]["id"]
    assert renewed["outpost"]["cert_serial"] == f"{certificate(renewed).serial_number:x}"
    assert renewed["client_key"] != first["client_key"]
    for each in (first, renewed):
        answer = await beat(portal, token(each))
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
    told = await registered(portal, org)
    assert (await org.client.delete(path(org, told))).status_code == 204
    assert (await beat(portal, token(told))).status_code == 403
    assert (await org.client.get(path(org, told))).json()["status"] == "revoked"
    for method, at in (("DELETE", ""), ("POST", "/renew")):
        answer = await org.client.request(method, path(org, told) + at)
        assert (answer.status_code, answer.json()["error"]) == (409, "conflict")


# heartbeats ----------------------------------------------------------------------------------------------------------


async def test_a_heartbeat_is_seen_with_what_it_says(portal: RunningPortal, org: Org) -> None:
    told = await registered(portal, org)
    said = {"version": "0.1.0", "bundle_version": 7, "unsent_records": 0, "journal_bytes": 12, "status": "serving"}
    answer = await beat(portal, token(told), **said, something="of a later version")
    assert answer.status_code == 200, answer.text
    assert (answer.json()["outpost_id"], answer.json()["status"]) == (told["outpost"]["id"], "active")
    shown = (await org.client.get(path(org, told))).json()
    assert (shown["last_seen_at"], shown["reported"]) == (answer.json()["received_at"], said)
    for field, value in (("bundle_version", -1), ("version", "1.0\0"), ("unsent_records", True)):
        bad = await beat(portal, token(told), **{field: value})
        assert (bad.status_code, bad.json()["detail"].partition(":")[0]) == (422, field)


async def test_what_does_not_prove_an_outpost_is_refused(portal: RunningPortal, org: Org) -> None:
    told, other = await registered(portal, org), await registered(portal, org)
    stranger, key = Authority(), ec.generate_private_key(ec.SECP256R1())
    named = {"sub": told["outpost"]["id"], "aud": "gatehouse-portal"}
    bad = {
        "for the platform": token(told, aud="gatehouse"),
        "another outpost's name": token(told, sub=other["outpost"]["id"]),
        "no name": token(told, sub=None),
        "over": token(told, lifetime=-60),
        "for too long": token(told, lifetime=301),
        "another key": x5c.sign(named, key, [certificate(told)]),
        "another authority": x5c.sign(named, key, [stranger.issue(key)]),
        "cut": token(told)[:-6],
        "nothing": "x",
    }
    for why, credential in bad.items():
        answer = await beat(portal, credential)
        assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized"), why
    assert (await portal.anonymous.post(HEARTBEAT, json={})).status_code == 401
    assert (await portal.admin.post(HEARTBEAT, json={})).status_code == 401
    assert (await org.client.post(HEARTBEAT, json={})).status_code == 401
    # It opens nothing else.
    answer = await portal.client(token(told)).get(f"{org.path}/outposts")
    assert answer.status_code == 401


async def test_where_the_listener_asks_for_certificates_the_tokens_own_is_shown(
    portal: RunningPortal, org: Org
) -> None:
    told, other = await registered(portal, org), await registered(portal, org)
    for shown, status in ((told, 200), (other, 401), (None, 401)):

        async def behind_tls(scope: Scope, receive: Receive, send: Send, shown: dict[str, Any] | None = shown) -> None:
            """As the server's protocol says it."""
            der = None if shown is None else certificate(shown).public_bytes(Encoding.DER)
            await portal.app({**scope, "state": {"gatehouse.client_certificate": der}}, receive, send)

        transport = httpx2.ASGITransport(app=behind_tls)
        async with httpx2.AsyncClient(transport=transport, base_url="http://portal.test") as client:
            headers = {"Authorization": f"Bearer {token(told)}", "X-Forwarded-For": "203.0.113.9"}
            answer = await client.post(HEARTBEAT, json={}, headers=headers)
            assert answer.status_code == status
            # The token is good: what is missing is told.
            assert status == 200 or answer.json()["detail"] == "Show the token's certificate in the TLS handshake too."


async def test_a_cancelled_organizations_outpost_is_not_there(portal: RunningPortal, org: Org) -> None:
    told = await registered(portal, org)
    await portal.admin.delete(org.path)
    assert (await beat(portal, token(told))).status_code == 404


async def test_an_outpost_that_calls_without_end_is_slowed_down(portal: RunningPortal, org: Org) -> None:
    credential = token(await registered(portal, org))
    answers = [(await beat(portal, credential)).status_code for _ in range(61)]
    assert (answers[:60], answers[60]) == ([200] * 60, 429)


# stale ---------------------------------------------------------------------------------------------------------------


async def notifications(org: Org, **query: Any) -> list[dict[str, Any]]:
    answer = await org.client.get(f"{org.path}/notifications", params=query)
    assert answer.status_code == 200, answer.text
    assert answer.json()["total"] == len(answer.json()["items"])
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


async def test_an_outpost_that_is_not_seen_for_five_minutes_is_stale_until_it_is_seen(
    portal: RunningPortal, org: Org
) -> None:
    told = await registered(portal, org, outpost_name="the one")
    not_seen(portal, told, 4.9)
    await jobs.find_stale(portal.host.job_context)
    assert ((await org.client.get(path(org, told))).json()["status"], await notifications(org)) == ("active", [])
    not_seen(portal, told, 5.1)
    for _ in range(2):
        await jobs.find_stale(portal.host.job_context)
    assert (await org.client.get(path(org, told))).json()["status"] == "stale"
    (one,) = await notifications(org)
    assert one["message"] == "The outpost the one has never been seen."
    assert (one["type"], one["severity"], one["subject_id"], one["resolved_at"]) == (
        "outpost_stale", "warning", told["outpost"]["id"], None,
    )  # fmt: skip
    assert (await beat(portal, token(told))).json()["status"] == "active"
    (over,) = await notifications(org)
    assert (over["id"], over["resolved_at"] is None) == (one["id"], False)
    # And again.
    time.sleep(0.001)
    portal.sql("UPDATE notifications SET created_at = now() - interval '1 hour' WHERE id = %s", [one["id"]])
    not_seen(portal, told, 6)
    await jobs.find_stale(portal.host.job_context)
    again, before = await notifications(org)
    assert (before["id"], again["resolved_at"]) == (one["id"], None)
    assert again["message"].startswith("The outpost the one was last seen at 20")
    assert [each["id"] for each in await notifications(org, resolved="false")] == [again["id"]]
    assert [each["id"] for each in await notifications(org, resolved="true")] == [one["id"]]


async def test_what_somebody_has_seen_to_is_not_told_again(portal: RunningPortal, org: Org) -> None:
    told, member = await registered(portal, org), await portal.new_member(org)
    not_seen(portal, told, 6)
    await jobs.find_stale(portal.host.job_context)
    (one,) = await notifications(org)
    at = f"{org.path}/notifications/{one['id']}/resolve"
    assert (await member.client.post(at)).status_code == 403
    for _ in range(2):
        resolved = await org.client.post(at)
        assert (resolved.status_code, resolved.json()["resolved_at"] is None) == (200, False)
    await jobs.find_stale(portal.host.job_context)
    assert len(await notifications(org)) == 1
    (row,) = portal.audit(org.id, "notification.resolved")
    assert row["resource_id"] == one["id"]


async def test_another_organizations_notification_is_not_there(portal: RunningPortal, org: Org, other_org: Org) -> None:
    not_seen(portal, await registered(portal, other_org), 6)
    await jobs.find_stale(portal.host.job_context)
    (theirs,) = await notifications(other_org)
    for notification_id in (theirs["id"], uuid4()):
        answer = await org.client.post(f"{org.path}/notifications/{notification_id}/resolve")
        assert answer.status_code == 404
    assert await notifications(org) == []


async def test_of_a_revoked_outpost_nothing_is_told(portal: RunningPortal, org: Org) -> None:
    told, quiet = await registered(portal, org), await registered(portal, org)
    for each in (told, quiet):
        not_seen(portal, each, 6)
    await portal.admin.delete(path(org, quiet))
    await jobs.find_stale(portal.host.job_context)
    (one,) = await notifications(org)
    assert UUID(one["subject_id"]) == UUID(told["outpost"]["id"])
    await portal.admin.delete(path(org, told))
    (over,) = await notifications(org)
    assert over["resolved_at"] is not None


def test_the_authorities_key_is_sealed(portal: RunningPortal) -> None:
    ((sealed, pem),) = portal.sql("SELECT sealed_private, certificate FROM authorities WHERE retired_at IS NULL")
    assert sealed.startswith("v1.")
    assert "PRIVATE" not in pem
    assert datetime.now(UTC) < x509.load_pem_x509_certificate(pem.encode()).not_valid_after_utc

"""Outposts from registration to revocation: a platform, a portal and an outpost, each as its own process
(docs/portal.md, Outposts; docs/outpost-protocol.md)."""

import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from tests.support.portal_server import PortalServer, url_of
from tests.support.ports import free_port
from tests.support.registered import RegisteredOutpost
from tests.support.server import GatehouseServer

from gatehouse.foundation.certificates import x5c
from gatehouse.platform.changes.change import DEFAULT_TENANT

#: A revoked certificate is refused within a minute.
MINUTE = 60.0


@pytest.fixture(scope="module")
def portal() -> Iterator[PortalServer]:
    port = free_port()
    with GatehouseServer(env={"PORTAL_PUBLIC_URL": url_of(port)}) as platform, PortalServer(platform, port) as running:
        yield running


def until(holds: Callable[[], object], *, patience: float = MINUTE) -> None:
    deadline = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def token(registration: dict[str, Any], audience: str = "gatehouse") -> str:
    key = load_pem_private_key(registration["client_key"].encode(), None)
    chain = [x509.load_pem_x509_certificate(registration["client_cert"].encode())]
    claims = {"sub": registration["outpost"]["id"], "aud": audience}
    return x5c.sign(claims, key, chain)  # type: ignore[arg-type]


def polled(portal: PortalServer, registration: dict[str, Any]) -> int:
    """Returns the platform's response to a poll of the outpost."""
    headers = {"Authorization": f"Bearer {token(registration)}"}
    return httpx2.get(registration["bundle_url"], headers=headers, timeout=60).status_code


def enable(portal: PortalServer, key: str) -> None:
    answer = httpx2.patch(
        f"{portal.platform.url}/api/v1/admin/org/feature-flags/outpost_enabled",
        json={"enabled": True},
        headers={"X-API-Key": key},
        timeout=60,
    )
    assert answer.status_code == 200, answer.text


@pytest.fixture(scope="module")
def org(portal: PortalServer) -> UUID:
    """Yields an organization with a tenant of its own, whose outposts are admitted."""
    org_id, key = portal.new_org()
    enable(portal, key)
    return org_id


def test_a_registered_outpost_serves_until_it_is_revoked(portal: PortalServer) -> None:
    # This tenant has the sandbox's models.
    org_id, key = portal.new_org(tenant_id=str(DEFAULT_TENANT))
    enable(portal, key)
    registration = portal.register(org_id)
    assert registration["platform_url"] == portal.platform.url
    until(lambda: polled(portal, registration) == 200)
    at = f"/v1/orgs/{org_id}/outposts/{registration['outpost']['id']}"
    with RegisteredOutpost(portal.platform, registration, CLOUD_PORTAL_URL=portal.url) as outpost:
        answer = outpost.ask("Hello, outpost", key=key)
        assert answer.status_code == 200, answer.text
        until(lambda: portal.admin.get(at).json()["last_seen_at"] is not None)
        assert portal.admin.get(at).json()["reported"]["status"] in {"ready", "not_ready"}
        # During a renewal the new files are read, and the old certificate remains valid.
        renewed = portal.admin.post(f"{at}/renew").json()
        until(lambda: polled(portal, renewed) == 200)
        assert polled(portal, registration) == 200
        outpost.registration = renewed
        outpost.enrol()
        until(lambda: "certificate_renewed" in outpost.log)
        assert outpost.ask(key=key).status_code == 200
        assert portal.admin.delete(at).status_code == 204
        until(lambda: polled(portal, renewed) == 401)
        assert polled(portal, registration) == 401
        until(lambda: "platform_away" in outpost.log)


def test_a_cancelled_organizations_outposts_are_refused(portal: PortalServer) -> None:
    org_id, key = portal.new_org()
    enable(portal, key)
    registration = portal.register(org_id)
    until(lambda: polled(portal, registration) == 200)
    assert portal.admin.delete(f"/v1/orgs/{org_id}").status_code == 204
    until(lambda: polled(portal, registration) == 401)
    # The deletion of the tenant is sent first.
    until(lambda: str(org_id) not in str(portal.platform.sql("SELECT organizations, outposts FROM outpost_trust")))


def test_a_foreign_change_of_the_trust_is_corrected(portal: PortalServer, org: UUID) -> None:
    """The complete list is sent again within half a minute."""
    registration = portal.register(org)
    until(lambda: polled(portal, registration) == 200)
    nobody: dict[str, Any] = {"ca_certificates": [], "organizations": [], "outposts": []}
    key = portal.platform.key
    response = httpx2.put(
        f"{portal.platform.url}/v1/platform/outpost-trust", json=nobody, headers={"X-API-Key": key}, timeout=30
    )
    assert response.status_code == 200
    assert polled(portal, registration) == 401
    # Act as if half a minute had passed.
    portal.sql("UPDATE portal.jobs SET updated_at = updated_at - interval '30 seconds' WHERE kind = 'trust_push'")
    until(lambda: polled(portal, registration) == 200, patience=20)


def test_two_authorities_are_valid_at_once_until_one_is_revoked(portal: PortalServer, org: UUID) -> None:
    before = portal.register(org)
    output = portal.command("keys", "rotate-ca")
    assert output.startswith("Authority ")
    after = portal.register(org)
    (first,) = x509.load_pem_x509_certificates(before["ca_chain"].encode())
    second, still = x509.load_pem_x509_certificates(after["ca_chain"].encode())
    assert (still, first != second) == (first, True)
    for item in (before, after):
        until(lambda item=item: polled(portal, item) == 200)  # type: ignore[misc]
    portal.command("keys", "rotate-ca", "--stolen")
    until(lambda: polled(portal, before) == 401)
    assert polled(portal, after) == 401
    renewed = portal.admin.post(f"/v1/orgs/{org}/outposts/{before['outpost']['id']}/renew").json()
    until(lambda: polled(portal, renewed) == 200)


def test_a_webhooks_dead_letter_is_reported_to_its_organization(portal: PortalServer, org: UUID) -> None:
    ((tenant_id,),) = portal.sql("SELECT tenant_id FROM portal.organizations WHERE id = %s", [org])
    webhook_id = uuid4()
    portal.sql(
        "INSERT INTO webhooks (id, tenant_id, name, url, events, sealed_secret, enabled)"
        " VALUES (%s, %s, 'on call', 'https://receiver.test', '{new_conversation}', '', true)",
        [webhook_id, tenant_id],
    )
    for _ in range(2):
        die(portal, tenant_id, webhook_id)
    token = portal.admin.post(f"/v1/orgs/{org}/tokens", json={}).json()["token"]
    client = httpx2.Client(base_url=portal.url, headers={"Authorization": f"Bearer {token}"}, timeout=60)
    with client:

        def notifications_of_webhook() -> list[dict[str, Any]]:
            items = client.get(f"/v1/orgs/{org}/notifications").json()["items"]
            return [item for item in items if item["subject_id"] == str(webhook_id)]

        until(notifications_of_webhook)
        (notification,) = notifications_of_webhook()
        assert (notification["type"], notification["severity"], notification["resolved_at"]) == (
            "dead_letter",
            "warning",
            None,
        )
        assert notification["message"].startswith(
            'Deliveries of the webhook "on call" have failed for good, the last of them'
        )
        until(lambda: not portal.sql("SELECT 1 FROM portal_notices"))
        resolved = client.post(f"/v1/orgs/{org}/notifications/{notification['id']}/resolve")
        assert resolved.json()["resolved_at"] is not None
        # The next notice creates a new notification.
        die(portal, tenant_id, webhook_id)
        until(lambda: len(notifications_of_webhook()) == 2)


def die(portal: PortalServer, tenant_id: UUID, webhook_id: UUID) -> None:
    """Stores a delivery whose last attempt failed half a minute ago."""
    portal.sql(
        "INSERT INTO webhook_deliveries (id, tenant_id, webhook_id, event_type, payload, status, next_attempt_at,"
        " dead_at) VALUES (%s, %s, %s, 'new_conversation', '{}', 'failed', NULL, now())",
        [uuid4(), tenant_id, webhook_id],
    )


def test_only_the_platform_sends_notices_to_the_portal(portal: PortalServer, org: UUID) -> None:
    body = {"notices": []}
    key = portal.platform.key
    signed_for_something_else = httpx2.post(
        f"{portal.platform.url}/oauth/token",
        data={
            "grant_type": "client_credentials",
            "client_id": portal.env["PLATFORM_CLIENT_ID"],
            "client_secret": portal.env["PLATFORM_CLIENT_SECRET"],
        },
        timeout=60,
    ).json()["access_token"]
    own = portal.admin.post(f"/v1/orgs/{org}/tokens", json={}).json()["token"]
    outposts = token(portal.register(org), audience=portal.url)
    for credential in ("", "x", key, signed_for_something_else, own, outposts):
        headers = {"Authorization": f"Bearer {credential}"} if credential else {}
        answer = httpx2.post(f"{portal.url}/v1/platform-notices", json=body, headers=headers, timeout=60)
        assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized"), credential[:20]
    assert portal.admin.post("/v1/platform-notices", json=body).status_code == 401


def test_jobs_continue_after_the_platform_was_unavailable(portal: PortalServer, org: UUID) -> None:
    gone, stays = portal.register(org), portal.register(org)
    for item in (gone, stays):
        until(lambda item=item: polled(portal, item) == 200)  # type: ignore[misc]
    assert portal.platform.stop() == 0
    try:
        portal.platform.stop_database()
        portal.platform.start_database()  # the portal's, too
        at = f"/v1/orgs/{org}/outposts"
        until(lambda: httpx2.get(f"{portal.url}/api/health/ready").status_code == 200)
        assert portal.admin.delete(f"{at}/{gone['outpost']['id']}").status_code == 204
        new = portal.register(org)
        # Registered before the platform has its organization.
        body = {"name": "Early", "slug": f"o-{uuid4().hex[:12]}", "plan_tier": "starter"}
        early = portal.register(UUID(portal.admin.post("/v1/orgs", json=body).json()["org"]["id"]))
        # A job that was started when the database ended runs again after its lease.
        failed = "SELECT 1 FROM portal.jobs WHERE kind = 'trust_push' AND error = 'connect_failed'"
        until(lambda: portal.sql(failed), patience=120)
    finally:
        portal.platform.start()
    until(lambda: polled(portal, gone) == 401)
    until(lambda: polled(portal, new) == 200)
    assert polled(portal, stays) == 200
    # The outpost is known, but not admitted, because the feature flag is off.
    portal.sql("UPDATE portal.jobs SET run_at = now() WHERE kind = 'org_provision' AND status = 'queued'")
    until(lambda: polled(portal, early) == 403)

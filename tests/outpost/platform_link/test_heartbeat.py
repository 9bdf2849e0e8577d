"""Heartbeats from an outpost to the portal. Platform, portal and outpost are processes, and the portal's listener
requests certificates."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from tests.support.outpost_server import OutpostServer
from tests.support.portal import ADMIN_KEY
from tests.support.portal_server import PortalServer, url_of
from tests.support.ports import free_port
from tests.support.registered import RegisteredOutpost
from tests.support.server import GatehouseServer
from tests.support.tls import TlsFiles

from gatehouse import __version__
from gatehouse.foundation.certificates import x5c
from gatehouse.platform.changes.change import DEFAULT_TENANT

HEARTBEAT = "/v1/outposts/heartbeat"


@pytest.fixture(scope="module")
def tls_files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return TlsFiles(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def portal() -> Iterator[PortalServer]:
    port = free_port()
    with GatehouseServer(env={"PORTAL_PUBLIC_URL": url_of(port)}) as platform, PortalServer(platform, port) as running:
        yield running


@pytest.fixture(scope="module")
def registration(portal: PortalServer, tls_files: TlsFiles, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Returns the response of the registration. Afterwards the portal was restarted with TLS and its own authority."""
    org_id, key = portal.new_org(tenant_id=str(DEFAULT_TENANT))
    enabled = httpx2.patch(
        f"{portal.platform.url}/api/v1/admin/org/feature-flags/outpost_enabled",
        json={"enabled": True}, headers={"X-API-Key": key}, timeout=60,
    )  # fmt: skip
    assert enabled.status_code == 200, enabled.text
    registration = portal.register(org_id)
    until(lambda: registration["outpost"]["id"] in str(portal.platform.sql("SELECT outposts FROM outpost_trust")))
    authorities: Path = tmp_path_factory.mktemp("portal") / "outposts.pem"
    authorities.write_text(registration["ca_chain"])
    portal.kill()
    portal.admin.close()
    portal.url = portal.url.replace("http:", "https:")
    portal.env |= {
        "PORTAL_PUBLIC_URL": portal.url,
        "TLS_CERT_PATH": str(tls_files.certificate), "TLS_KEY_PATH": str(tls_files.key),
        "TLS_CLIENT_CA_PATH": str(authorities),
    }  # fmt: skip
    portal.start()
    headers = {"X-API-Key": ADMIN_KEY}
    portal.admin = httpx2.Client(base_url=portal.url, headers=headers, timeout=60, verify=tls_files.trusted())
    return registration


@pytest.fixture(scope="module")
def beating(portal: PortalServer, registration: dict[str, Any], tls_files: TlsFiles) -> Iterator[OutpostServer]:
    environment = {"CLOUD_PORTAL_URL": portal.url + "/", "TLS_CA_BUNDLE": str(tls_files.authority)}
    with RegisteredOutpost(portal.platform, registration, **environment) as outpost:
        yield outpost


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def seen(portal: PortalServer, registration: dict[str, Any]) -> dict[str, Any]:
    outpost = registration["outpost"]
    body: dict[str, Any] = portal.admin.get(f"/v1/orgs/{outpost['org_id']}/outposts/{outpost['id']}").json()
    return body


def status_of(outpost: OutpostServer) -> dict[str, Any]:
    with outpost.admin() as admin:
        body: dict[str, Any] = admin.get("/admin/api/status").json()
        return body


def test_the_portal_receives_the_state_of_the_outpost(
    portal: PortalServer, registration: dict[str, Any], beating: OutpostServer
) -> None:
    until(lambda: status_of(beating)["portal"]["taken_at"])
    status, result = status_of(beating), seen(portal, registration)
    assert (status["portal"]["url"], status["portal"]["fault"]) == (portal.url + "/", None)
    assert (result["status"], result["last_seen_at"] is not None) == ("active", True)
    assert result["reported"]["version"] == __version__
    assert result["reported"]["status"] in {"ready", "not_ready"}
    assert result["reported"]["journal_bytes"] >= 0


def test_a_heartbeat_needs_the_tokens_own_certificate_in_the_handshake(
    portal: PortalServer, registration: dict[str, Any], beating: OutpostServer, tls_files: TlsFiles
) -> None:
    key = load_pem_private_key(registration["client_key"].encode(), None)
    assert isinstance(key, EllipticCurvePrivateKey)
    chain = x509.load_pem_x509_certificates(registration["client_cert"].encode())
    token = x5c.sign({"sub": registration["outpost"]["id"], "aud": portal.url}, key, chain)
    headers = {"Authorization": f"Bearer {token}"}
    for context, status in (
        (tls_files.trusted(beating.certificate, beating.key), 200),
        (tls_files.trusted(), 401),
    ):
        answer = httpx2.post(portal.url + HEARTBEAT, json={}, headers=headers, verify=context, timeout=60)
        assert answer.status_code == status, answer.text


def test_an_unreachable_portal_is_reported_only_in_the_status(
    portal: PortalServer, registration: dict[str, Any], beating: OutpostServer, tls_files: TlsFiles
) -> None:
    until(lambda: status_of(beating)["portal"]["taken_at"])
    portal.kill()
    try:
        # The first heartbeat is sent at the start, and not after half a minute.
        beating.kill()
        beating.start()
        beating.wait()
        until(lambda: status_of(beating)["portal"]["fault"])
        assert status_of(beating)["portal"]["taken_at"] is None
        assert status_of(beating)["platform"]["fault"] is None
    finally:
        portal.start()


def test_a_refusal_by_the_portal_is_reported_with_its_reason(
    portal: PortalServer, registration: dict[str, Any], tls_files: TlsFiles
) -> None:
    environment = {
        "CLOUD_PORTAL_URL": portal.url, "TLS_CA_BUNDLE": str(tls_files.authority), "PORTAL_ISSUER": "https://another.test",
    }  # fmt: skip
    with RegisteredOutpost(portal.platform, registration, **environment) as outpost:
        until(lambda: status_of(outpost)["portal"]["fault"])
        assert status_of(outpost)["portal"]["fault"].startswith("401: ")
        assert "outpost.heartbeat" not in outpost.log


def test_without_a_portal_no_heartbeats_are_sent(portal: PortalServer, registration: dict[str, Any]) -> None:
    with RegisteredOutpost(portal.platform, registration) as outpost:
        assert status_of(outpost)["portal"] is None

"""TLS on both sides: the platform requests the certificates of outposts, and an outpost's own listeners use TLS."""

import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from tests.support.outpost_server import OutpostServer, Trust
from tests.support.outposts import Authority
from tests.support.server import GatehouseServer
from tests.support.tls import TlsFiles

from gatehouse.foundation.certificates import x5c
from gatehouse.foundation.certificates.tls import tls_context
from gatehouse.foundation.settings import BadSettings

BUNDLE = "/v1/outposts/policy-bundle"


@pytest.fixture(scope="module")
def tls_files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return TlsFiles(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def platform(tls_files: TlsFiles) -> Iterator[Trust]:
    """Yields a platform that requests certificates."""
    server = GatehouseServer(env={"TLS_CERT_PATH": str(tls_files.certificate), "TLS_KEY_PATH": str(tls_files.key)})
    trust = Trust(server)
    trust.verify = tls_files.trusted()
    authorities = server.home / "outposts.pem"
    authorities.write_text(trust.authority.pem)
    server.env["TLS_CLIENT_CA_PATH"] = str(authorities)
    with server:
        yield trust


@pytest.fixture(scope="module")
def tls_outpost(platform: Trust, tls_files: TlsFiles) -> Iterator[OutpostServer]:
    """Yields an outpost that is connected to `platform` and serves its own ports with TLS."""
    environment = {
        "TLS_CA_BUNDLE": str(tls_files.authority), "PROXY_TLS_CERT_PATH": str(tls_files.certificate),
        "PROXY_TLS_KEY_PATH": str(tls_files.key),
    }  # fmt: skip
    with OutpostServer(platform, **environment) as outpost:
        yield outpost


def outpost_token(outpost: OutpostServer) -> str:
    key = load_pem_private_key(outpost.key.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    (certificate,) = x509.load_pem_x509_certificates(outpost.certificate.read_bytes())
    return x5c.sign({"sub": str(outpost.id), "aud": "gatehouse"}, key, [certificate])


def issued(authority: Authority, folder: Path) -> tuple[Path, Path]:
    """Returns the files of an outpost's certificate and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate, path = folder / "client.pem", folder / "client.key"
    certificate.write_bytes(authority.issue(key).public_bytes(Encoding.PEM))
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return certificate, path


def get_bundle(platform: Trust, context: ssl.SSLContext, token: str) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.get(platform.server.url + BUNDLE, headers=headers, verify=context, timeout=60)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_an_outpost_presents_its_certificate_and_serves_over_tls(tls_outpost: OutpostServer) -> None:
    assert tls_outpost.url.startswith("https://")
    assert tls_outpost.admin_url.startswith("https://")
    assert tls_outpost.ask().status_code == 200
    with tls_outpost.admin() as admin:
        status = admin.get("/admin/api/status").json()
    assert (status["policy"]["source"], status["platform"]["fault"]) == ("platform", None)
    with pytest.raises(httpx2.RemoteProtocolError):
        httpx2.get(tls_outpost.url.replace("https:", "http:") + "/api/health/live")


def test_a_token_is_valid_only_on_a_connection_with_its_certificate(
    platform: Trust, tls_outpost: OutpostServer, tls_files: TlsFiles, tmp_path: Path
) -> None:
    own = get_bundle(platform, tls_files.trusted(tls_outpost.certificate, tls_outpost.key), outpost_token(tls_outpost))
    assert own.status_code == 200, own.text
    foreign = issued(platform.authority, tmp_path)
    for context in (tls_files.trusted(), tls_files.trusted(*foreign)):
        refused = get_bundle(platform, context, outpost_token(tls_outpost))
        assert (refused.status_code, refused.json()["error"]) == (401, "client_certificate_missing")


def test_other_clients_need_no_certificate(platform: Trust, tls_outpost: OutpostServer, tls_files: TlsFiles) -> None:
    with platform.admin() as admin:
        assert admin.get("/api/admin/config").status_code == 200
    context = tls_files.trusted(tls_outpost.certificate, tls_outpost.key)
    assert httpx2.get(platform.server.url + "/health", verify=context).status_code == 200


def test_a_certificate_of_another_authority_ends_the_handshake(
    platform: Trust, tls_outpost: OutpostServer, tls_files: TlsFiles, tmp_path: Path
) -> None:
    with pytest.raises(httpx2.TransportError):
        get_bundle(platform, tls_files.trusted(*issued(Authority(), tmp_path)), outpost_token(tls_outpost))


def test_after_a_renewal_the_new_certificate_is_used(platform: Trust, tls_outpost: OutpostServer) -> None:
    tls_outpost.enrol()
    until(lambda: "outpost.certificate_renewed" in tls_outpost.log)
    config = {"keywords": ["samarkand"]}
    rule = {"name": "s", "filter_type": "keyword_block", "config": config, "scope": "org", "priority": 5}
    with platform.admin() as admin:
        # The outpost's long poll from before the renewal still uses the old certificate, and receives the first change.
        # Only the second change arrives over a connection with the new certificate.
        for round_ in ("one", "two"):
            rule["name"] = round_
            created = admin.post("/api/admin/content-filters/", json=rule)
            assert created.status_code == 201, created.text
            until(lambda: tls_outpost.ask("samarkand").status_code == 403)
            assert admin.delete(f"/api/admin/content-filters/{created.json()['id']}").status_code == 204
            until(lambda: tls_outpost.ask("samarkand").status_code == 200)
    with tls_outpost.admin() as operator:
        status = operator.get("/admin/api/status").json()
    assert status["platform"]["fault"] is None
    assert status["certificate"]["serial"] == platform.serials[tls_outpost.id][-1]


@pytest.mark.parametrize(
    ("problem", "fault"),
    [
        ("no server certificate", "TLS_CLIENT_CA_PATH: needs TLS_CERT_PATH"),
        ("no authorities file", "TLS_CLIENT_CA_PATH: cannot be loaded"),
        ("no authority in the file", "TLS_CLIENT_CA_PATH: cannot be loaded"),
    ],
)
def test_unusable_authorities_are_reported_at_the_start(
    tls_files: TlsFiles, tmp_path: Path, problem: str, fault: str
) -> None:
    authorities = tmp_path / "authorities.pem"
    if problem == "no authority in the file":
        authorities.write_text("nothing")
    certificate, key = (None, None) if problem == "no server certificate" else (tls_files.certificate, tls_files.key)
    with pytest.raises(BadSettings, match=fault):
        tls_context(certificate, key, authorities)

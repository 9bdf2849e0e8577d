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
from tests.support.tls import Served

from gatehouse.foundation.certificates import x5c
from gatehouse.foundation.certificates.tls import tls_context
from gatehouse.foundation.settings import BadSettings

BUNDLE = "/v1/outposts/policy-bundle"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return Served(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def asking(served: Served) -> Iterator[Trust]:
    """Yields a platform that requests certificates."""
    server = GatehouseServer(env={"TLS_CERT_PATH": str(served.certificate), "TLS_KEY_PATH": str(served.key)})
    trust = Trust(server)
    trust.verify = served.trusted()
    authorities = server.home / "outposts.pem"
    authorities.write_text(trust.authority.pem)
    server.env["TLS_CLIENT_CA_PATH"] = str(authorities)
    with server:
        yield trust


@pytest.fixture(scope="module")
def secured(asking: Trust, served: Served) -> Iterator[OutpostServer]:
    """Yields an outpost of this platform, whose own ports use TLS."""
    environment = {
        "TLS_CA_BUNDLE": str(served.authority), "PROXY_TLS_CERT_PATH": str(served.certificate),
        "PROXY_TLS_KEY_PATH": str(served.key),
    }  # fmt: skip
    with OutpostServer(asking, **environment) as outpost:
        yield outpost


def token(outpost: OutpostServer) -> str:
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


def call(asking: Trust, context: ssl.SSLContext, shown: str) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {shown}"}
    return httpx2.get(asking.server.url + BUNDLE, headers=headers, verify=context, timeout=60)


def until(judge: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not judge():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_an_outpost_shows_its_certificate_and_serves_over_tls(secured: OutpostServer) -> None:
    assert secured.url.startswith("https://")
    assert secured.admin_url.startswith("https://")
    assert secured.ask().status_code == 200
    with secured.admin() as admin:
        status = admin.get("/admin/api/status").json()
    assert (status["policy"]["source"], status["platform"]["fault"]) == ("platform", None)
    with pytest.raises(httpx2.RemoteProtocolError):
        httpx2.get(secured.url.replace("https:", "http:") + "/api/health/live")


def test_a_token_is_valid_only_on_a_connection_with_its_certificate(
    asking: Trust, secured: OutpostServer, served: Served, tmp_path: Path
) -> None:
    own = call(asking, served.trusted(secured.certificate, secured.key), token(secured))
    assert own.status_code == 200, own.text
    foreign = issued(asking.authority, tmp_path)
    for context in (served.trusted(), served.trusted(*foreign)):
        refused = call(asking, context, token(secured))
        assert (refused.status_code, refused.json()["error"]) == (401, "client_certificate_missing")


def test_other_clients_need_no_certificate(asking: Trust, secured: OutpostServer, served: Served) -> None:
    with asking.admin() as admin:
        assert admin.get("/api/admin/config").status_code == 200
    context = served.trusted(secured.certificate, secured.key)
    assert httpx2.get(asking.server.url + "/health", verify=context).status_code == 200


def test_a_certificate_of_another_authority_ends_the_handshake(
    asking: Trust, secured: OutpostServer, served: Served, tmp_path: Path
) -> None:
    with pytest.raises(httpx2.TransportError):
        call(asking, served.trusted(*issued(Authority(), tmp_path)), token(secured))


def test_after_a_renewal_the_new_certificate_is_used(asking: Trust, secured: OutpostServer) -> None:
    secured.enrol()
    until(lambda: "outpost.certificate_renewed" in secured.log)
    config = {"keywords": ["samarkand"]}
    rule = {"name": "s", "filter_type": "keyword_block", "config": config, "scope": "org", "priority": 5}
    with asking.admin() as admin:
        # The first bundle is the response to the earlier poll. The second one arrives over a new connection.
        for round_ in ("one", "two"):
            rule["name"] = round_
            created = admin.post("/api/admin/content-filters/", json=rule)
            assert created.status_code == 201, created.text
            until(lambda: secured.ask("samarkand").status_code == 403)
            assert admin.delete(f"/api/admin/content-filters/{created.json()['id']}").status_code == 204
            until(lambda: secured.ask("samarkand").status_code == 200)
    with secured.admin() as operator:
        status = operator.get("/admin/api/status").json()
    assert status["platform"]["fault"] is None
    assert status["certificate"]["serial"] == asking.serials[secured.id][-1]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("no certificate", "TLS_CLIENT_CA_PATH: needs TLS_CERT_PATH"),
        ("no file", "TLS_CLIENT_CA_PATH: cannot be loaded"),
        ("no authority", "TLS_CLIENT_CA_PATH: cannot be loaded"),
    ],
)
def test_unusable_authorities_are_reported_at_the_start(
    served: Served, tmp_path: Path, content: str, fault: str
) -> None:
    authorities = tmp_path / "authorities.pem"
    if content == "no authority":
        authorities.write_text("nothing")
    certificate, key = (None, None) if content == "no certificate" else (served.certificate, served.key)
    with pytest.raises(BadSettings, match=fault):
        tls_context(certificate, key, authorities)

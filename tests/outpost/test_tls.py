"""TLS on both sides: the platform asks outposts for their certificate, and an outpost's own listeners speak TLS."""

import ssl
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from tests.support.outpost_server import OutpostServer, Trust
from tests.support.outposts import Authority, named
from tests.support.server import GatehouseServer

from gatehouse.foundation import certified
from gatehouse.foundation.settings import BadSettings
from gatehouse.foundation.tls import tls_context

BUNDLE = "/v1/outposts/policy-bundle"


class Served:
    """An authority of this machine's servers, and the files of a server's certificate."""

    def __init__(self, folder: Path) -> None:
        authority, key = Authority("servers"), ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(
            authority.certificate.subject, named("a server"), key.public_key(), x509.random_serial_number(),
            now - timedelta(days=1), now + timedelta(days=5),
        )  # fmt: skip
        address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        certificate = builder.add_extension(address, critical=False).sign(authority.key, SHA256())
        self.authority, self.certificate, self.key = folder / "ca.pem", folder / "tls.pem", folder / "tls.key"
        self.authority.write_text(authority.pem)
        self.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
        self.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    def trusted(self, *shown: Path) -> ssl.SSLContext:
        """What believes the server, and shows a certificate and key if it is given one."""
        context = ssl.create_default_context(cafile=str(self.authority))
        if shown:
            context.load_cert_chain(*shown)
        return context


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return Served(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def asking(served: Served) -> Iterator[Trust]:
    """A platform that asks for certificates."""
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
    """An outpost of it, whose own ports speak TLS."""
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
    return certified.sign({"sub": str(outpost.id), "aud": "gatehouse"}, key, [certificate])


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


def test_a_token_is_good_over_its_own_certificates_connection_alone(
    asking: Trust, secured: OutpostServer, served: Served
) -> None:
    another = OutpostServer(asking)
    try:
        own = call(asking, served.trusted(secured.certificate, secured.key), token(secured))
        assert own.status_code == 200, own.text
        for context in (served.trusted(), served.trusted(another.certificate, another.key)):
            refused = call(asking, context, token(secured))
            assert (refused.status_code, refused.json()["error"]) == (401, "client_certificate_missing")
    finally:
        another.__exit__()


def test_everybody_else_may_do_without(asking: Trust, secured: OutpostServer, served: Served) -> None:
    with asking.admin() as admin:
        assert admin.get("/api/admin/config").status_code == 200
    context = served.trusted(secured.certificate, secured.key)
    assert httpx2.get(asking.server.url + "/health", verify=context).status_code == 200


def test_a_certificate_of_another_authority_ends_the_handshake(
    asking: Trust, secured: OutpostServer, served: Served, tmp_path: Path
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (tmp_path / "pem").write_bytes(Authority().issue(key).public_bytes(Encoding.PEM))
    with pytest.raises(httpx2.TransportError):
        call(asking, served.trusted(tmp_path / "pem", tmp_path / "key"), token(secured))


def test_a_renewal_goes_on_with_the_new_certificate(asking: Trust, secured: OutpostServer) -> None:
    secured.enrol()
    until(lambda: "outpost.certificate_renewed" in secured.log)
    config = {"keywords": ["samarkand"]}
    rule = {"name": "s", "filter_type": "keyword_block", "config": config, "scope": "org", "priority": 5}
    with asking.admin() as admin:
        # The first is the answer to what was asked before; the second comes over a new connection.
        for round_ in ("one", "two"):
            rule["name"] = round_
            made = admin.post("/api/admin/content-filters/", json=rule)
            assert made.status_code == 201, made.text
            until(lambda: secured.ask("samarkand").status_code == 403)
            assert admin.delete(f"/api/admin/content-filters/{made.json()['id']}").status_code == 204
            until(lambda: secured.ask("samarkand").status_code == 200)
    with secured.admin() as operator:
        status = operator.get("/admin/api/status").json()
    assert status["platform"]["fault"] is None
    assert status["certificate"]["serial"] == asking.serials[secured.id][-1]


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ("no certificate", "TLS_CLIENT_CA_PATH: needs TLS_CERT_PATH"),
        ("no file", "TLS_CLIENT_CA_PATH: cannot be loaded"),
        ("no authority", "TLS_CLIENT_CA_PATH: cannot be loaded"),
    ],
)
def test_authorities_that_cannot_be_used_are_told_at_start(
    served: Served, tmp_path: Path, given: str, fault: str
) -> None:
    authorities = tmp_path / "authorities.pem"
    if given == "no authority":
        authorities.write_text("nothing")
    certificate, key = (None, None) if given == "no certificate" else (served.certificate, served.key)
    with pytest.raises(BadSettings, match=fault):
        tls_context(certificate, key, authorities)

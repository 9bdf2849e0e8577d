"""Tokens that contain the certificate of their signing key."""

import base64
import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc import jwt as jose
from joserfc.jwk import ECKey, OctKey
from tests.support.outposts import Authority, named

from gatehouse.foundation.certificates import x5c
from gatehouse.foundation.jwt import ExpiredToken, InvalidToken

CLAIMS = {"sub": "an outpost", "aud": "here"}


def key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def test_a_token_contains_the_certificate_of_its_key() -> None:
    authority, own = Authority(), key()
    certificate = authority.issue(own)
    result = x5c.verify(x5c.sign(CLAIMS, own, [certificate]), [authority.certificate], audience="here")
    assert (result.serial, result.subject) == (certificate.serial_number, "an outpost")
    assert 290 < result.expires_at - time.time() <= 300


def test_a_token_expires_with_its_certificate() -> None:
    authority, own = Authority(), key()
    certificate = authority.issue(own, days=1 / 86_400 * 60)
    result = x5c.verify(x5c.sign(CLAIMS, own, [certificate]), [authority.certificate], audience="here")
    assert result.expires_at == certificate.not_valid_after_utc.timestamp()


def test_a_chain_may_contain_an_intermediate_authority() -> None:
    root, own = Authority("root"), key()
    between = Authority("between", above=root)
    token = x5c.sign(CLAIMS, own, [between.issue(own), between.certificate])
    assert x5c.verify(token, [root.certificate], audience="here").subject == "an outpost"
    without = x5c.sign(CLAIMS, own, [between.issue(own)])
    with pytest.raises(InvalidToken):
        x5c.verify(without, [root.certificate], audience="here")


def test_each_of_several_authorities_is_trusted() -> None:
    """During a rotation, both authorities have the same name."""
    old, new, own = Authority(), Authority(), key()
    for authority in (old, new):
        token = x5c.sign(CLAIMS, own, [authority.issue(own)])
        assert x5c.verify(token, [old.certificate, new.certificate], audience="here")


def test_a_client_certificate_cannot_issue_certificates() -> None:
    authority, own, other = Authority(), key(), key()
    certificate = authority.issue(own)
    now = datetime.now(UTC)
    issued = x509.CertificateBuilder(
        certificate.subject, named("x"), other.public_key(), 7, now - timedelta(days=1), now + timedelta(days=1)
    ).sign(own, SHA256())
    with pytest.raises(InvalidToken):
        x5c.verify(x5c.sign(CLAIMS, other, [issued, certificate]), [authority.certificate], audience="here")


def test_an_expired_token_or_certificate_is_refused() -> None:
    authority, ended, own = Authority(), Authority(days=-1), key()
    with pytest.raises(InvalidToken):
        x5c.verify(x5c.sign(CLAIMS, own, [authority.issue(own, days=-1)]), [authority.certificate], audience="here")
    with pytest.raises(InvalidToken):
        x5c.verify(x5c.sign(CLAIMS, own, [ended.issue(own)]), [ended.certificate], audience="here")
    token = x5c.sign(CLAIMS, own, [authority.issue(own)])
    with pytest.raises(ExpiredToken):
        x5c.verify(token, [authority.certificate], audience="here", now=time.time() + 400)


def made(header: dict[str, Any], claims: dict[str, Any], signer: Any, algorithms: list[str]) -> str:
    registry = x5c._Registry(algorithms=algorithms)
    return jose.encode(header, claims, signer, registry=registry)


def test_a_forged_x5c_token_is_refused() -> None:
    authority, own, other = Authority(), key(), key()
    certificate = authority.issue(own)
    certificate_chain = [base64.b64encode(certificate.public_bytes(x5c.Encoding.DER)).decode()]
    header = {"alg": "ES256", "x5c": certificate_chain}
    own_key = ECKey.import_key(_pem(own))
    now = int(time.time())
    valid_claims = {**CLAIMS, "iat": now, "exp": now + 60}
    secret = OctKey.import_key(b"a secret that is none, of 32 bytes")
    wrong = {
        "another key": x5c.sign(CLAIMS, other, [certificate]),
        "a long life": x5c.sign(CLAIMS, own, [certificate], lifetime_seconds=3600),
        "from tomorrow": made(
            header, {**valid_claims, "iat": now + 86_400, "exp": now + 86_460}, own_key, ["ES256"]
        ),
        "another audience": x5c.sign({**CLAIMS, "aud": "there"}, own, [certificate]),
        "no end": made(header, {**CLAIMS, "iat": now}, own_key, ["ES256"]),
        "no beginning": made(header, {**CLAIMS, "exp": now + 60}, own_key, ["ES256"]),
        "times in words": made(header, {**CLAIMS, "iat": "now", "exp": "later"}, own_key, ["ES256"]),
        "no certificate": made({"alg": "ES256"}, valid_claims, own_key, ["ES256"]),
        "no list": made({"alg": "ES256"}, valid_claims, own_key, ["ES256"]).replace(
            _head({"alg": "ES256"}), _head({"alg": "ES256", "x5c": "x"})
        ),
        "no base64": made({"alg": "ES256"}, valid_claims, own_key, ["ES256"]).replace(
            _head({"alg": "ES256"}), _head({"alg": "ES256", "x5c": ["%%%"]})
        ),
        "a shared secret": made({"alg": "HS256", "x5c": certificate_chain}, valid_claims, secret, ["HS256"]),
        "unsigned": f"{_head({'alg': 'none', 'x5c': certificate_chain})}.{_head(valid_claims)}.",
        "too many": x5c.sign(CLAIMS, own, [certificate] * 5),
        "too long": x5c.sign({**CLAIMS, "more": "x" * 20_000}, own, [certificate]),
        "two parts": "a.b",
        "nothing": "..",
    }  # fmt: skip
    for what, token in wrong.items():
        with pytest.raises(InvalidToken):
            x5c.verify(token, [authority.certificate], audience="here")
            pytest.fail(what)


def test_a_key_of_another_kind_is_refused() -> None:
    authority = Authority()
    now = datetime.now(UTC)
    for other in (rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP384R1())):
        certificate = x509.CertificateBuilder(
            authority.certificate.subject, named("x"), other.public_key(), 7, now - timedelta(days=1),
            now + timedelta(days=1),
        ).sign(authority.key, SHA256())  # fmt: skip
        token = x5c.sign(CLAIMS, key(), [certificate])
        with pytest.raises(InvalidToken):
            x5c.verify(token, [authority.certificate], audience="here")


def test_without_an_authority_every_token_is_refused() -> None:
    authority, own = Authority(), key()
    with pytest.raises(InvalidToken):
        x5c.verify(x5c.sign(CLAIMS, own, [authority.issue(own)]), [], audience="here")


def _pem(own: ec.EllipticCurvePrivateKey) -> bytes:
    return own.private_bytes(x5c.Encoding.PEM, x5c.PrivateFormat.PKCS8, x5c.NoEncryption())


def _head(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).rstrip(b"=").decode()

"""Tokens that bring their certificate."""

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

from gatehouse.foundation import certified
from gatehouse.foundation.jwt import ExpiredToken, InvalidToken

CLAIMS = {"sub": "an outpost", "aud": "here"}


def key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def test_a_token_of_a_certified_key_says_which_certificate() -> None:
    authority, own = Authority(), key()
    certificate = authority.issue(own)
    found = certified.verify(certified.sign(CLAIMS, own, [certificate]), [authority.certificate], audience="here")
    assert (found.serial, found.subject) == (certificate.serial_number, "an outpost")
    assert 290 < found.expires_at - time.time() <= 300


def test_it_ends_with_its_certificate() -> None:
    authority, own = Authority(), key()
    certificate = authority.issue(own, days=1 / 86_400 * 60)
    found = certified.verify(certified.sign(CLAIMS, own, [certificate]), [authority.certificate], audience="here")
    assert found.expires_at == certificate.not_valid_after_utc.timestamp()


def test_a_chain_may_go_over_another_authority() -> None:
    root, own = Authority("root"), key()
    between = Authority("between", above=root)
    token = certified.sign(CLAIMS, own, [between.issue(own), between.certificate])
    assert certified.verify(token, [root.certificate], audience="here").subject == "an outpost"
    without = certified.sign(CLAIMS, own, [between.issue(own)])
    with pytest.raises(InvalidToken):
        certified.verify(without, [root.certificate], audience="here")


def test_of_several_authorities_each_is_believed() -> None:
    """While one takes the other's place, both have the same name."""
    old, new, own = Authority(), Authority(), key()
    for authority in (old, new):
        token = certified.sign(CLAIMS, own, [authority.issue(own)])
        assert certified.verify(token, [old.certificate, new.certificate], audience="here")


def test_a_certified_key_is_no_authority() -> None:
    authority, own, other = Authority(), key(), key()
    certificate = authority.issue(own)
    now = datetime.now(UTC)
    issued = x509.CertificateBuilder(
        certificate.subject, named("x"), other.public_key(), 7, now - timedelta(days=1), now + timedelta(days=1)
    ).sign(own, SHA256())
    with pytest.raises(InvalidToken):
        certified.verify(certified.sign(CLAIMS, other, [issued, certificate]), [authority.certificate], audience="here")


def test_what_has_ended_is_refused() -> None:
    authority, ended, own = Authority(), Authority(days=-1), key()
    with pytest.raises(InvalidToken):
        certified.verify(
            certified.sign(CLAIMS, own, [authority.issue(own, days=-1)]), [authority.certificate], audience="here"
        )
    with pytest.raises(InvalidToken):
        certified.verify(certified.sign(CLAIMS, own, [ended.issue(own)]), [ended.certificate], audience="here")
    token = certified.sign(CLAIMS, own, [authority.issue(own)])
    with pytest.raises(ExpiredToken):
        certified.verify(token, [authority.certificate], audience="here", now=time.time() + 400)


def made(header: dict[str, Any], claims: dict[str, Any], signer: Any, algorithms: list[str]) -> str:
    registry = certified._Registry(algorithms=algorithms)
    return jose.encode(header, claims, signer, registry=registry)


def test_what_is_made_up_is_refused() -> None:
    authority, own, other = Authority(), key(), key()
    certificate = authority.issue(own)
    x5c = [base64.b64encode(certificate.public_bytes(certified.Encoding.DER)).decode()]
    ours = ECKey.import_key(_pem(own))
    now = int(time.time())
    good = {**CLAIMS, "iat": now, "exp": now + 60}
    secret = OctKey.import_key(b"a secret that is none, of 32 bytes")
    wrong = {
        "another key": certified.sign(CLAIMS, other, [certificate]),
        "a long life": certified.sign(CLAIMS, own, [certificate], lifetime_seconds=3600),
        "from tomorrow": made(
            {"alg": "ES256", "x5c": x5c}, {**good, "iat": now + 86_400, "exp": now + 86_460}, ours, ["ES256"]
        ),
        "another audience": certified.sign({**CLAIMS, "aud": "there"}, own, [certificate]),
        "no end": made({"alg": "ES256", "x5c": x5c}, {**CLAIMS, "iat": now}, ours, ["ES256"]),
        "no beginning": made({"alg": "ES256", "x5c": x5c}, {**CLAIMS, "exp": now + 60}, ours, ["ES256"]),
        "times in words": made({"alg": "ES256", "x5c": x5c}, {**CLAIMS, "iat": "now", "exp": "later"}, ours, ["ES256"]),
        "no certificate": made({"alg": "ES256"}, good, ours, ["ES256"]),
        "no list": made({"alg": "ES256"}, good, ours, ["ES256"]).replace(
            _head({"alg": "ES256"}), _head({"alg": "ES256", "x5c": "x"})
        ),
        "no base64": made({"alg": "ES256"}, good, ours, ["ES256"]).replace(
            _head({"alg": "ES256"}), _head({"alg": "ES256", "x5c": ["%%%"]})
        ),
        "a shared secret": made({"alg": "HS256", "x5c": x5c}, good, secret, ["HS256"]),
        "unsigned": f"{_head({'alg': 'none', 'x5c': x5c})}.{_head(good)}.",
        "too many": certified.sign(CLAIMS, own, [certificate] * 5),
        "too long": certified.sign({**CLAIMS, "more": "x" * 20_000}, own, [certificate]),
        "two parts": "a.b",
        "nothing": "..",
    }  # fmt: skip
    for what, token in wrong.items():
        with pytest.raises(InvalidToken):
            certified.verify(token, [authority.certificate], audience="here")
            pytest.fail(what)


def test_a_key_of_another_kind_is_refused() -> None:
    authority = Authority()
    now = datetime.now(UTC)
    for other in (rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP384R1())):
        certificate = x509.CertificateBuilder(
            authority.certificate.subject, named("x"), other.public_key(), 7, now - timedelta(days=1),
            now + timedelta(days=1),
        ).sign(authority.key, SHA256())  # fmt: skip
        token = certified.sign(CLAIMS, key(), [certificate])
        with pytest.raises(InvalidToken):
            certified.verify(token, [authority.certificate], audience="here")


def test_nobody_is_believed_without_an_authority() -> None:
    authority, own = Authority(), key()
    with pytest.raises(InvalidToken):
        certified.verify(certified.sign(CLAIMS, own, [authority.issue(own)]), [], audience="here")


def _pem(own: ec.EllipticCurvePrivateKey) -> bytes:
    return own.private_bytes(certified.Encoding.PEM, certified.PrivateFormat.PKCS8, certified.NoEncryption())


def _head(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).rstrip(b"=").decode()

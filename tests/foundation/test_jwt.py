import base64
import hashlib
import hmac
import json

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwt as jose

from gatehouse.foundation import jwt
from gatehouse.foundation.jwt import ExpiredToken, InvalidToken, SigningKey, UnknownKey

NOW = 1_800_000_000
KEY, OTHER = SigningKey.generate(), SigningKey.generate()
KEYS = {KEY.kid: KEY}
GOOD = {"sub": "u1", "iss": "https://gate", "aud": "gate", "iat": NOW, "exp": NOW + 900}


def verify(token, now=NOW):
    return jwt.verify(token, KEYS, issuer="https://gate", audience="gate", now=now)


def encoded(part) -> str:
    raw = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def forged(header, claims=GOOD, signature=b"") -> str:
    return f"{encoded(header)}.{encoded(claims)}.{encoded(signature)}"


def hmac_signed(secret: bytes) -> str:
    body = f"{encoded({'alg': 'HS256', 'kid': KEY.kid})}.{encoded(GOOD)}"
    return f"{body}.{encoded(hmac.digest(secret, body.encode(), hashlib.sha256))}"


def resigned(**header) -> str:
    """Returns a token with a valid signature of our key and a header that must be refused."""

    body = f"{encoded({'alg': 'RS256', 'kid': KEY.kid, **header})}.{encoded(GOOD)}"
    return f"{body}.{encoded(KEY.key.private_key.sign(body.encode(), padding.PKCS1v15(), SHA256()))}"


def test_a_valid_token_yields_its_claims():
    assert verify(jwt.sign(GOOD, KEY)) == GOOD
    assert verify(resigned()) == GOOD


def test_an_audience_may_be_a_list():
    claims = {**GOOD, "aud": ["other", "gate"]}
    assert verify(jwt.sign(claims, KEY)) == claims


SIGNED = jwt.sign(GOOD, KEY)
HEAD, BODY, SIGNATURE = SIGNED.split(".")


@pytest.mark.parametrize(
    "token",
    [
        "",
        ".",
        "..",
        "a.b.c",
        "é.é.é",
        HEAD + "." + BODY,
        HEAD + "." + BODY + ".",
        SIGNED + ".x",
        HEAD + "." + encoded({**GOOD, "sub": "admin"}) + "." + SIGNATURE,
        forged({"alg": "none", "kid": KEY.kid}),
        forged({"alg": "None", "kid": KEY.kid}),
        forged({"kid": KEY.kid}),
        forged({"alg": "RS256", "kid": KEY.kid}),
        forged({"alg": ["RS256"], "kid": KEY.kid}),
        forged([], GOOD),
        forged(b"{", GOOD),
        hmac_signed(KEY.public_pem()),
        hmac_signed(b""),
        resigned(alg="RS384"),
        resigned(alg="PS256"),
        resigned(crit=["exp"]),
        resigned(crit=["b64"], b64=False),
        "A" * 10_000,
        forged(b"[" * 3000, GOOD),
    ],
)
def test_a_forged_token_is_refused(token):
    with pytest.raises(InvalidToken):
        verify(token)


@pytest.mark.parametrize("kid", [None, 5, [], {}, "", "../../etc/passwd", OTHER.kid])
def test_a_token_of_an_unpublished_key_is_refused(kid):
    with pytest.raises(InvalidToken):
        verify(resigned(kid=kid))
    with pytest.raises(UnknownKey):
        verify(jwt.sign(GOOD, OTHER))


def test_a_key_in_the_header_of_a_token_is_ignored():

    token = jose.encode({"alg": "RS256", "kid": KEY.kid, "jwk": OTHER.published()}, dict(GOOD), OTHER.key)
    with pytest.raises(InvalidToken):
        verify(token)


@pytest.mark.parametrize(
    "change",
    [
        {"iss": None},
        {"iss": "https://other"},
        {"iss": ["https://gate"]},
        {"aud": None},
        {"aud": "other"},
        {"aud": ["other"]},
        {"aud": []},
        {"aud": {"gate": 1}},
        {"exp": None},
        {"exp": "tomorrow"},
        {"exp": True},
        {"exp": str(NOW + 900)},
        {"iat": None},
        {"iat": NOW + 600},
        {"iat": "now"},
        {"nbf": NOW + 600},
    ],
)
def test_a_claim_that_is_missing_or_wrong_is_refused(change):
    claims = {name: value for name, value in {**GOOD, **change}.items() if value is not None}
    with pytest.raises(InvalidToken):
        verify(jwt.sign(claims, KEY))


def test_an_expired_token_is_refused():
    assert verify(SIGNED, now=NOW + 899)
    with pytest.raises(ExpiredToken):
        verify(SIGNED, now=NOW + 906)


@given(st.text(max_size=200))
def test_every_invalid_token_is_refused(token):
    with pytest.raises(InvalidToken):
        verify(token)


def test_a_key_survives_storage():
    loaded_key = SigningKey.from_pem(KEY.private_pem())
    assert loaded_key.kid == KEY.kid
    assert verify(jwt.sign(GOOD, loaded_key)) == GOOD


@pytest.mark.parametrize("pem", [b"", b"x", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_anything_but_a_key_is_refused(pem):
    with pytest.raises(ValueError):
        SigningKey.from_pem(pem)


def test_a_short_key_is_refused():

    short = rsa.generate_private_key(65537, 1024).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with pytest.raises(ValueError, match="2048"):
        SigningKey.from_pem(short)


def test_only_the_public_half_is_published():
    [published] = jwt.key_set([KEY])["keys"]
    assert set(published) == {"kty", "n", "e", "kid", "use", "alg"}
    assert (published["kid"], published["alg"], published["use"]) == (KEY.kid, "RS256", "sig")
    assert "PRIVATE" not in repr(KEY)

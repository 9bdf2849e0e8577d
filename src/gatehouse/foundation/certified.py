"""Tokens that bring the certificate of the key they are signed with (`x5c`, RFC 7515, 4.1.6): ES256 alone.

A certificate is believed where it chains to an authority that the verifier has been told to trust, and what it says
about its holder is not looked at: who the holder is, the verifier knows by its serial number.
"""

import base64
import binascii
import json
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.verification import ExtensionPolicy, PolicyBuilder, Store, VerificationError
from joserfc import jws, jwt
from joserfc.errors import ExpiredTokenError, JoseError
from joserfc.jwk import ECKey
from joserfc.jwt import JWTClaimsRegistry

from gatehouse.foundation.jwt import ExpiredToken, InvalidToken

ALGORITHM: Final = "ES256"
#: Seconds from a token's `iat` to its `exp`: it is made for the moment, and cannot be taken back.
MOST_SECONDS: Final = 300
#: Its holder's certificate, and those between it and the authority.
_MOST_CERTIFICATES: Final = 4
_MAX_TOKEN_CHARS: Final = 16_384
#: Clocks of machines differ by a little.
_LEEWAY_SECONDS: Final = 5


#: What reading and checking raise for what strangers make up.
_NOT_GOOD: Final = (
    JoseError, VerificationError, UnsupportedAlgorithm, x509.InvalidVersion, x509.DuplicateExtension, ValueError,
    TypeError, KeyError, RecursionError,
)  # fmt: skip


class _Registry(jws.JWSRegistry):
    # A chain is longer than what a header holds otherwise.
    max_header_length = _MAX_TOKEN_CHARS


class Certified(msgspec.Struct, frozen=True, gc=False):
    """A good token. `serial` is its certificate's; it is good until `expires_at` (Unix time), when it or its
    certificate ends."""

    serial: int
    subject: str
    expires_at: float


def authority(pem: str) -> x509.Certificate:
    """Raises `ValueError`, saying why, for anything but one certificate of an authority."""
    certificates = x509.load_pem_x509_certificates(pem.encode())
    if len(certificates) != 1:
        raise ValueError("must be one certificate")
    (certificate,) = certificates
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        raise ValueError("is not an authority's certificate: it has no basic constraints") from None
    if not constraints.ca:
        raise ValueError("is not an authority's certificate")
    return certificate


def sign(
    claims: Mapping[str, Any],
    key: EllipticCurvePrivateKey,
    chain: Sequence[x509.Certificate],
    *,
    lifetime_seconds: int = MOST_SECONDS,
) -> str:
    """`chain` begins with the key's own certificate. `claims` should hold `sub` and `aud`; adds `iat` and `exp`."""
    now = int(time.time())
    held = ECKey.import_key(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    x5c = [base64.b64encode(each.public_bytes(Encoding.DER)).decode() for each in chain]
    stamped = {**claims, "iat": now, "exp": now + lifetime_seconds}
    return jwt.encode({"alg": ALGORITHM, "x5c": x5c}, stamped, held, registry=_Registry(algorithms=[ALGORITHM]))


def verify(
    token: str, authorities: Sequence[x509.Certificate], *, audience: str, now: float | None = None
) -> Certified:
    """What a token says that is good at `now` (Unix time; the system's without it).

    `sub`, `aud`, `iat` and `exp` must be there and right. Raises `ExpiredToken`, `InvalidToken`.
    """
    at = time.time() if now is None else now
    if len(token) > _MAX_TOKEN_CHARS or not authorities:
        raise InvalidToken
    try:
        leaf, *between = _brought(token)
        _chained(leaf, between, authorities, at)
        claims = _claims(token, leaf, audience, at)
    except ExpiredTokenError:
        raise ExpiredToken from None
    except _NOT_GOOD:
        raise InvalidToken from None
    ends = min(float(claims["exp"]), leaf.not_valid_after_utc.timestamp())
    return Certified(leaf.serial_number, str(claims["sub"]), ends)


def shown(token: str) -> x509.Certificate:
    """The certificate of a token that was verified before."""
    return _brought(token)[0]


def _brought(token: str) -> list[x509.Certificate]:
    """The certificates in the token's header, its holder's first."""
    head = token.partition(".")[0]
    header = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    brought = header["x5c"]
    if not isinstance(brought, list) or not 0 < len(brought) <= _MOST_CERTIFICATES:
        raise InvalidToken
    try:
        return [x509.load_der_x509_certificate(base64.b64decode(each, validate=True)) for each in brought]
    except binascii.Error:
        raise InvalidToken from None


def _chained(
    leaf: x509.Certificate, between: list[x509.Certificate], authorities: Sequence[x509.Certificate], at: float
) -> None:
    policy = (
        PolicyBuilder()
        .store(Store(list(authorities)))
        .time(datetime.fromtimestamp(at, UTC))
        # What browsers ask of a server's certificate (names, and what it may be used for) says nothing here.
        .extension_policies(ca_policy=ExtensionPolicy.webpki_defaults_ca(), ee_policy=ExtensionPolicy.permit_all())
    )
    policy.build_client_verifier().verify(leaf, between)


def _claims(token: str, leaf: x509.Certificate, audience: str, at: float) -> dict[str, Any]:
    public = leaf.public_key()
    if not isinstance(public, EllipticCurvePublicKey) or not isinstance(public.curve, SECP256R1):
        raise InvalidToken
    key = ECKey.import_key(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    claims = jwt.decode(token, key, registry=_Registry(algorithms=[ALGORITHM])).claims
    rules = JWTClaimsRegistry(
        now=int(at),
        leeway=_LEEWAY_SECONDS,
        aud={"essential": True, "value": audience},
        sub={"essential": True},
        iat={"essential": True},
        exp={"essential": True},
    )
    rules.validate(claims)
    if claims["exp"] - claims["iat"] > MOST_SECONDS:
        raise InvalidToken
    return claims

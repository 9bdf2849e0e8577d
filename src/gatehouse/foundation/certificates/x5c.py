"""JWTs that carry the certificate of their signing key (`x5c`, RFC 7515, 4.1.6). Only ES256.

A certificate is accepted if it chains to a trusted authority. Its subject is ignored: verifiers identify the holder by
the certificate's serial number.
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
#: maximum from a token's `iat` to its `exp`; short because tokens cannot be revoked
MAX_LIFETIME_SECONDS: Final = 300
#: maximum length of a chain: the holder's certificate and the intermediate ones
_MAX_CERTIFICATES: Final = 4
_MAX_TOKEN_CHARACTERS: Final = 16_384
#: allowed difference between the clocks of two machines
_LEEWAY_SECONDS: Final = 5


#: exceptions that the libraries raise for invalid tokens
_INVALID_TOKEN_ERRORS: Final = (
    JoseError, VerificationError, UnsupportedAlgorithm, x509.InvalidVersion, x509.DuplicateExtension, ValueError,
    TypeError, KeyError, RecursionError,
)  # fmt: skip


class _Registry(jws.JWSRegistry):
    # A header with a certificate chain is longer than the default limit.
    max_header_length = _MAX_TOKEN_CHARACTERS


class CertifiedToken(msgspec.Struct, frozen=True, gc=False):
    """A verified token. `serial` is the serial number of its certificate. `expires_at` (Unix time) is the earlier of
    the token's and the certificate's expiry."""

    serial: int
    subject: str
    expires_at: float


def parse_authority(pem: str) -> x509.Certificate:
    """Returns the authority's certificate in `pem`. Raises `ValueError` with the reason unless it is exactly one
    certificate of an authority."""
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
    lifetime_seconds: int = MAX_LIFETIME_SECONDS,
) -> str:
    """Returns a signed token. `chain` begins with the key's certificate. `claims` should have `sub` and `aud`; `iat`
    and `exp` are added."""
    now = int(time.time())
    signing_key = ECKey.import_key(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    x5c = [base64.b64encode(certificate.public_bytes(Encoding.DER)).decode() for certificate in chain]
    claims = {**claims, "iat": now, "exp": now + lifetime_seconds}
    return jwt.encode({"alg": ALGORITHM, "x5c": x5c}, claims, signing_key, registry=_Registry(algorithms=[ALGORITHM]))


def verify(
    token: str, authorities: Sequence[x509.Certificate], *, audience: str, now: float | None = None
) -> CertifiedToken:
    """Returns the token's contents if it is valid at `now` (Unix time; default: the system's clock).

    Requires valid `sub`, `aud`, `iat` and `exp`. Raises `ExpiredToken`, `InvalidToken`.
    """
    now = time.time() if now is None else now
    if len(token) > _MAX_TOKEN_CHARACTERS or not authorities:
        raise InvalidToken
    try:
        leaf, *intermediates = _header_certificates(token)
        _check_chain(leaf, intermediates, authorities, now)
        claims = _claims(token, leaf, audience, now)
    except ExpiredTokenError:
        raise ExpiredToken from None
    except _INVALID_TOKEN_ERRORS:
        raise InvalidToken from None
    expires_at = min(float(claims["exp"]), leaf.not_valid_after_utc.timestamp())
    return CertifiedToken(leaf.serial_number, str(claims["sub"]), expires_at)


def certificate_of(token: str) -> x509.Certificate:
    """Returns the certificate of a verified token's holder."""
    return _header_certificates(token)[0]


def _header_certificates(token: str) -> list[x509.Certificate]:
    """Returns the certificates in the token's header, the holder's first."""
    head = token.partition(".")[0]
    header = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    encoded = header["x5c"]
    if not isinstance(encoded, list) or not 0 < len(encoded) <= _MAX_CERTIFICATES:
        raise InvalidToken
    try:
        return [x509.load_der_x509_certificate(base64.b64decode(certificate, validate=True)) for certificate in encoded]
    except binascii.Error:
        raise InvalidToken from None


def _check_chain(
    leaf: x509.Certificate, intermediates: list[x509.Certificate], authorities: Sequence[x509.Certificate], now: float
) -> None:
    policy = (
        PolicyBuilder()
        .store(Store(list(authorities)))
        .time(datetime.fromtimestamp(now, UTC))
        # The web PKI's rules for a server's certificate (names, key usage) do not apply to the holder's certificate.
        .extension_policies(ca_policy=ExtensionPolicy.webpki_defaults_ca(), ee_policy=ExtensionPolicy.permit_all())
    )
    policy.build_client_verifier().verify(leaf, intermediates)


def _claims(token: str, leaf: x509.Certificate, audience: str, now: float) -> dict[str, Any]:
    public = leaf.public_key()
    if not isinstance(public, EllipticCurvePublicKey) or not isinstance(public.curve, SECP256R1):
        raise InvalidToken
    key = ECKey.import_key(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    claims = jwt.decode(token, key, registry=_Registry(algorithms=[ALGORITHM])).claims
    rules = JWTClaimsRegistry(
        now=int(now),
        leeway=_LEEWAY_SECONDS,
        aud={"essential": True, "value": audience},
        sub={"essential": True},
        iat={"essential": True},
        exp={"essential": True},
    )
    rules.validate(claims)
    if claims["exp"] - claims["iat"] > MAX_LIFETIME_SECONDS:
        raise InvalidToken
    return claims

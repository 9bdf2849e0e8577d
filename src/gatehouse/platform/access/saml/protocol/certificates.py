"""Parses the certificates that administrators enter for identity providers."""

import binascii
import re
from base64 import b64decode
from datetime import datetime
from typing import Final

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

#: Maximum number of certificates of a provider. Two are enough for a rotation, and a sign-in may try all of them.
MAX_CERTIFICATES: Final = 4
_MIN_RSA_BITS: Final = 2048
_MIN_EC_BITS: Final = 256
_PEM_BLOCK: Final = re.compile(r"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)

VerificationKey = RSAPublicKey | EllipticCurvePublicKey


def parse(text: str) -> list[x509.Certificate]:
    """Return the certificates: one in base64, or up to four in PEM. Raises `ValueError`, whose message is for the
    caller.

    The dates of a certificate are not checked: it is trusted from the time an administrator adds it until an
    administrator removes it.
    """
    blocks = _PEM_BLOCK.findall(text)
    outside_blocks = _PEM_BLOCK.sub("", text) if blocks else ""
    if outside_blocks.strip() or (not blocks and "-----" in text):
        raise ValueError("must be a PEM certificate, or several, and nothing else")
    if len(blocks) > MAX_CERTIFICATES:
        raise ValueError(f"may hold {MAX_CERTIFICATES} certificates at most")
    return [_parse_one(block) for block in blocks or [text]]


class CertificateDetails(msgspec.Struct, frozen=True):
    """Details that an administrator compares with those that the provider shows. `sha256` is the fingerprint in
    hexadecimal."""

    expires_at: datetime
    sha256: str


def details(text: str) -> list[CertificateDetails]:
    """Return the details of the certificates in a text that `parse` accepts, in the text's order."""
    return [
        CertificateDetails(certificate.not_valid_after_utc, certificate.fingerprint(SHA256()).hex())
        for certificate in parse(text)
    ]


def to_pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode("ascii")


def public_key(certificate: x509.Certificate) -> VerificationKey:
    """Return the public key of a certificate that `parse` has checked."""
    key = certificate.public_key()
    assert isinstance(key, RSAPublicKey | EllipticCurvePublicKey)
    return key


def _parse_one(block: str) -> x509.Certificate:
    try:
        certificate = x509.load_der_x509_certificate(b64decode("".join(block.split()), validate=True))
        key = certificate.public_key()
    except (binascii.Error, ValueError, UnsupportedAlgorithm):
        raise ValueError("is not an X.509 certificate in PEM, with or without its BEGIN and END lines") from None
    if isinstance(key, RSAPublicKey):
        if key.key_size < _MIN_RSA_BITS:
            raise ValueError(f"the certificate's RSA key has {key.key_size} bits, fewer than {_MIN_RSA_BITS}")
    elif not isinstance(key, EllipticCurvePublicKey) or key.key_size < _MIN_EC_BITS:
        raise ValueError("the certificate's key must be RSA, or an elliptic curve's of 256 bits or more")
    return certificate

"""Certificates of identity providers, as administrators paste them."""

import binascii
import re
from base64 import b64decode
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import Encoding

#: Enough to rotate with; each is tried at each sign-in.
MOST: Final = 4
_MIN_RSA_BITS: Final = 2048
_MIN_EC_BITS: Final = 256
_BLOCK: Final = re.compile(r"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)

SigningKey = RSAPublicKey | EllipticCurvePublicKey


def parse(text: str) -> list[x509.Certificate]:
    """One certificate in base64, or up to four in PEM. Raises `ValueError` with a sentence for the caller.

    Their dates are not judged: they are trusted because an administrator put them here, until one takes them away.
    """
    blocks = _BLOCK.findall(text)
    rest = _BLOCK.sub("", text) if blocks else ""
    if rest.strip() or (not blocks and "-----" in text):
        raise ValueError("must be a PEM certificate, or several, and nothing else")
    if len(blocks) > MOST:
        raise ValueError(f"may hold {MOST} certificates at most")
    return [_parse_one(block) for block in blocks or [text]]


def pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode("ascii")


def key_of(certificate: x509.Certificate) -> SigningKey:
    """The key, which `parse` has judged."""
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

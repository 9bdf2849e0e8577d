"""Encrypts for the holder of a P-256 key. Uses ECIES: ECDH with an ephemeral key, HKDF-SHA-256 and AES-256-GCM.

A sealed text has the form `e1.<base64url of ephemeral public key and ciphertext>`. Its context is authenticated, so a
text that is copied to another context cannot be opened. The sender is not authenticated.
"""

import hashlib
from base64 import b64decode, urlsafe_b64encode
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_VERSION: Final = "e1"
_POINT_BYTES: Final = 65
_TAG_BYTES: Final = 16
#: The nonce may be constant, because each derived key is used once.
_NONCE: Final = bytes(12)


class CannotDecrypt(Exception):
    """The text was sealed for another key or another context, or was changed. The message contains no part of the
    text."""


def seal(plaintext: bytes, to: ec.EllipticCurvePublicKey, *, context: bytes) -> str:
    ephemeral = ec.generate_private_key(ec.SECP256R1())
    point = _point(ephemeral.public_key())
    key = _derived_key(ephemeral.exchange(ec.ECDH(), to), point, _point(to))
    sealed = AESGCM(key).encrypt(_NONCE, plaintext, context)
    return f"{_VERSION}.{urlsafe_b64encode(point + sealed).decode()}"


def unseal(sealed: str, key: ec.EllipticCurvePrivateKey, *, context: bytes) -> bytes:
    """Returns the plaintext of a sealed text. Raises `CannotDecrypt`."""
    version, _, encoded = sealed.partition(".")
    try:
        raw = b64decode(encoded.encode("ascii"), altchars=b"-_", validate=True)
        if version != _VERSION or len(raw) < _POINT_BYTES + _TAG_BYTES or not isinstance(key.curve, ec.SECP256R1):
            raise CannotDecrypt("This is not a sealed text, or the key has another type.")
        point = raw[:_POINT_BYTES]
        ephemeral = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
        derived = _derived_key(key.exchange(ec.ECDH(), ephemeral), point, _point(key.public_key()))
        return AESGCM(derived).decrypt(_NONCE, raw[_POINT_BYTES:], context)
    except (InvalidTag, ValueError):  # ValueError: invalid base64, no ASCII, or a point that is not on the curve
        raise CannotDecrypt("The sealed text was changed, or was sealed for another key or context.") from None


def fingerprint(key: ec.EllipticCurvePublicKey) -> str:
    """Returns the SHA-256 of a public key in hexadecimal."""
    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _derived_key(shared: bytes, point: bytes, to: bytes) -> bytes:
    # Both public keys are part of the input, so that other pairs of keys with the same shared secret yield another key.
    info = b"gatehouse ecies e1" + point + to
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(shared)

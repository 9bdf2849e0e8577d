"""Texts that only the holder of a key on P-256 can open: ECIES, that is ECDH with a key made for the one text, HKDF
with SHA-256, AES-256-GCM.

A sealed text reads `e1.<base64url of the text's public key and ciphertext>`. Its context is authenticated with it: a
text copied to another place opens no more than a forged one. Who has sealed it the text does not tell.
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
#: Each key is used once.
_NONCE: Final = bytes(12)


class CannotOpen(Exception):
    """It was sealed to another key or for another context, or was changed. The message never holds any of it."""


def seal(plaintext: bytes, to: ec.EllipticCurvePublicKey, *, context: bytes) -> str:
    own = ec.generate_private_key(ec.SECP256R1())
    point = _point(own.public_key())
    key = _derived(own.exchange(ec.ECDH(), to), point, _point(to))
    sealed = AESGCM(key).encrypt(_NONCE, plaintext, context)
    return f"{_VERSION}.{urlsafe_b64encode(point + sealed).decode()}"


def unseal(sealed: str, key: ec.EllipticCurvePrivateKey, *, context: bytes) -> bytes:
    """Raises `CannotOpen`."""
    version, _, encoded = sealed.partition(".")
    try:
        raw = b64decode(encoded.encode("ascii"), altchars=b"-_", validate=True)
        if version != _VERSION or len(raw) < _POINT_BYTES + _TAG_BYTES or not isinstance(key.curve, ec.SECP256R1):
            raise CannotOpen("This is not a sealed text, or the key is not one for it.")
        point = raw[:_POINT_BYTES]
        theirs = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
        derived = _derived(key.exchange(ec.ECDH(), theirs), point, _point(key.public_key()))
        return AESGCM(derived).decrypt(_NONCE, raw[_POINT_BYTES:], context)
    except (InvalidTag, ValueError):  # base64, ASCII, and a point that is on no curve
        raise CannotOpen("The sealed text was changed, or is another's.") from None


def fingerprint(key: ec.EllipticCurvePublicKey) -> str:
    """Of a key: another one for each."""
    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _derived(shared: bytes, point: bytes, to: bytes) -> bytes:
    # Both keys are part of what is derived: the same secret for another pair is another key.
    info = b"gatehouse ecies e1" + point + to
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(shared)

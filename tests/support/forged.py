"""Forged tokens with any header, claims and signature."""

import base64
import hashlib
import hmac
import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.hashes import SHA256

from gatehouse.foundation.jwt import SigningKey


def encoded(part: Any) -> str:
    """Return a part of a token: bytes and text unchanged, other values as JSON."""
    raw = part if isinstance(part, bytes) else part.encode() if isinstance(part, str) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decoded(part: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(part + "=="))


def unsigned(header: Any, claims: Any, signature: bytes = b"") -> str:
    return f"{encoded(header)}.{encoded(claims)}.{encoded(signature)}"


def by_hmac(header: Any, claims: Any, secret: bytes) -> str:
    body = f"{encoded(header)}.{encoded(claims)}"
    return f"{body}.{encoded(hmac.digest(secret, body.encode(), hashlib.sha256))}"


def by_rsa(header: Any, claims: Any, key: SigningKey) -> str:
    """Return a token with a valid signature of this key, with any header."""
    body = f"{encoded(header)}.{encoded(claims)}"
    return f"{body}.{encoded(key.key.private_key.sign(body.encode(), padding.PKCS1v15(), SHA256()))}"
